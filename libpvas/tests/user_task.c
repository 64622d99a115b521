// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a task may map and change, and what is refused, with which errno: the
 * rules are the same on both backends. Also what its fork, vfork and exec'ed
 * children may. Run by tests/user.c; a status of 0 means that all was right.
 *
 *	user_task bounds|place|heap|files|children|signals|filter|threads|exec PROGRAM
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
#include "task_check.h"

#define PAGE		4096UL
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define RW		(PROT_READ | PROT_WRITE)
#define X32_BIT		0x40000000L

static char *base;		/* of our partition */
static size_t size;

#define MAP_FAILS(call, err)	((call) == MAP_FAILED && errno == (err))

static int inside(const void *p)
{
	return (const char *)p >= base && (const char *)p < base + size;
}

static void *map(size_t len)
{
	return mmap(NULL, len, RW, ANON, -1, 0);
}

/* ---- what is another's ---- */

static void bounds_of(char *other)
{
	char *own = map(4 * PAGE);

	CHECK(inside(own));
	CHECK(FAILS(munmap(other, PAGE), EPERM));
	CHECK(FAILS(mprotect(other, PAGE, PROT_READ), EPERM));
	CHECK(FAILS(madvise(other, PAGE, MADV_DONTNEED), EPERM));
	CHECK(FAILS(mlock(other, PAGE), EPERM));
	CHECK(FAILS(munlock(other, PAGE), EPERM));
	CHECK(FAILS(syscall(SYS_mlock2, other, PAGE, 0), EPERM));
	CHECK(FAILS(syscall(SYS_pkey_mprotect, other, PAGE, PROT_READ, -1), EPERM));
	CHECK(FAILS(syscall(SYS_remap_file_pages, other, PAGE, 0, 0, 0), EPERM));
	CHECK(FAILS(syscall(SYS_mbind, other, PAGE, 0, NULL, 0, 0), EPERM));
	CHECK(FAILS(shmdt(other), EPERM));
	CHECK(MAP_FAILS(mremap(other, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EPERM));
	CHECK(MAP_FAILS(mremap(own, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other), EPERM));
	CHECK(MAP_FAILS(mmap(other, PAGE, RW, ANON | MAP_FIXED, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(other, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), ENOMEM));
	CHECK(inside(mmap(other, PAGE, RW, ANON, -1, 0)));	/* a hint is only that */
	CHECK(munmap(own, 4 * PAGE) == 0);
}

static void bounds_own_edge(void)
{
	char *end = base + size, params[256] = "";

	/* What begins here and ends there is refused whole. */
	CHECK(FAILS(munmap(end - PAGE, 2 * PAGE), EPERM));
	CHECK(FAILS(munmap(base - PAGE, 2 * PAGE), EPERM));
	CHECK(FAILS(mprotect(base, size + PAGE, PROT_READ), EPERM));
	CHECK(MAP_FAILS(mmap(end - PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0), ENOMEM));
	/* To the last byte it is ours. */
	CHECK(madvise(end - 16 * PAGE, 16 * PAGE, MADV_NORMAL) == 0 || errno == ENOMEM);
	/* What wraps around is the call's own to refuse. */
	CHECK(FAILS(munmap(base, (size_t)-PAGE), EINVAL));
	CHECK(FAILS(munmap(base + 1, PAGE), EINVAL));
	CHECK(FAILS(munmap(base, 0), EINVAL));
	CHECK(MAP_FAILS(mmap(NULL, 0, RW, ANON, -1, 0), EINVAL));
	CHECK(MAP_FAILS(mmap(NULL, 2 * size, RW, ANON | MAP_NORESERVE, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(NULL, (size_t)-PAGE, RW, ANON, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0), ENOMEM));
	CHECK(FAILS(syscall(SYS_io_setup, 1, &base), ENOSYS));
	CHECK(FAILS(syscall(SYS_io_uring_setup, 4, &params), ENOSYS));
}

/* By the numbers of x32, which a kernel may lack, and of i386. */
static void bounds_other_abis(char *other)
{
	char *p = mmap(NULL, 2UL << 20, RW, ANON | MAP_HUGETLB, -1, 0);

	CHECK(FAILS(syscall(X32_BIT | SYS_munmap, other, PAGE), ENOSYS));
	CHECK(FAILS(syscall(X32_BIT | SYS_mmap, NULL, PAGE, RW, ANON, -1, 0), ENOSYS));
	CHECK(FAILS(syscall(X32_BIT | SYS_getppid), ENOSYS));
	/* Huge pages are there or are not. */
	CHECK(p == MAP_FAILED || inside(p));
	CHECK(p == MAP_FAILED || munmap(p, 2UL << 20) == 0);
}

static void test_bounds(void)
{
	static int here;

	bounds_of(base + size);
	bounds_of(base - 16 * PAGE);
	bounds_of((char *)PAGE);
	bounds_own_edge();
	bounds_other_abis(base + size);
	CHECK(inside(&here));
}

/* ---- placement ---- */

static void place_many(void)
{
	char *p[64];
	unsigned int round, i;

	/* Of many lengths, in all orders: none may come upon another. */
	memset(p, 0, sizeof(p));
	srand(1);
	for (round = 0; round < 4000; round++) {
		size_t len;

		i = (unsigned int)rand() % 64;
		len = PAGE << (i % 11);
		if (p[i]) {
			CHECK(*(unsigned int *)p[i] == i);
			CHECK(p[i][len - 1] == (char)i);
			CHECK(munmap(p[i], len) == 0);
			p[i] = NULL;
			continue;
		}
		p[i] = map(len);
		CHECK(inside(p[i]) && !*p[i] && !p[i][len - 1]);
		*(unsigned int *)p[i] = i;
		p[i][len - 1] = (char)i;
	}
}

static void place_large(void)
{
	size_t half = size / 4;
	char *a, *b;
	int i;

	/* Again and again more than there is: what was freed is found. */
	for (i = 0; i < 40; i++) {
		a = mmap(NULL, half, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
		b = map(PAGE * (i + 1));
		CHECK(inside(a) && inside(b));
		CHECK(munmap(a, half) == 0);
	}
	a = mmap(NULL, 64UL << 20, RW, ANON | MAP_NORESERVE, -1, 0);
	CHECK(!((uintptr_t)a & ((2UL << 20) - 1)));	/* fit for huge pages */
	CHECK(munmap(a, 64UL << 20) == 0);
}

/* Growing at the end of the partition must not lead into the next. */
static void place_at_the_edge(void)
{
	char *last = mmap(base + size - PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), *p;

	CHECK(last == base + size - PAGE);
	CHECK(MAP_FAILS(mremap(last, PAGE, 2 * PAGE, 0), ENOMEM));
	p = mremap(last, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(inside(p) && p != last);
}

static void place_mremap(void)
{
	char *a = map(2 * PAGE), *b;

	strcpy(a, "kept");
	CHECK(mmap(a + 2 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == a + 2 * PAGE);
	CHECK(MAP_FAILS(mremap(a, 2 * PAGE, 3 * PAGE, 0), ENOMEM));
	place_at_the_edge();
	b = mremap(a, 2 * PAGE, 300 * PAGE, MREMAP_MAYMOVE);
	CHECK(inside(b) && !strcmp(b, "kept"));
	b = mremap(b, 300 * PAGE, PAGE, MREMAP_MAYMOVE);
	CHECK(inside(b) && !strcmp(b, "kept"));
	a = mremap(b, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	CHECK(inside(a) && a != b && !strcmp(a, "kept") && !*b);
	a = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	strcpy(a, "shared");
	b = mremap(a, 0, PAGE, MREMAP_MAYMOVE);
	CHECK(inside(b) && b != a && !strcmp(b, "shared"));
}

static void place_shm(void)
{
	int id = shmget(IPC_PRIVATE, 3 * PAGE, IPC_CREAT | 0600);
	char *a = shmat(id, NULL, 0), *b = shmat(id, NULL, SHM_RDONLY);

	shmctl(id, IPC_RMID, NULL);
	CHECK(inside(a) && inside(b) && a != b);
	strcpy(a, "segment");
	CHECK(!strcmp(b, "segment"));
	CHECK(shmdt(a) == 0 && shmdt(b) == 0);
	CHECK(FAILS((intptr_t)shmat(id, NULL, 0), EINVAL));
}

static void test_place(void)
{
	char *hint = base + size / 2;

	CHECK(mmap(hint, PAGE, RW, ANON, -1, 0) == hint);
	CHECK(inside(mmap(hint, PAGE, RW, ANON, -1, 0)));
	CHECK(MAP_FAILS(mmap(hint, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST));
	CHECK(mmap(hint, PAGE, RW, ANON | MAP_FIXED, -1, 0) == hint);
	place_many();
	place_large();
	place_mremap();
	place_shm();
}

/* ---- brk ---- */

/* The heap ends where a mapping is. */
static void heap_meets_a_mapping(void)
{
	char *now = sbrk(0), *wall = (char *)(((uintptr_t)now + 64 * PAGE) & ~(PAGE - 1));

	CHECK(mmap(wall, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == wall);
	*wall = 42;
	CHECK(FAILS(brk(wall + 1), ENOMEM));
	CHECK(brk(wall) == 0 && *wall == 42);
	CHECK(brk(now) == 0 && munmap(wall, PAGE) == 0);
}

/* Down and up again: zero and writable, whatever was done with it, or beyond it. */
static void heap_comes_back_new(void)
{
	const size_t len = 256 * PAGE;
	char *start = sbrk(0), *p, *mid;
	size_t i, how, old;

	CHECK(brk((char *)(((uintptr_t)start + PAGE - 1) & ~(PAGE - 1))) == 0);
	for (how = 0; how < 4; how++) {
		p = sbrk((intptr_t)len);
		mid = p + len / 2;
		memset(p, 0xaa, len);
		if (how == 0)
			CHECK(mlock(mid, PAGE) == 0);
		else if (how == 1)
			CHECK(mprotect(mid, PAGE, PROT_READ) == 0);
		else if (how == 2)
			CHECK(munmap(mid, PAGE) == 0);
		CHECK(brk(p) == 0);
		if (how == 3)
			CHECK(munmap(p, len) == 0);
		CHECK(sbrk((intptr_t)len) == p);
		for (i = old = 0; i < len; i++)
			old += p[i]++ != 0;
		CHECK(!old);
		CHECK(brk(p) == 0);
	}
	CHECK(brk(start) == 0);
}

static void test_heap(void)
{
	struct rlimit limit = { 64UL << 20, 64UL << 20 };
	char *start = sbrk(0), *p;
	size_t i;

	CHECK(inside(start));
	heap_meets_a_mapping();
	heap_comes_back_new();
	p = sbrk(100UL << 20);
	CHECK(p == start);
	memset(p, 1, 100UL << 20);
	CHECK(sbrk(-(100L << 20)) == start + (100UL << 20));
	CHECK(sbrk(0) == start);
	p = sbrk(1UL << 20);
	for (i = 0; i < 1UL << 20 && !p[i]; i++)
		;
	CHECK(i == 1UL << 20);		/* zero again */
	CHECK(FAILS(brk(base - 1), ENOMEM) || sbrk(0) == start + (1UL << 20));
	CHECK(FAILS(brk(base + size), ENOMEM));
	CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
	CHECK(FAILS((intptr_t)sbrk(80UL << 20), ENOMEM));
	CHECK(sbrk(1) == start + (1UL << 20));
}

/* ---- files ---- */

static void *map_in_thread(void *arg)
{
	return mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, *(int *)arg, 0);
}

static void test_files(void)
{
	char path[4096], *p;
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
	/* Whose program is it? */
	memset(path, 0, sizeof(path));
	CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	CHECK(strstr(path, "/user_task"));
	CHECK(readlink("/proc/self/exe", path, 4) == 4 && !memcmp(path, "/", 1));
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

/* What waits for something else is interrupted as ever. */
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

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "nothing"))
		return 0;
	if (pvas_partition_get(pvas_task_get_index(), (void **)&base, &size))
		return 2;
	if (!strcmp(what, "bounds"))
		test_bounds();
	else if (!strcmp(what, "place"))
		test_place();
	else if (!strcmp(what, "heap"))
		test_heap();
	else if (!strcmp(what, "files"))
		test_files();
	else if (!strcmp(what, "children"))
		test_children(argv[0]);
	else if (!strcmp(what, "signals"))
		test_signals();
	else if (!strcmp(what, "filter"))
		test_filter();
	else if (!strcmp(what, "threads"))
		test_threads();
	else if (!strcmp(what, "exec") && argc > 2)
		execv(argv[2], argv + 2);
	else
		return 2;
	return failures != 0;
}
