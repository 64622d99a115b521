// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rules for a task, its threads and its fork, vfork and exec'ed children. Run by
 * user.c; a status of 0 means that all was right. user_task_memory.c has the rules of
 * mapping.
 *
 *	user_task bounds|place|heap|files|children|signals|filter|threads|leave PROGRAM
 *	user_task above_break|map_flags|interrupted|below
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pvas.h"
#include "user_task.h"

char *base;
size_t size;

/* ---- files ---- */

static void *map_in_thread(void *arg)
{
	return mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, *(int *)arg, 0);
}

static void test_files(void)
{
	char path[4096], name[64], *p;
	pthread_t t;
	void *q;
	int fd;

	fd = memfd_create("x", MFD_CLOEXEC);
	CHECK(ftruncate(fd, 2 * PAGE) == 0);
	p = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
	CHECK(inside(p));
	strcpy(p + PAGE, "in the file");
	CHECK(inside(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE)));
	CHECK(!strcmp(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE), "in the file"));
	pthread_create(&t, NULL, map_in_thread, &fd);
	pthread_join(t, &q);
	CHECK(inside(q));
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, MAP_SHARED, 999, 0), EBADF));
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, MAP_SHARED, -1, 0), EBADF));
	close(fd);
	fd = open("/proc/self/cmdline", O_RDONLY);
	CHECK(MAP_FAILS(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0), ENODEV));
	close(fd);
	fd = open("/etc/passwd", O_RDONLY);
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0), EACCES));
	close(fd);
	/* /proc/self/exe must name the task's program. */
	memset(path, 0, sizeof(path));
	CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	CHECK(strstr(path, "/user_task"));
	CHECK(readlink("/proc/self/exe", path, 4) == 4 && !memcmp(path, "/", 1));
	snprintf(name, sizeof(name), "/proc/%ld/exe", (1L << 32) + getpid());
	CHECK(FAILS(readlink(name, path, sizeof(path)), ENOENT));
	snprintf(name, sizeof(name), "/proc/1/task/%d/exe", getpid());
	CHECK(FAILS(readlink(name, path, sizeof(path)), ENOENT));
	snprintf(name, sizeof(name), "/proc/%d/task/%d/exe", getpid(), getpid());
	CHECK(readlink(name, path, sizeof(path)) > 0);
	CHECK(FAILS(readlink("/nonesuch", path, 4), ENOENT));
	CHECK(FAILS(syscall(SYS_readlink, 1, path, 4), EFAULT));
	CHECK(FAILS(syscall(SYS_readlink, "/proc/self/exe", 1, 4), EFAULT));
}

/* ---- children ---- */

static int end_of(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* An ordinary process with a copy of the space: all of it is its own now. */
static int fork_child(void)
{
	char path[4096] = "", *p, *q;
	int i;

	failures = 0;
	/* Its calls need the launcher until it calls execve. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(pvas_task_get_index() == -ESRCH);
	for (i = 0; i < 2000; i++) {
		p = malloc(100000);
		CHECK(p);
		memset(p, i, 100000);
		if (i % 3)
			free(p);
	}
	p = map(PAGE);
	CHECK(p != MAP_FAILED && munmap(p, PAGE) == 0);
	q = mmap(NULL, 4 * PAGE, RW, ANON, -1, 0);
	p = mremap(q, 4 * PAGE, 400 * PAGE, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED);
	CHECK(mprotect(p, PAGE, PROT_READ) == 0);
	p = sbrk(0);
	CHECK(sbrk(4 * PAGE) == p || errno == ENOMEM);
	CHECK(munmap(base + size, size) == 0);	/* another's, copied or not */
	CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 && strstr(path, "/user_task"));
	CHECK(system("exit 3") == 3 << 8);
	return failures != 0;
}

/* Nobody else may look into it, nor, where /proc hides such processes, see it. */
static int undumpable_child(void)
{
	struct sigaction act = { .sa_handler = SIG_IGN };
	char *p;
	pid_t pid;

	failures = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	p = map(PAGE);
	CHECK(p != MAP_FAILED && munmap(p, PAGE) == 0);
	CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
	CHECK(malloc(1 << 20));
	pid = fork();
	if (!pid)
		_exit(0);
	CHECK(end_of(pid) == 0);
	CHECK(system("exit 3") == 3 << 8);
	return failures != 0;
}

static void *allocate(void *arg)
{
	int i;

	for (i = 0; i < 2000; i++)
		CHECK(inside(map(PAGE)));
	return arg;
}

