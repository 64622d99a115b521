// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task's effects on its peers, wanted and not: run by tests/peers.c. A status
 * of 0 means that all was right.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pvas.h"
#include "task_check.h"

#define PAGE		4096UL
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define RW		(PROT_READ | PROT_WRITE)
#define SET_VMA		0x53564d41
#define FUTEX_HASH	78
#define SET_MERGE	67
#define SET_MDWE	65

static char *base;
static size_t size;

static int is_mapped(const char *p)
{
	return !msync((void *)((uintptr_t)p & ~(PAGE - 1)), PAGE, MS_ASYNC);
}

/* How many mappings there are in partition @i: where in it is random. */
static int count_mappings(unsigned int i)
{
	unsigned long lo, hi;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += sscanf(line, "%lx-%lx", &lo, &hi) == 2 && lo / size == i;
	fclose(f);
	return n;
}

static int end_of(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* ---- fork ---- */

/* Store to all pages; on each byte that comes say how many faults that makes. */
static int touch(int in, int out, size_t len)
{
	char *p = mmap(NULL, len, RW, ANON, -1, 0), c;
	struct rusage a, b;
	uint64_t faults;
	size_t i;

	madvise(p, len, MADV_NOHUGEPAGE);
	do {
		getrusage(RUSAGE_SELF, &a);
		for (i = 0; i < len; i += PAGE)
			p[i]++;
		getrusage(RUSAGE_SELF, &b);
		faults = (uint64_t)(b.ru_minflt - a.ru_minflt);
		if (write(out, &faults, sizeof(faults)) != sizeof(faults))
			return 1;
	} while (read(in, &c, 1) == 1);
	return 0;
}

static pid_t fork_by(const char *how)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (!strcmp(how, "raw"))
		return (pid_t)syscall(SYS_fork);
	if (!strcmp(how, "clone"))
		return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!strcmp(how, "clone3"))
		return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	return fork();
}

static char *mine;

/* In the child: what is ours is here, and nothing of the peers. */
static void look_around(const char *on_stack)
{
	unsigned int i, self = (unsigned int)((uintptr_t)base / size);

	CHECK(!strcmp(mine, "mapped") && !strcmp(on_stack, "stack"));
	for (i = 1; i < 12; i++)
		if (i != self)
			CHECK(count_mappings(i) == 0);
	CHECK(count_mappings(self) > 0);
	free(malloc(200000));
}

struct forker {
	const char *how;
	int in;
	int out;
};

/* Its child stays until a byte comes. */
static void *fork_and_stay(void *arg)
{
	const struct forker *f = arg;
	char on_stack[] = "stack", c = 0;
	pid_t pid = fork_by(f->how);

	if (!pid) {
		failures = 0;
		look_around(on_stack);
		if (write(f->out, &c, 1) != 1 || read(f->in, &c, 1) != 1)
			_exit(2);
		/* Once more: of what is its own now. */
		pid = fork_by(f->how);
		if (!pid) {
			look_around(on_stack);
			_exit(failures != 0);
		}
		_exit(failures || end_of(pid));
	}
	CHECK(end_of(pid) == 0);
	return NULL;
}

static void forker(const char *how, int in, int out)
{
	struct forker f = { how, in, out };
	pthread_t t;

	mine = mmap(NULL, PAGE, RW, ANON, -1, 0);
	strcpy(mine, "mapped");
	if (strcmp(how, "thread")) {
		fork_and_stay(&f);
		return;
	}
	CHECK(pthread_create(&t, NULL, fork_and_stay, &f) == 0);
	pthread_join(t, NULL);
}

/* Beside others who do the same, and map things. */
static void storm(int rounds)
{
	char on_stack[] = "stack";
	pid_t pid;

	mine = mmap(NULL, PAGE, RW, ANON, -1, 0);
	strcpy(mine, "mapped");
	while (rounds-- > 0) {
		char *p = mmap(NULL, (1 + rounds % 7) * PAGE, RW, ANON, -1, 0);

		pid = fork();
		if (!pid) {
			/* A peer that is about to fork itself is copied along. */
			*p = 1;
			_exit(strcmp(mine, "mapped") || strcmp(on_stack, "stack"));
		}
		CHECK(end_of(pid) == 0);
		if (rounds % 3)
			munmap(p, PAGE);
	}
}

