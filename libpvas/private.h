/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of libpvas; hidden from its users. */
#ifndef PVAS_PRIVATE_H
#define PVAS_PRIVATE_H

#include "header.h"

#define PVAS_PUBLIC __attribute__((visibility("default")))

/* ---- error.c: the text behind pvas_error_get() ---- */

void pvas_clear_error(void);

/*
 * Make @fd, which was just opened, one above 2: a program may have closed 0 to 2, and means
 * to open something else there. Returns it, a negative @fd as it is, or -errno.
 */
int pvas_fd_above_standard(int fd);

/* Set the text and return @err, so that it reads: return pvas_fail(-EINVAL, "..."). */
int pvas_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text, or that of @err if none is set. */
const char *pvas_error_text(int err);

/* ---- debug.c: messages for users who set PVAS_DEBUG ---- */

int pvas_debugging(void);

/* Print one line to standard error, if PVAS_DEBUG is set. */
void pvas_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- attr.c: structs that begin with their size ---- */

/*
 * Copy the caller's @from, whose first member is its size, to @to of @size bytes,
 * like the kernel's copy_struct_from_user(). A size of 0 means @first, the size
 * first published, so that an all-zero struct has the default values. Returns 0,
 * -E2BIG or -EINVAL.
 */
int pvas_copy_attr(void *to, size_t size, size_t first, const void *from);

/* ---- self.c: the caller as a task ---- */

/**
 * struct pvas_self - the caller as a task
 * @header:	of its space; NULL: the caller is not a task
 * @index:	its partition
 * @gen:	generation of the partition: distinguishes the caller from earlier tasks
 */
struct pvas_self {
	struct pvas_header *header;
	uint32_t index;
	uint32_t gen;
};

struct pvas_self pvas_self(void);

/* ---- leaving.c ---- */

/* The caller is no task: warn, once, if it was started as one. */
void pvas_warn_of_leaving(void);

/* ---- partition.c: reading the partition table ---- */

struct pvas_task_info;

/* Read one entry consistently; @index must be below @h->entries. */
void pvas_partition_read(const struct pvas_header *h, uint32_t index, struct pvas_part *part);

/* The same, as the public struct. */
void pvas_partition_info(const struct pvas_header *h, uint32_t index, struct pvas_task_info *info);

/* ---- export.c, import.c: the caller is an argument, for the tests ---- */

/**
 * struct pvas_name - a name as stored in the slots
 * @words:	padded with zeros
 * @hash:	of @words
 */
struct pvas_name {
	uint64_t words[PVAS_NAME_WORDS];
	uint32_t hash;
};

/* -EINVAL: empty or too long. */
int pvas_name_set(struct pvas_name *n, const char *name);

int pvas_export_as(const struct pvas_self *self, const char *name, const void *ptr);
int pvas_unexport_as(const struct pvas_self *self, const char *name);
int pvas_import_as(const struct pvas_self *self, unsigned int index, const char *name, void **ptr);
int pvas_import_wait_as(const struct pvas_self *self, unsigned int index, const char *name,
			int timeout_ms, void **ptr);

/* ---- eventcount.c ---- */

void pvas_eventcount_notify(struct pvas_eventcount *e);

/* Sleep until @e changes from @seq, which was read before, or for @ms milliseconds. */
void pvas_eventcount_wait(struct pvas_eventcount *e, uint32_t seq, int ms);

#endif /* PVAS_PRIVATE_H */
