// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend and the launcher's memory: what it maps itself, what it copies in a fork,
 * and what its tasks may store to. Needs neither module nor root.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

static int start(struct pvas_space *s, unsigned int index, const char *what, pid_t *pid)
{
	char *argv[] = { (char *)ours("user_task"), (char *)what, NULL };

	return pvas_task_spawn(s, index, argv[0], argv, environ, NULL, pid);
}

FIXTURE(launcher)
{
	struct pvas_space *s;
};

FIXTURE_SETUP(launcher)
{
	const struct pvas_create_attr user = {
		.size = sizeof(user), .backend = PVAS_BACKEND_USER,
	};

	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(launcher)
{
	pvas_space_destroy(self->s);
}

/* A partition is no more than addresses that were free: the launcher can map there. */
static void launcher_has_mapped(struct __test_metadata *_metadata, struct pvas_space *s)
{
	char *argv[] = { (char *)"true", NULL }, *p;
	uint64_t size;
	pid_t pid;
	int i;

	pvas_space_get_bounds(s, NULL, NULL, &size);
	p = mmap((void *)(12 * size + size / 2), 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ((uint64_t)p / size, 12);
	strcpy(p, "precious");
	EXPECT_EQ(pvas_task_spawn(s, 12, "/nonesuch", argv, environ, NULL, &pid), -EBUSY);
	EXPECT_EQ(pvas_task_spawn(s, 12, "/bin/true", argv, environ, NULL, &pid), -EBUSY);
	for (i = 0; i < 13; i++) {
		ASSERT_GT(start(s, PVAS_ANY, "nothing", &pid), 0);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	EXPECT_STREQ(p, "precious");
	munmap(p, 4096);
	EXPECT_EQ(pvas_task_spawn(s, 12, "/bin/true", argv, environ, NULL, &pid), 12);
	EXPECT_EQ(end_of(pid), 0);
}

TEST_F(launcher, launchers_memory)
{
	launcher_has_mapped(_metadata, self->s);
}

TEST_F(launcher, launchers_memory_under_a_limit)
{
	const struct rlimit limit = { 1UL << 36, 1UL << 36 };

	ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	launcher_has_mapped(_metadata, self->s);
}

/* A task with devices, also by a file of sysfs or at an address, is copied by the others' forks. */
static int marks_after_fork(struct pvas_space *s, const char *what)
{
	int status, ret;
	pid_t pid;

	ret = start(s, PVAS_ANY, what, &pid);
	if (ret < 0 || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return -1;
	ret = fork();
	if (!ret)
		_exit(0);
	end_of(ret);
	kill(pid, SIGCONT);
	return end_of(pid);
}

TEST_F(launcher, marks)
{
	void *p;
	int fd;

	EXPECT_EQ(marks_after_fork(self->s, "marks"), 0);
	EXPECT_EQ(marks_after_fork(self->s, "marks_fixed"), 0);
	fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p != MAP_FAILED)
		EXPECT_EQ(marks_after_fork(self->s, "marks_sysfs"), 0);
	close(fd);
}

/* The address of the table in the header is another one now. */
TEST_F(launcher, wild_store)
{
	pid_t pid;

	ASSERT_EQ(start(self->s, 5, "wild_store", &pid), 5);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 0);
}

/* ---- a thread that forks beside one that makes spaces ---- */

#define SPACES 100

/* How many descriptors there are whose file's name begins with @prefix */
static int count_files(const char *prefix)
{
	char name[64];
	const ssize_t len = (ssize_t)strlen(prefix);
	const struct dirent *d;
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && (d = readdir(dir)))
		if (readlinkat(dirfd(dir), d->d_name, name, sizeof(name)) >= len)
			n += !memcmp(name, prefix, len);
	closedir(dir);
	return n;
}

/* The children get nothing of a space. */
static void *fork_until(void *arg)
{
	int *stop = arg, status = 0;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE) && !status) {
		pid_t pid = fork();

		if (!pid)
			_exit(count_files("anon_inode:") > 0);
		status = end_of(pid);
	}
	return (void *)(long)status;
}