/* The marks of a task's own hold, whatever the others do. */
static void marks(int in, int out)
{
	char *p = mmap(NULL, 3 * PAGE, RW, ANON, -1, 0), c = 0;
	pid_t pid;

	CHECK(madvise(p, PAGE, MADV_DONTFORK) == 0);
	CHECK(madvise(p + PAGE, PAGE, MADV_DONTFORK) == 0);
	CHECK(madvise(p + PAGE, PAGE, MADV_DOFORK) == 0);
	CHECK(write(out, &c, 1) == 1 && read(in, &c, 1) == 1);
	pid = fork();
	if (!pid)
		_exit(is_mapped(p) | !is_mapped(p + PAGE) << 1 | !is_mapped(p + 2 * PAGE) << 2);
	CHECK(end_of(pid) == 0);
}

/* ---- threads and their descriptors ---- */

static void *outlive(void *arg)
{
	char *const args[] = { (char *)"none", NULL };
	int fd = *(int *)arg;
	void *p;

	usleep(100000);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && !strcmp(p, "in the file"));
	CHECK(dlopen("libm.so.6", RTLD_NOW));
	/* One that fails must not look like one that has led away. */
	CHECK(FAILS(execv("/nonesuch", args), ENOENT));
	return NULL;
}

static void *remain(void *arg)
{
	int i;

	pthread_join(*(pthread_t *)arg, NULL);
	for (i = 0; i < 50; i++) {
		CHECK(mmap(NULL, PAGE, RW, ANON, -1, 0) != MAP_FAILED);
		usleep(10000);
	}
	exit(failures != 0);
}

static void __attribute__((noreturn)) first_thread_ends(void)
{
	static pthread_t a, b;
	static int fd;

	fd = memfd_create("x", 0);
	CHECK(write(fd, "in the file", 12) == 12);
	pthread_create(&a, NULL, outlive, &fd);
	pthread_create(&b, NULL, remain, &a);
	pthread_exit(NULL);
}

/* The file itself, which root can open */
static void try_file(unsigned long from, unsigned long to)
{
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", from, to);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	CHECK(pwrite(fd, path, 1, 0) == -1);
	CHECK(mmap(NULL, to - from, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	close(fd);
}

/* All views of it that this process has. Returns how many there are. */
static int try_views(void)
{
	FILE *maps = fopen("/proc/thread-self/maps", "re");
	unsigned long from, to;
	char line[512], rights[8];
	int n = 0;

	CHECK(maps);
	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "pvas-loader") ||
		    sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3)
			continue;
		/* Then it has a copy of its own of each page that it stores to. */
		CHECK(!strcmp(rights, "r-xp"));
		try_file(from, to);
		n++;
	}
	if (maps)
		fclose(maps);
	return n;
}

/* All tasks run it: a fork child can be another user's by the time it tries. */
static void loader_stays_as_it_is(void)
{
	pid_t pid;

	CHECK(try_views() > 0);
	pid = fork();
	if (!pid) {
		CHECK(try_views() > 0);
		_exit(failures != 0);
	}
	CHECK(end_of(pid) == 0);
}

static void *map_own(void *arg)
{
	int fd = *(int *)arg, other = memfd_create("y", 0);
	void *p;

	CHECK(unshare(CLONE_FILES) == 0);
	CHECK(write(other, "another", 8) == 8);
	CHECK(dup2(other, fd) == fd);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && !strcmp(p, "another"));
	CHECK(close(fd) == 0);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EBADF);
	return NULL;
}

