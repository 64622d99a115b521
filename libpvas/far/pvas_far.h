/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libpvasfar - memory larger than the node's, for one process and its threads.
 *
 * *Far* memory is allocated here, and used by plain loads and stores. At most a budget of
 * it is resident; the rest is in *stores*: files, or compressed memory. A *pager* in the
 * process, a few threads, brings a page in when a thread touches it and puts others out.
 * See pvas-far(7) for the model, its limits and the environment variables.
 *
 * Conventions, for every function here:
 *  - it returns 0 on success and a negative errno value (-EINVAL, ...) on failure; errno is
 *    not touched; pvas_far_error() has a line of text;
 *  - sizes are in bytes, times in microseconds;
 *  - a *page* here is the pager's, of the size that pvas_far_open() was given;
 *  - it may be called from any thread at any time, except pvas_far_open() and
 *    pvas_far_close(), and from no signal handler. Handlers may touch far memory;
 *  - a child of fork() has no far memory: there it gets SIGSEGV where its parent has
 *    such memory, and all functions return -ECHILD. It may call execve();
 *  - in a struct that begins with @size, set it to sizeof the struct. A later, larger
 *    struct is accepted if its members that this library does not know are zero
 *    (-E2BIG if not).
 *
 * If a store fails so that a page can be neither put nor got, the process ends with
 * status 1 and one line on standard error: the page's contents can't be had.
 */
#ifndef PVAS_FAR_H
#define PVAS_FAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The pager's page sizes: powers of two between these */
#define PVAS_FAR_PAGE_MIN ((size_t)4096)
#define PVAS_FAR_PAGE_MAX ((size_t)64 << 20)

/** In place of a size: pages are small, and transferred alone or in groups of up to 1 MiB */
#define PVAS_FAR_PAGE_AUTO ((size_t)1)

/** The least budget, in pages */
#define PVAS_FAR_RAM_MIN_PAGES 32

/** How many stores pages can be spread over */
#define PVAS_FAR_STORES_MAX 16

/** Into how many steps the time of an exchange is divided */
#define PVAS_FAR_STEPS 5

/* Serve faults of this process's own code only, and none of the kernel on its behalf, even
 * if the pager could: as it is for ordinary users in any case. For tests. */
#define PVAS_FAR_USER_FAULTS_ONLY (1U << 0)

/**
 * struct pvas_far_attr - what the pager is to have; zero members have defaults
 * @size:	sizeof(struct pvas_far_attr)
 * @stores:	where pages are that are not resident, several separated by commas:
 *		"file:PATH"	an existing file or block device that is large enough,
 *				or a folder, for a file without a name
 *		"zip"		memory, compressed by lz4; not counted in @ram
 *		NULL: the environment's PVAS_FAR, or "zip"
 * @ram:	the budget: bytes of far memory resident at any time. 0: PVAS_FAR_RAM, or a
 *		quarter of the machine's memory
 * @far:	bytes that can be allocated in all. 0: PVAS_FAR_SIZE, or 16 times @ram.
 *		A file store has this size, divided by the number of stores
 * @page:	bytes in a page, or PVAS_FAR_PAGE_AUTO. 0: PVAS_FAR_PAGE, or 1 MiB, or less if @ram
 *		is below 128 MiB
 * @copies:	1, or 2: each page is in two stores, and one may fail. 0: PVAS_FAR_COPIES, or 1
 * @threads:	threads that serve faults, 1 to 64. 0: PVAS_FAR_THREADS, or 4
 * @flags:	PVAS_FAR_USER_FAULTS_ONLY or 0
 * @reserved:	0
 * @protocol:	how pages are exchanged with the stores: "pvas", or, to be compared with it,
 *		"r3", "r58" or "r77" of DLM: see pvas-far(7). NULL: PVAS_FAR_PROTOCOL, or "pvas"
 */
struct pvas_far_attr {
	size_t size;
	const char *stores;
	uint64_t ram;
	uint64_t far;
	uint64_t page;
	unsigned int copies;
	unsigned int threads;
	unsigned int flags;
	unsigned int reserved;
	const char *protocol;
};

/**
 * pvas_far_open - start the pager of this process
 * @attr:	what it is to have; NULL for the default
 *
 * To be called by one thread, before all other functions here.
 *
 * Return: 0, or
 *  -EBUSY	it is started already; or another process uses a file of @stores; or, with a
 *		protocol of DLM's, no real-time signal is left
 *  -EINVAL	a bad attribute or variable, no such protocol, @ram below PVAS_FAR_RAM_MIN_PAGES
 *		pages, no such store, or more copies than stores; -E2BIG: an unknown attribute
 *  -ENOSYS	the kernel has no userfaultfd with write protection (it needs Linux 5.11)
 *  -EPERM	this process may not use it, or others have rights to a file
 *  -ENOSPC	a file is too small, or its file system is too full
 *  -ENOENT, -EACCES, -ENOTDIR, -ELOOP (no link is followed), ... from open(2) of a file
 *  -ENOMEM	no memory, or no free addresses for @far
 *  -EAGAIN	too many processes
 *  -EMFILE, -ENFILE: too many open files
 *  -ECHILD	this is a child of fork() of a process with a pager
 */
int pvas_far_open(const struct pvas_far_attr *attr);

/**
 * pvas_far_close - free all far memory and end the pager
 *
 * No thread may use far memory or another function here any more.
 *
 * Return: 0, -ESRCH (there is no pager), -ECHILD.
 */
int pvas_far_close(void);

