// SPDX-License-Identifier: GPL-2.0-only
/*
 * process_mrelease(2) of a space's only task, which a tracer holds in its exit: the kernel takes
 * all of the mm for that of a dying process, but the space goes on.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define USED (16UL << 20)

static void use_memory(void)
{
	char *p = mmap(NULL, USED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 1, USED);
}

TASK(exit_when_told)
{
	use_memory();
	pt_say("r");
	CHECK_EQ('g', pt_hear(atoi(pt_args[1])));
}

TASK(use_and_pause)
{
	use_memory();
	pt_say("r");
	pause();
}

TASK(succeed)
{
	use_memory();
}

static int release(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int ret = syscall(SYS_process_mrelease, pidfd, 0) ? -errno : 0;

	close(pidfd);
	return ret;
}

/* Of oneself it is refused, where there is such a call. */
#define NEED_RELEASE() do { \
	if (release(getpid()) == -ENOSYS) \
		SKIP(return, "no process_mrelease in this kernel"); \
} while (0)

struct last {
	pid_t pid;
	int out[2], in[2];
};

static bool start_last(struct last *last, struct pvas_space *space, const char *name)
{
	return !pipe(last->out) && !pipe(last->in) &&
	       pt_start_task_fds(space, 1, name, last->out[1], last->in[0], &last->pid) >= 0 &&
	       pt_hear(last->out[0]) == 'r';
}

/* It exits by itself; returns when it is held. */
static bool exits(const struct last *last)
{
	int status;

	return !ptrace(PTRACE_SEIZE, last->pid, 0, PTRACE_O_TRACEEXIT) &&
	       write(last->in[1], "g", 1) == 1 &&
	       waitpid(last->pid, &status, __WALL) == last->pid &&
	       status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

static void enter(struct __test_metadata *_metadata, struct pvas_space *space)
{
	pid_t pid = pt_start_task(space, 2, "succeed");

	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
}

static void release_and_enter(struct __test_metadata *_metadata, struct pvas_space *space,
			      const struct last *last)
{
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, release(last->pid));
		enter(_metadata, space);
	}
}

/* others can enter beside one that exits, and after it */
MODULE_TEST(of_an_exit, "each task has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	struct last last;

	NEED_RELEASE();
	ASSERT_TRUE(start_last(&last, space, "exit_when_told"));
	ASSERT_TRUE(exits(&last));
	release_and_enter(_metadata, space, &last);
	ptrace(PTRACE_DETACH, last.pid, 0, 0);
	EXPECT_EQ(0, pt_wait(last.pid));
	enter(_metadata, space);
	pvas_space_destroy(space);
	EXPECT_TRUE(pt_spaces_gone());
}

/* and beside one that a signal ends */
MODULE_TEST(of_the_killed, "each task has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	struct last last;

	NEED_RELEASE();
	ASSERT_TRUE(start_last(&last, space, "use_and_pause"));
	ASSERT_EQ(0, pt_hold_exit(last.pid));
	release_and_enter(_metadata, space, &last);
	pt_let_exit(last.pid);
	enter(_metadata, space);
	pvas_space_destroy(space);
	EXPECT_TRUE(pt_spaces_gone());
}

/* and a space that nobody can enter any more ends with it */
MODULE_TEST(of_a_closed_space, "each task has an mm of its own")
{
	struct pvas_space *space;
	struct last last;

	NEED_RELEASE();
	ASSERT_EQ(0, pt_create(&space, 0, PVAS_KEEP_ON_CLOSE));
	ASSERT_TRUE(start_last(&last, space, "exit_when_told"));
	pvas_space_destroy(space);
	ASSERT_TRUE(exits(&last));
	EXPECT_EQ(0, release(last.pid));
	ptrace(PTRACE_DETACH, last.pid, 0, 0);
	EXPECT_EQ(0, pt_wait(last.pid));
	EXPECT_TRUE(pt_spaces_gone());
}

PT_MAIN()