static void descriptors(void)
{
	int fd = memfd_create("x", 0), p[2];
	pthread_t t;
	char *m;

	CHECK(write(fd, "in the file", 12) == 12);
	pthread_create(&t, NULL, map_own, &fd);
	pthread_join(t, NULL);
	m = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(m != MAP_FAILED && !strcmp(m, "in the file"));
	/* It is not waited for a writer. */
	CHECK(pipe(p) == 0 && close(p[1]) == 0);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, p[0], 0) == MAP_FAILED && errno == ENODEV);
}

/* ---- whose program? ---- */

static int names(const char *link, const char *program)
{
	char text[4096] = "";

	return readlink(link, text, sizeof(text) - 1) > 0 && strstr(text, program);
}

static void *look_at_links(void *arg)
{
	pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
	char link[64], *path;

	CHECK(names("/proc/self/exe", "/peer_task"));
	CHECK(names("/proc/thread-self/exe", "/peer_task"));
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	CHECK(names(link, "/peer_task"));
	snprintf(link, sizeof(link), "/proc/%d/exe", tid);
	CHECK(names(link, "/peer_task"));
	snprintf(link, sizeof(link), "/proc/%d/task/%d/exe", pid, tid);
	CHECK(names(link, "/peer_task"));
	path = realpath("/proc/self/exe", NULL);
	CHECK(path && strstr(path, "/peer_task"));
	path = realpath("/proc/thread-self/exe", NULL);
	CHECK(path && strstr(path, "/peer_task"));
	/* A peer's is its own, and others' are the kernel's to tell. */
	snprintf(link, sizeof(link), "/proc/%s/exe", (const char *)arg);
	CHECK(names(link, "/sleep"));
	snprintf(link, sizeof(link), "/proc/%d/exe", getppid());
	CHECK(names(link, "/peers"));
	CHECK(FAILS(readlink("/proc/999999999/exe", link, sizeof(link)), ENOENT));
	return NULL;
}

static void links(char *peer)
{
	pthread_t t;
	pid_t pid;

	look_at_links(peer);
	pthread_create(&t, NULL, look_at_links, peer);
	pthread_join(t, NULL);
	pid = fork();
	if (!pid) {
		failures = 0;
		CHECK(names("/proc/self/exe", "/peer_task"));
		CHECK(realpath("/proc/self/exe", NULL) &&
		      strstr(realpath("/proc/self/exe", NULL), "/peer_task"));
		_exit(failures != 0);
	}
	CHECK(end_of(pid) == 0);
}

/* ---- what would change the mm for all ---- */

static void shared_state(void)
{
	char buf[64] = "", *p = mmap(NULL, PAGE, RW, ANON, -1, 0);
	struct { void *at; size_t len; } range = { base + size + (2UL << 20), PAGE };
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	CHECK(FAILS(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), EPERM));
	CHECK(prctl(PR_GET_DUMPABLE) == 1 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
	CHECK(FAILS(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), EPERM));
	CHECK(FAILS(prctl(SET_MDWE, 1, 0, 0, 0), EPERM));
	CHECK(FAILS(prctl(SET_MERGE, 1, 0, 0, 0), EPERM));
	CHECK(FAILS(prctl(PR_SET_MM, PR_SET_MM_START_BRK, p, 0, 0), EPERM));
	CHECK(FAILS(prctl(FUTEX_HASH, 1, 16, 0, 0), EPERM));
	CHECK(prctl(PR_SET_NAME, "shared", 0, 0, 0) == 0);
	CHECK(FAILS(prctl(SET_VMA, 0, range.at, PAGE, "x"), EPERM));
	CHECK(prctl(SET_VMA, 0, p, PAGE, "x") == 0 || errno == EINVAL);
	CHECK(FAILS(mlockall(MCL_FUTURE), EPERM) && FAILS(mlockall(MCL_CURRENT), EPERM));
	CHECK(FAILS(munlockall(), EPERM));
	CHECK(FAILS(syscall(SYS_migrate_pages, 0, 0, NULL, NULL), EPERM));
	CHECK(FAILS(syscall(SYS_arch_prctl, 0x4002, 1), EPERM));
	CHECK(FAILS(syscall(SYS_arch_prctl, 0x5001, 1), EPERM));
	CHECK(FAILS(syscall(SYS_arch_prctl, 0x2003, base), EPERM));
	CHECK(FAILS(syscall(SYS_modify_ldt, 0, buf, sizeof(buf)), ENOSYS));
	CHECK(FAILS(syscall(SYS_userfaultfd, O_CLOEXEC), ENOSYS));
	CHECK(FAILS(syscall(SYS_process_madvise, pidfd, &range, 1, MADV_DONTNEED, 0), ENOSYS));
	CHECK(FAILS(syscall(SYS_io_uring_setup, 4, buf), ENOSYS));
	CHECK(FAILS(syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0), ENOSYS));
}

