/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's fault injection: lets the n-th allocation of a call fail, for n = 1, 2,
 * 3, ... until the call makes fewer than n; or all that the module makes.
 */
#ifndef FAIL_NTH_H
#define FAIL_NTH_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "own_root.h"
#include "pvas_test.h"

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

/* The allocations that fail, of those with the module among their callers */
enum fail_depth {
	FAIL_NONE = 0,
	FAIL_OWN = 6,		/* those it makes itself: it is that near in the stack trace */
	FAIL_ALL = 32,		/* and those of the functions that it calls */
};

/* In any process and in workers; 0 or -errno. Each time how many have failed begins at 0. */
int fail_in_module(enum fail_depth depth);
int fail_count(void);

/* execs this program, without a look at /proc if pt_self() was called before; -errno */
int fail_exec(void *unused);
/* A puppet in the space's first partition, made from no file of another file system */
pid_t fail_spawn(struct pt_raw *raw);

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

/* A test that is skipped where nothing can fail; so many messages say what did. */
#define FAULT_LOG_TEST(name_, messages_) \
	static void faults_##name_(struct __test_metadata *_metadata); \
	TEST(name_) \
	{ \
		const char *why = fail_possible(); \
		int kmsg; \
		PT_NEED_DEVICE(); \
		if (why) \
			SKIP(return, "%s", why); \
		kmsg = pt_kmsg_mark(#name_); \
		faults_##name_(_metadata); \
		EXPECT_EQ(messages_, pt_kmsg_complaints(kmsg)); \
	} \
	static void faults_##name_(struct __test_metadata __attribute__((unused)) *_metadata)
#define FAULT_TEST(name_) FAULT_LOG_TEST(name_, 0)

/* main() of such tests: a root directory of its own, whose files need no server. */
#define FAULT_MAIN() \
	PT_HARNESS() \
	static int run_here_or_there(int argc, char **argv) \
	{ \
		if (fail_possible() || own_root_is_here()) \
			return pt_run_harness(argc, argv); \
		return own_root_run(argv); \
	} \
	int main(int argc, char **argv) \
	{ \
		return pt_main(argc, argv, run_here_or_there); \
	}

#endif /* FAIL_NTH_H */
