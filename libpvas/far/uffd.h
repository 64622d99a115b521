/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's userfaultfd: its commands, and how kernels differ. Nothing here locks. */
#ifndef PVAS_FAR_UFFD_H
#define PVAS_FAR_UFFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct far_uffd - a userfaultfd
 * @fd:		its descriptor, non-blocking
 * @move:	it has UFFDIO_MOVE (Linux 6.8)
 * @kernel:	it serves the kernel's faults, too: system calls may be given far memory
 * @late_wake:	who waits for a page is not woken when it is mapped: the caller does that later
 * @used:	does anything but the page table, such as a device, have a reference to these pages?
 *		NULL: the kernel doesn't say
 */
struct far_uffd {
	int fd;
	bool move;
	bool kernel;
	bool late_wake;
	bool (*used)(const void *addr, size_t size);
};

/** struct far_fault - a fault to be served */
struct far_fault {
	uintptr_t addr;
	pid_t tid;
	bool write;	/* by a store, as far as the kernel says */
	bool protect;	/* the page is there, but write-protected */
	bool moved;	/* no fault: the program has called mremap() for far memory */
};

/* Return 0 or a negative errno value with a text, as store.h's functions do. */
int far_uffd_open(struct far_uffd *u, bool user_only);
int far_uffd_register(const struct far_uffd *u, void *addr, size_t size);
void far_uffd_close(struct far_uffd *u);

/* Read one fault: false if there is none. */
bool far_uffd_read(const struct far_uffd *u, struct far_fault *fault);

/*
 * Map a page, from memory of which the caller is the only user, and wake those who wait for
 * it. Copy: the kernel copies @from, and the page is write-protected from the start if
 * @protect. Move: the memory at @from itself becomes the page, which leaves a hole there;
 * it can't be write-protected from the start.
 * Return: 0, -ENOENT (no such far memory any more).
 */
int far_uffd_copy(const struct far_uffd *u, void *to, const void *from, size_t size, bool protect);
int far_uffd_move(const struct far_uffd *u, void *to, void *from, size_t size);

/* Map one page of the kernel's, of zeros. Return: 0, -EEXIST (there is one), -ENOENT. */
int far_uffd_zero(const struct far_uffd *u, void *to);

/* Let the page be written, and wake those who wait for that. */
void far_uffd_unprotect(const struct far_uffd *u, void *addr, size_t size);

/* Let those try again who wait for a page in this range. */
void far_uffd_wake(const struct far_uffd *u, void *addr, size_t size);

/**
 * far_uffd_take - unmap a page and have its contents in a slot
 * @slot:	memory of the same size; with @move, registered, and no page in it
 *
 * A store to the page by any thread is either in the slot afterwards, or has not happened:
 * the thread waits. By UFFDIO_MOVE each page of the kernel's goes in one step. Without it,
 * the page is write-protected, which flushes the processors' translations, then copied, and
 * only then dropped. With @used, a page stays that a device has: UFFDIO_MOVE moves also pages that
 * are in use, but not pinned.
 *
 * Return: 0, -EBUSY (in use: the page is as before, but can be written), or
 * -ENOENT (no such far memory any more).
 */
int far_uffd_take(const struct far_uffd *u, void *slot, void *addr, size_t size);

/* Where a mapped page has holes, because the program dropped memory there: zeros. */
void far_uffd_fill(const struct far_uffd *u, void *addr, size_t size);

/* Is there any memory in a range? */
bool far_uffd_is_mapped(void *addr, size_t size);

/* Unmap a page that is write-protected and whose contents are elsewhere. */
void far_uffd_drop(void *addr, size_t size);

#endif