/* A fork child is by itself, and may. */
static void own_state(void)
{
	pid_t pid = fork();

	if (!pid) {
		failures = 0;
		CHECK(munlockall() == 0);
		CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
		CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
		CHECK(prctl(PR_GET_DUMPABLE) == 0);
		CHECK(mmap(NULL, PAGE, RW, ANON, -1, 0) != MAP_FAILED);
		_exit(failures != 0);
	}
	CHECK(end_of(pid) == 0);
	CHECK(prctl(PR_GET_DUMPABLE) == 1);
}

/* ---- much memory, until it is told to end ---- */

static int eat(int in, int out, size_t len)
{
	char *p = mmap(NULL, len, RW, ANON, -1, 0), c = 0;
	size_t i;

	madvise(p, len, MADV_NOHUGEPAGE);
	for (i = 0; i < len; i += PAGE)
		p[i] = 1;
	return write(out, &c, 1) != 1 || read(in, &c, 1) < 0;
}

/* The same by @nr mappings of a page each, above large ones that are quick to give back */
static int scatter(int in, int out, size_t nr)
{
	const size_t large = 1UL << 28;
	char c = 0, *p = base + size / 2;
	int i;

	for (i = 0; i < 16; i++, p += 2 * large)
		CHECK(mmap(p, large, PROT_READ, ANON | MAP_FIXED | MAP_NORESERVE, -1, 0) == p);
	for (; nr; nr--, p += 2 * PAGE) {
		CHECK(mmap(p, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p);
		*p = 1;
	}
	return failures || write(out, &c, 1) != 1 || read(in, &c, 1) < 0;
}

static int run(int argc, char **argv)
{
	const char *what = argv[1];
	int a = argc > 2 ? atoi(argv[2]) : 0, b = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "touch"))
		return touch(a, b, strtoul(argv[4], NULL, 10) << 20);
	if (!strcmp(what, "eat"))
		return eat(a, b, strtoul(argv[4], NULL, 10) << 20);
	if (!strcmp(what, "scatter"))
		return scatter(a, b, strtoul(argv[4], NULL, 10));
	if (!strcmp(what, "map-none"))
		return mmap(NULL, PAGE, PROT_READ, MAP_SHARED, atoi(argv[2]), 0) != MAP_FAILED ||
		       errno != ENODEV;
	if (!strcmp(what, "loader"))
		loader_stays_as_it_is();
	else if (!strcmp(what, "fork"))
		forker(argv[4], a, b);
	else if (!strcmp(what, "marks"))
		marks(a, b);
	else if (!strcmp(what, "storm"))
		storm(a);
	else if (!strcmp(what, "first-thread-ends"))
		first_thread_ends();
	else if (!strcmp(what, "descriptors"))
		descriptors();
	else if (!strcmp(what, "links"))
		links(argv[2]);
	else if (!strcmp(what, "shared-state"))
		shared_state();
	else if (!strcmp(what, "own-state"))
		own_state();
	else
		return 2;
	return failures != 0;
}

int main(int argc, char **argv)
{
	if (argc < 2 || pvas_partition_get(pvas_task_get_index(), (void **)&base, &size))
		return 2;
	return run(argc, argv);
}