static void test_children(const char *self)
{
	char *const args[] = { (char *)self, "nothing", NULL };
	char *const envp[] = { NULL };
	pthread_t t;
	pid_t pid;
	char *p;
	int i;

	pthread_create(&t, NULL, allocate, NULL);
	for (i = 0; i < 4; i++) {
		pid = fork();
		if (!pid)
			_exit(fork_child());
		CHECK(end_of(pid) == 0);
	}
	pid = fork();
	if (!pid)
		_exit(undumpable_child());
	CHECK(end_of(pid) == 0);
	pthread_join(t, NULL);
	CHECK(system("exit 3") == 3 << 8);
	CHECK(posix_spawn(&pid, self, NULL, NULL, args, envp) == 0);
	CHECK(end_of(pid) == 0);
	p = map(PAGE);
	pid = vfork();
	if (!pid) {
		/* It shares our memory, and maps in our partition. */
		p = map(PAGE);
		_exit(inside(p) && FAILS(munmap(base + size, PAGE), EPERM) ? 7 : 8);
	}
	CHECK(end_of(pid) == 7 << 8);
	CHECK(inside(p) && munmap(p, PAGE) == 0);
}

/* ---- signals ---- */

static volatile long ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

/* No call that a worker makes is seen to fail, with SA_RESTART or without. */
static void map_among_signals(void)
{
	char *now = sbrk(0), *p = map(3 * PAGE);
	char exe[8];

	CHECK(inside(p));
	p = mremap(p, 3 * PAGE, 30 * PAGE, MREMAP_MAYMOVE);
	CHECK(inside(p));
	CHECK(munmap(p, 30 * PAGE) == 0);
	CHECK(brk(now + 64 * PAGE) == 0 && sbrk(0) == now + 64 * PAGE);
	CHECK(brk(now) == 0 && sbrk(0) == now);
	CHECK(readlink("/proc/self/exe", exe, sizeof(exe)) == sizeof(exe));
	CHECK(signal(SIGUSR2, tick) != SIG_ERR);
	p = malloc(100000);
	CHECK(p);
	memset(p, 1, 100000);
	free(p);
}

/* Calls that wait for something else are interrupted as ever. */
static void still_interrupted(void)
{
	const struct itimerval once = { { 0, 20000 }, { 0, 20000 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	int p[2];
	char c;

	CHECK(pipe(p) == 0);
	setitimer(ITIMER_REAL, &once, NULL);
	CHECK(FAILS(read(p[0], &c, 1), EINTR));
	setitimer(ITIMER_REAL, &never, NULL);
	close(p[0]);
	close(p[1]);
}

static void test_signals(void)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	struct sigaction sa = { .sa_handler = tick, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (ticks < 300)
		map_among_signals();
	sa.sa_flags = 0;
	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	CHECK(sigaction(SIGALRM, NULL, &sa) == 0 && sa.sa_handler == tick);
	while (ticks < 600)
		map_among_signals();
	often.it_interval = often.it_value = (struct timeval){ 0, 0 };
	setitimer(ITIMER_REAL, &often, NULL);
	still_interrupted();
}

/* ---- a seccomp filter of its own ---- */

static void test_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { 4, code };
	char *p = map(PAGE);

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
	CHECK(MAP_FAILS(mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE), ENOTTY));
	CHECK(inside(map(PAGE)));
	CHECK(FAILS(munmap(base + size, PAGE), EPERM));
}

/* ---- threads ---- */

static void *churn(void *arg)
{
	char *p[16];
	long i;

	for (i = 0; i < 200; i++) {
		p[i % 16] = map(PAGE * (1 + i % 7));
		CHECK(inside(p[i % 16]));
		*p[i % 16] = 1;
		if (i % 16 == 15)
			munmap(p[i % 16], PAGE * (1 + i % 7));
		free(malloc(1000 * i));
	}
	return arg;
}

static void test_threads(void)
{
	pthread_t t[64];
	int i;

	for (i = 0; i < 64; i++)
		CHECK(pthread_create(&t[i], NULL, churn, NULL) == 0);
	for (i = 0; i < 64; i++)
		pthread_join(t[i], NULL);
}

/* ---- programs that are no tasks ---- */

static void *say_and_wait(void *arg)
{
	while (write(STDOUT_FILENO, "\n", 1) != 1)
		;
	sleep(1000);
	return arg;
}

static int first_thread_ends(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, say_and_wait, NULL))
		return 1;
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int failed;

	if (!strcmp(what, "nothing"))
		return 0;
	if (!strcmp(what, "heap_of_kernel"))
		return heap_of_kernel();
	if (!strcmp(what, "first_thread_ends"))
		return first_thread_ends();
	if (pvas_partition_get(pvas_task_get_index(), (void **)&base, &size))
		return 2;
	failed = test_memory(what);
	if (failed < 0)
		failed = test_plain(what, argv[0]);
	if (failed >= 0)
		return failed != 0;
	if (!strcmp(what, "files"))
		test_files();
	else if (!strcmp(what, "children"))
		test_children(argv[0]);
	else if (!strcmp(what, "signals"))
		test_signals();
	else if (!strcmp(what, "filter"))
		test_filter();
	else if (!strcmp(what, "threads"))
		test_threads();
	else if (!strcmp(what, "leave") && argc > 2 && !setenv("PVAS_EXEC", "leave", 1))
		execv(argv[2], argv + 2);
	else
		return 2;
	return failures != 0;
}
