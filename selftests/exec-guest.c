// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task beside the birth of a process that shares its memory: the old program's
 * memory stays as long as that process has it, whatever happens to the exec.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define ROUNDS		30
#define FIRST_BIRTH_US	5000
/*
 * Make the exec's look at the partition last, in which the birth can fall. A kernel with
 * checks looks as slowly as it makes them.
 */
#define AREAS		20000
#define AREAS_US	300000
#define GUEST_STACK	65536
#define GUEST_BEATS	20

static int beats_fd;
static long birth_us;
static volatile int started;

/* Writes a byte each 10 ms, and at its end an 'E'. Its TLS is that of the thread that made it. */
static int guest(void *arg)
{
	(void)arg;
	for (int i = 0; i < GUEST_BEATS; i++) {
		syscall(SYS_write, beats_fd, ".", 1);
		usleep(10000);
	}
	syscall(SYS_write, beats_fd, "E", 1);
	syscall(SYS_exit_group, 0);
	return 0;
}

static void *make_guest(void *stack)
{
	int64_t begin;

	started = 1;
	begin = now_us();
	while (now_us() - begin < birth_us)
		;
	clone(guest, (char *)stack + GUEST_STACK, CLONE_VM | SIGCHLD, NULL);
	pause();
	return NULL;
}

TASK(exec_beside_birth)
{
	char *areas = mmap(NULL, AREAS * 4096UL, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = malloc(GUEST_STACK);
	pthread_t thread;
	int64_t begin;

	CHECK(areas != MAP_FAILED && stack);
	begin = now_us();
	for (int i = 0; i < AREAS && now_us() - begin < AREAS_US; i += 2)
		CHECK_EQ(0, mprotect(areas + i * 4096UL, 4096, PROT_READ | PROT_WRITE));
	beats_fd = atoi(pt_args[0]);
	birth_us = atol(getenv("BIRTH_US"));
	CHECK_EQ(0, pthread_create(&thread, NULL, make_guest, stack));
	while (!started)
		;
	pt_exec_as("succeed", NULL);
}

/* Reads to the end of a guest's output: 1 if it wrote its last byte, 0 if not, -1: none was born */
static int guest_ended_well(int fd, pid_t task)
{
	char beat;
	int n = 0;

	while (read(fd, &beat, 1) == 1)
		if (!n++) {
			usleep(20000);
			kill(task, SIGKILL);
		}
	return n ? beat == 'E' : -1;
}

static int birth_after(struct pvas_space *space, long us)
{
	char birth[24];
	int fd[2], well;
	pid_t pid;

	if (pipe(fd))
		return 0;
	snprintf(birth, sizeof(birth), "%ld", us);
	setenv("BIRTH_US", birth, 1);
	pid = pt_start_task_fd(space, PVAS_ANY, "exec_beside_birth", fd[1]);
	close(fd[1]);
	well = pid > 0 ? guest_ended_well(fd[0], pid) : 0;
	close(fd[0]);
	if (pid > 0)
		pt_wait(pid);
	return well;
}

/*
 * A task that is killed while it waits for such a process leaves the memory to that process.
 * The last moment for a birth is just before the exec ends the other threads: the rounds stay
 * near it.
 */
PVAS_TEST(guest_born_in_exec)
{
	struct pvas_space *space = PT_SPACE();
	long us = FIRST_BIRTH_US;
	int born = 0, well;

	if (pt_backend() != PVAS_BACKEND_KERNEL) {
		pvas_space_destroy(space);
		SKIP(return, "the module waits for such a child, the user backend leaves");
	}
	for (int i = 0; i < ROUNDS; i++) {
		well = birth_after(space, us);
		EXPECT_NE(0, well) TH_LOG("born after %ld us", us);
		born += well >= 0;
		us += well >= 0 ? us / 4 : -us / 5;
	}
	EXPECT_LT(0, born);
	EXPECT_LT(born, ROUNDS);
	pvas_space_destroy(space);
}

PT_MAIN()
