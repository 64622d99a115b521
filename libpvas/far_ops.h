/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Far memory of a job: between libpvas' user backend, which sees the tasks' system calls, and
 * the pager in libpvasfar, which pvasrun loads. All tasks share one mm, and a userfaultfd
 * belongs to an mm: so one pager serves them all. Internal to PVAS.
 *
 * Each partition has a *far part*, its second quarter. Nothing else of a task is registered.
 * The backend's part is libpvas/user/far.h, the pager's libpvas/far/job.c.
 */
#ifndef PVAS_FAR_OPS_H
#define PVAS_FAR_OPS_H

#include <stdint.h>

struct pvas_far_attr;
struct pvas_far_seen;
struct pvas_space;

#define PVAS_FAR_OPS_VERSION	3
#define PVAS_FAR_KEY_TEXT	66		/* a line with a key, and a NUL */
#define PVAS_FAR_JOB_OPS	"far_job_ops"	/* the symbol of libpvasfar.so */

/**
 * struct pvas_far_rows - where the far parts are
 * @base:	the first
 * @stride:	from one to the next: the partition size
 * @length:	of each, in bytes
 * @count:	how many partitions have one
 */
struct pvas_far_rows {
	uint64_t base, stride, length;
	unsigned int count;
};

/** struct pvas_far_totals - see @totals */
struct pvas_far_totals {
	uint64_t page, ram, resident, allocated, stored, faults, fetched, put, waited;
	uint64_t returned, ahead, ahead_used;
};

/**
 * struct pvas_far_ops - the pager
 * @version:	PVAS_FAR_OPS_VERSION
 * @plan:	check attributes: how much far memory there will be, and the size of its pages
 * @key:	the key that all memory servers of the job are told: that in @file, or a new one
 *		(NULL). @line receives the line that servers read, PVAS_FAR_KEY_TEXT bytes; NULL:
 *		it is forgotten. 0 or -errno
 * @open:	start it, in the process whose mm is the space. *@kernel: it serves the kernel's
 *		faults, too, so that system calls need no help. 0 or -errno, see @error
 * @close:	end it. No task is left
 * @error:	text of the last failure in this thread
 * @map:	private memory for reading and writing, of @len bytes, in far part @row: its
 *		address, or -ENOMEM
 * @map_at:	the same at an address, with this protection; it replaces what is there, or fails
 * @unmap:	[addr, addr + len) of a far part; both are multiples of 4096. 0 or -errno
 * @discard:	the same range reads as zeros. 0 or -errno
 * @move:	mremap(): the new address, or -errno
 * @hold:	bring in what lies in [addr, addr + len), ready to be written if @write, and keep
 *		it until it is released. Returns how many bytes from @addr on are held
 * @release:	undo one @hold of as many bytes
 * @room:	how many bytes in a row can be held now
 * @end:	the task is gone: unmap all of far part @row. 0: a page is in use still, call again.
 *		It waits for no store
 * @totals:	counters
 * @row:	bytes of far part @row that are allocated, and of these in memory
 * @when_dying:	called with a line of text, by any thread, if a page can't be had any more: to
 *		end the job
 *
 * The caller has a lock for each far part: one call of @map to @move at a time.
 */
struct pvas_far_ops {
	unsigned int version;
	int (*plan)(const struct pvas_far_attr *attr, uint64_t *size, uint64_t *page);
	int (*key)(const char *file, char *line);
	int (*open)(const struct pvas_far_attr *attr, const struct pvas_far_rows *rows,
		    int *kernel);
	void (*close)(void);
	const char *(*error)(void);
	int64_t (*map)(unsigned int row, uint64_t len);
	int64_t (*map_at)(uint64_t addr, uint64_t len, int prot, int replace);
	int64_t (*unmap)(uint64_t addr, uint64_t len);
	int64_t (*discard)(uint64_t addr, uint64_t len);
	int64_t (*move)(uint64_t addr, uint64_t len, uint64_t new_len, int may_move);
	uint64_t (*hold)(uint64_t addr, uint64_t len, int write);
	void (*release)(uint64_t addr, uint64_t len);
	uint64_t (*room)(void);
	int (*end)(unsigned int row);
	void (*totals)(struct pvas_far_totals *totals);
	void (*row)(unsigned int row, uint64_t *allocated, uint64_t *resident);
	void (**when_dying)(const char *why);
};

/**
 * struct pvas_far_config - far memory of the next space that this process makes
 * @ops:	the pager
 * @threshold:	mappings of so many bytes are far
 * @rows:	how many partitions may have a far part
 * @size:	bytes of far memory in all
 * @page:	the pager's page, which far parts are a multiple of
 */
struct pvas_far_config {
	const struct pvas_far_ops *ops;
	uint64_t threshold, size, page;
	unsigned int rows;
};

/* Of libpvas' user backend; NULL: none. Hidden from users of the library. */
void libpvas_set_far(const struct pvas_far_config *config);

/* Write to the space's header what others may see of its far memory: see ../header.h */
void libpvas_far_publish(const struct pvas_space *space, const struct pvas_far_seen *seen);

#endif
