// SPDX-License-Identifier: LGPL-2.1-or-later
/* The user backend: whether a process has left the launcher's memory by execve(), or is in one. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "callers.h"

/* By vfork(): it has our memory until it calls execve(). */
static pid_t start_program(const char *path, const char *arg)
{
	pid_t pid = vfork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, arg, NULL);
		_exit(127);
	}
	return pid;
}

TEST(program_has_left)
{
	pid_t pid;

	ASSERT_EQ(begin(), 0);
	pid = start_program("/bin/sleep", "100");
	EXPECT_EQ(user_caller_left(pid, pid), 1);
	/* Nor is it taken for a thread that had its number before. */
	EXPECT_EQ(user_caller_left(getpid(), pid), 0);
	EXPECT_EQ(user_caller_left(getpid(), getpid()), 0);
	end(pid);
}

/* This program again: says that it has begun, and does no more. */
static void __attribute__((constructor)) wait_if_told(void)
{
	const char *fd = getenv("TELL");

	if (fd && write(atoi(fd), "", 1) == 1)
		wait_for_ever(NULL);
}

/* Of the same program only the sizes of the two differ. */
TEST(same_program_has_left)
{
	char number[12], c;
	int ready[2];
	pid_t pid;

	ASSERT_EQ(begin(), 0);
	ASSERT_NE(mmap(NULL, 1 << 24, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
	ASSERT_EQ(pipe(ready), 0);
	snprintf(number, sizeof(number), "%d", ready[1]);
	setenv("TELL", number, 1);
	pid = start_program("/proc/self/exe", NULL);
	unsetenv("TELL");
	ASSERT_EQ(read(ready[0], &c, 1), 1);
	EXPECT_EQ(user_caller_left(pid, pid), 1);
	end(pid);
}

static void *map_on(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		munmap(mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		       1 << 16);
	return NULL;
}

/* The memory of both has another size each moment. */
TEST(who_shares_has_not_left)
{
	int i, stop = 0, wrong = 0;
	pthread_t t[2];
	pid_t pid;

	ASSERT_EQ(begin(), 0);
	pid = start_sharing();
	for (i = 0; i < 2; i++)
		ASSERT_EQ(pthread_create(&t[i], NULL, map_on, &stop), 0);
	for (i = 0; i < 20000; i++)
		wrong += user_caller_left(pid, pid);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	EXPECT_EQ(wrong, 0);
	end(pid);
}

/* ---- who looks for the launcher ---- */

static void stop(int signo)
{
	(void)signo;
	syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP);
}

/* A child that asks to end with its parent stops. */
static int stop_children(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	signal(SIGSYS, stop);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* As with the launcher's process group, of which the launcher alone has been continued */
TEST(who_looks_is_stopped)
{
	static const struct user_part nowhere;
	struct user_space u = { .owner = getpid() };
	char text[64];

	ASSERT_EQ(begin(), 0);
	ASSERT_EQ(stop_children(), 0);
	alarm(30);
	EXPECT_EQ(user_ask(&u, &nowhere, getpid(), "syscall", text, sizeof(text)), -EAGAIN);
}

TEST_HARNESS_MAIN
