/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's fault injection: lets the n-th allocation of a call fail, for n = 1, 2,
 * 3, ... until the call makes fewer than n.
 */
#ifndef FAIL_NTH_H
#define FAIL_NTH_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define say(fmt, ...) fprintf(stderr, "# " fmt "\n", __VA_ARGS__)

/* NULL if this kernel can do it, or the reason why not. */
const char *fail_possible(void);
/* fail-nth of another process, or of this thread (0) */
int fail_open_nth(pid_t pid);
int fail_set_nth(int fd, unsigned int nth);
/* Has the allocation that was to fail been reached? Ends the injection. */
bool fail_reached(int fd);
/* Is that an error for a lack of memory? exec: E2BIG if it gets no stack page. */
bool fail_proper(int err);
/* Waits until there are @want spaces, whose end is asynchronous; how many there are. */
int fail_spaces_become(int want);

/**
 * struct fail_attempt - something to try with one allocation failing
 * @once:	tries it: 0, -errno, -ENODATA if fewer than @nth allocations were made,
 *		-ENOTRECOVERABLE for what may not be
 * @fn:		the call, for those of @once that make one; 0 or -errno
 * @arg:	what @once or @fn needs
 * @nth:	the allocation that fails
 */
struct fail_attempt {
	int (*once)(struct fail_attempt *a);
	int (*fn)(void *arg);
	void *arg;
	unsigned int nth;
};

/*
 * Tries with the nth allocation failing, until none does; each time the call must work
 * or return a proper error. Returns how many failed, or -1.
 */
int fail_sweep(const char *what, struct fail_attempt a);
/* An attempt: @fn in this thread */
int fail_here(struct fail_attempt *a);
/* The sweep of a call that is done in a child process */
int fail_sweep_child(const char *what, int (*fn)(void *arg), void *arg);

#endif /* FAIL_NTH_H */