/**
 * pvas_far_alloc - allocate far memory
 * @addr:	receives its address, a multiple of the page size
 * @size:	its size; rounded up to pages
 *
 * It reads as zeros. It may not be unmapped, mapped anew or given to madvise(2): a program
 * that does so finds zeros there, or other contents than it expects. A program that moves it
 * (mremap(2)) ends with status 1 and one line on standard error.
 *
 * Return: 0, -EINVAL (@size is 0), -ENOMEM (more than was given to pvas_far_open(), or
 * too many memory areas), -ESRCH (no pager), -ECHILD.
 */
int pvas_far_alloc(void **addr, size_t size);

/**
 * pvas_far_free - free far memory
 * @addr:	from pvas_far_alloc(); NULL is allowed and does nothing
 *
 * A thread that still touches it gets SIGSEGV.
 *
 * Return: 0, -EINVAL (not the address of an allocation), -ESRCH (no pager), -ECHILD.
 */
int pvas_far_free(void *addr);

/** enum pvas_far_advice - what a program knows about its next accesses */
enum pvas_far_advice {
	PVAS_FAR_NORMAL,	/* nothing; ends PVAS_FAR_SEQUENTIAL */
	PVAS_FAR_SEQUENTIAL,	/* in the order of addresses: read far ahead, keep little */
	PVAS_FAR_WILL_NEED,	/* soon: brought in before the call returns, as far as half of
				 * the budget reaches */
	PVAS_FAR_COLD,		/* not soon: to be put out first */
	PVAS_FAR_DISCARD,	/* the contents are no longer needed: the pages that lie
				 * entirely in the range read as zeros */
};

/**
 * pvas_far_advise - tell the pager about accesses to come
 * @addr:	any address in far memory
 * @size:	bytes from there; the pages that contain them are meant
 * @advice:	enum pvas_far_advice
 *
 * Except for PVAS_FAR_DISCARD it changes nothing but the time that accesses take.
 *
 * Return: 0, -EINVAL (no such advice, or not all of it is allocated far memory; with
 * PVAS_FAR_DISCARD: or pinned), -ESRCH (no pager), -ECHILD.
 */
int pvas_far_advise(void *addr, size_t size, int advice);

/**
 * pvas_far_pin - bring memory in and keep it resident
 * @addr:	any address in far memory
 * @size:	bytes from there; the pages that contain them are pinned
 *
 * Pinned memory can be given to any system call, for reading and writing, and to devices.
 * Pins are counted: each needs a pvas_far_unpin() of the same range.
 *
 * Return: 0, -EINVAL (not all of it is allocated far memory), -ENOMEM (more than half of
 * the budget would be pinned), -EOVERFLOW (a page pinned 65535 times), -ESRCH (no pager),
 * -ECHILD.
 */
int pvas_far_pin(void *addr, size_t size);

/**
 * pvas_far_unpin - undo one pvas_far_pin()
 *
 * Return: 0, -EINVAL (not all of it is pinned), -ESRCH (no pager), -ECHILD.
 */
int pvas_far_unpin(void *addr, size_t size);

/**
 * struct pvas_far_counters - what the pager did since it was started
 * @size:	sizeof(struct pvas_far_counters), set by the caller
 * @page:	bytes in a page
 * @ram:	the budget, in bytes
 * @resident:	bytes resident now, with the pager's own buffers: never above @ram
 * @allocated:	bytes allocated now
 * @stored:	bytes that the stores use now
 * @faults:	faults served: a thread touched a page that was not there
 * @write_faults: first writes to a page that was only read before
 * @fetched:	pages got from a store
 * @put:	pages put to a store
 * @dropped:	pages put out without a transfer, because they had not changed
 * @zeros:	pages that held only zeros when they were put out: no transfer either
 * @returned:	pages touched again on their way out (the second chance)
 * @ahead:	pages fetched ahead of a fault
 * @ahead_used:	of these, pages that were touched then
 * @waited:	microseconds that faults took in all, from the pager's seeing them
 * @system_calls: 1: system calls may be given far memory that is not pinned; 0: they fail
 *		with -EFAULT if it is not resident
 * @exchanges:	of r3, r58 and r77: pages that were brought in
 * @suspended:	how often a thread was suspended for that
 * @step:	microseconds that these took in all: in the internal queue, until the page was
 *		received (r77: until the receiver turned to it), in the external queue, until it
 *		was in place and another one sent, until the threads were woken
 */
struct pvas_far_counters {
	size_t size;
	uint64_t page;
	uint64_t ram;
	uint64_t resident;
	uint64_t allocated;
	uint64_t stored;
	uint64_t faults;
	uint64_t write_faults;
	uint64_t fetched;
	uint64_t put;
	uint64_t dropped;
	uint64_t zeros;
	uint64_t returned;
	uint64_t ahead;
	uint64_t ahead_used;
	uint64_t waited;
	uint64_t system_calls;
	uint64_t exchanges;
	uint64_t suspended;
	uint64_t step[PVAS_FAR_STEPS];
};

/**
 * pvas_far_get_counters - read the counters
 * @counters:	receives them; its @size is set by the caller
 *
 * Return: 0, -EINVAL (@size is smaller than the struct was when first published),
 * -ESRCH (no pager), -ECHILD.
 */
int pvas_far_get_counters(struct pvas_far_counters *counters);

/**
 * pvas_far_error - text that explains the last failure in this thread
 *
 * Return: one line of text without a newline, "" if there is nothing to add to the errno
 * value. Valid until the thread's next call into libpvasfar.
 */
const char *pvas_far_error(void);

#ifdef __cplusplus
}
#endif
#endif /* PVAS_FAR_H */