/* A fork that begins before the end of a space, or before it is complete, does no harm. */
TEST(forks_beside_spaces)
{
	const struct pvas_create_attr user = {
		.size = sizeof(user), .backend = PVAS_BACKEND_USER,
	};
	int i, before, stop = 0;
	struct pvas_space *s;
	pthread_t thread;
	void *status;

	before = count_files("");
	ASSERT_EQ(pthread_create(&thread, NULL, fork_until, &stop), 0);
	for (i = 0; i < SPACES; i++) {
		ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
		pvas_space_destroy(s);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, &status);
	EXPECT_EQ(status, NULL);
	EXPECT_EQ(count_files(""), before);
}

/* ---- a signal handler that forks ---- */

#define STEP_US 15

static int bad_children;

/* Could it store to what is the code of all tasks? 0 or 1 */
static int has_writable_loader(void)
{
	static char maps[1 << 16];
	int fd = open("/proc/self/maps", O_RDONLY), found = 0;
	ssize_t n, len = 0;
	char *line, *rest;

	while ((n = read(fd, maps + len, sizeof(maps) - 1 - len)) > 0)
		len += n;
	for (line = strtok_r(maps, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		found |= strstr(line, "pvas-loader") && strstr(line, " rw-s ");
	return found;
}

static void on_alarm(int sig)
{
	pid_t pid = sig ? (pid_t)syscall(SYS_fork) : -1;	/* libc's would wait for malloc() */

	if (!pid)
		_exit(has_writable_loader());
	bad_children += !!end_of(pid);
}

TEST(handlers_that_fork)
{
	const struct pvas_create_attr user = {
		.size = sizeof(user), .backend = PVAS_BACKEND_USER,
	};
	const struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct pvas_space *s;
	int i;

	ASSERT_EQ(sigaction(SIGALRM, &act, NULL), 0);
	for (i = 1; i <= SPACES; i++) {
		const struct itimerval once = { .it_value = { 0, i * STEP_US } };

		ASSERT_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
		ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
		pvas_space_destroy(s);
	}
	EXPECT_EQ(bad_children, 0);
}

/* ---- and in the middle of a call of the library, or of another fork ---- */

#define CREATIONS 20

#define HANDLERS 100

static void *tasks_memory;	/* mapped in the launcher, and not in its children */
static int own_files;		/* descriptors before there was a space */
static volatile int handlers;

static int count_open(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int is_mapped(void *at)
{
	unsigned char pages[1];

	return !mincore(at, 4096, pages);
}

/* Of the partition of the task that sleeps. Its loader is there as soon as it is listed. */
static void *first_mapping(unsigned int index, uint64_t size)
{
	unsigned long from = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx", &from) == 1 && from / size == index)
			break;
	fclose(f);
	return (void *)from;
}

static void start_sleeper(struct __test_metadata *_metadata, struct pvas_space *s)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL };
	uint64_t size;
	pid_t pid;

	pvas_space_get_bounds(s, NULL, NULL, &size);
	ASSERT_EQ(pvas_task_spawn(s, 3, "/bin/sleep", argv, environ, NULL, &pid), 3);
	tasks_memory = first_mapping(3, size);
	ASSERT_EQ((uintptr_t)tasks_memory / size, 3);
}

static void on_profile(int sig)
{
	pid_t pid = fork();

	if (!pid)
		_exit(is_mapped(tasks_memory) || count_open() != own_files);
	bad_children += !!end_of(pid);
	handlers += !!sig;
}

static volatile int creating;

/* After each handler: with an interval nothing but handlers would run. */
static void set_timer(void)
{
	const struct itimerval once = { .it_value = { 0, 2 * STEP_US } };

	if (creating)
		setitimer(ITIMER_REAL, &once, NULL);
}

static void on_timer(int sig)
{
	pid_t pid = sig ? fork() : -1;

	if (!pid)
		_exit(count_open() != own_files);
	bad_children += !!end_of(pid);
	set_timer();
}

/* The child has no descriptor of a space that is not complete. */
TEST(handlers_that_fork_in_a_creation)
{
	const struct pvas_create_attr user = {
		.size = sizeof(user), .backend = PVAS_BACKEND_USER,
	};
	const struct sigaction act = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct pvas_space *s;
	int i, err;

	own_files = count_open();
	ASSERT_EQ(sigaction(SIGALRM, &act, NULL), 0);
	for (i = 0; i < CREATIONS; i++) {
		creating = 1;
		set_timer();
		err = pvas_space_create(&s, &user);
		creating = 0;
		ASSERT_EQ(err, 0) TH_LOG("%s", pvas_error_get());
		pvas_space_destroy(s);
	}
	EXPECT_EQ(bad_children, 0);
}

TEST(handlers_that_fork_in_a_call)
{
	const struct pvas_create_attr user = {
		.size = sizeof(user), .backend = PVAS_BACKEND_USER,
	};
	const struct sigaction act = { .sa_handler = on_profile, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct pvas_space *s;

	own_files = count_open();
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	start_sleeper(_metadata, s);
	ASSERT_EQ(sigaction(SIGPROF, &act, NULL), 0);
	ASSERT_EQ(setitimer(ITIMER_PROF, &often, NULL), 0);
	alarm(120);
	while (handlers < HANDLERS && pvas_task_list(s, NULL, 0) == 1)
		;
	setitimer(ITIMER_PROF, &never, NULL);
	EXPECT_GE(handlers, HANDLERS);
	EXPECT_EQ(bad_children, 0);
	EXPECT_EQ(pvas_task_list(s, NULL, 0), 1);
	pvas_space_destroy(s);
}

static int nests;		/* the next fork is interrupted by a handler, which forks; and */
static int nested_returns;	/* in its child the handler returns */

/* Called when the library has prepared a fork */
static void in_fork(void)
{
	const int returns = nested_returns;
	pid_t pid;

	if (!nests)
		return;
	nests = 0;
	pid = fork();
	if (!pid && returns)
		return;
	if (!pid)
		_exit(!is_mapped(tasks_memory));
	bad_children += !!end_of(pid);
}

/* In a child of the launcher, which has mapped memory of its own there */
static int child_with_own_memory(void)
{
	void *p = mmap(tasks_memory, 4096, PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	pid_t pid;

	nests = 1;
	pid = fork();
	if (!pid)
		_exit(!is_mapped(tasks_memory));
	return p != tasks_memory || end_of(pid) || bad_children;
}

TEST(forks_in_forks)
{
	const struct pvas_create_attr user = {
		.size = sizeof(user), .backend = PVAS_BACKEND_USER,
	};
	const pid_t own = getpid();
	struct pvas_space *s;
	pid_t pid;

	/* The last one that is registered comes first. */
	ASSERT_EQ(pthread_atfork(in_fork, NULL, NULL), 0);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	start_sleeper(_metadata, s);
	pid = fork();
	if (!pid)
		_exit(child_with_own_memory());
	EXPECT_EQ(end_of(pid), 0);
	/* The child of the handler has forked, too, and has a space of its own. */
	nests = nested_returns = 1;
	alarm(120);
	pid = fork();
	if (!pid)
		_exit(0);
	EXPECT_EQ(end_of(pid), 0);
	if (getpid() != own) {
		alarm(120);
		if (pvas_space_create(&s, &user))
			_exit(1);
		pid = fork();
		if (!pid)
			_exit(0);
		_exit(end_of(pid) != 0);
	}
	EXPECT_EQ(bad_children, 0);
	EXPECT_EQ(pvas_task_list(s, NULL, 0), 1);
	pvas_space_destroy(s);
}

/* ---- a fork of a thread with descriptors of its own, or with none left ---- */

/* Does its child get none of the space? */
static void *fork_in_thread(void *own)
{
	pid_t pid = own && unshare(CLONE_FILES) ? -1 : fork();

	if (!pid)
		_exit(count_open() != own_files);
	return (void *)(long)end_of(pid);
}

static long status_of_fork(int own)
{
	pthread_t thread;
	void *status;

	if (pthread_create(&thread, NULL, fork_in_thread, own ? &thread : NULL))
		return -1;
	pthread_join(thread, &status);
	return (long)status;
}

/* Where kcmp() is forbidden, a thread needs one to find out whether it has the supervisor's. */
TEST(forks_without_a_descriptor)
{
	const struct pvas_create_attr user = {
		.size = sizeof(user), .backend = PVAS_BACKEND_USER,
	};
	const struct rlimit limit = { 64, 64 };
	struct pvas_space *s;

	forbid((int[]){ SYS_kcmp }, 1, EPERM);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	own_files = count_open();
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	start_sleeper(_metadata, s);
	EXPECT_EQ(status_of_fork(0), 0);
	EXPECT_EQ(status_of_fork(1), 0);
	while (dup(0) >= 0)
		own_files++;
	EXPECT_EQ(status_of_fork(0), 0);
	EXPECT_EQ(status_of_fork(1), 0);
	pvas_space_destroy(s);
}

TEST_HARNESS_MAIN
