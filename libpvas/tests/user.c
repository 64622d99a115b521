// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: what its tasks may do, how they end, and the errors where it is
 * not available. Needs neither module nor root; with root, the tests also run with
 * the rights of an ordinary user.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

static int start(struct pvas_space *s, unsigned int index, const char *what, const char *arg,
		 pid_t *pid)
{
	char *argv[] = { (char *)ours("user_task"), (char *)what, (char *)arg, NULL };

	return pvas_task_spawn(s, index, argv[0], argv, environ, NULL, pid);
}

/* Two at a time, which must not affect each other. Their statuses, or'ed; < 0: no start. */
static int run_two(struct pvas_space *s, const char *what)
{
	pid_t a, b;
	int ret;

	ret = start(s, PVAS_ANY, what, NULL, &a);
	if (ret < 0)
		return ret;
	ret = start(s, PVAS_ANY, what, NULL, &b);
	if (ret < 0)
		return ret;
	return end_of(a) | end_of(b);
}

/* ---- the rules, for root and for an ordinary user ---- */

FIXTURE(rules)
{
	struct pvas_space *s;
};

FIXTURE_VARIANT(rules)
{
	int ordinary;
	int container;
	int legacy;
	int hidden;
	uint64_t size;
};

FIXTURE_VARIANT_ADD(rules, own_user) { .size = 0 };
FIXTURE_VARIANT_ADD(rules, ordinary_user) { .ordinary = 1 };
FIXTURE_VARIANT_ADD(rules, container) { .container = 1, .ordinary = 1 };
FIXTURE_VARIANT_ADD(rules, hidden_processes) { .hidden = 1, .ordinary = 1 };
FIXTURE_VARIANT_ADD(rules, unlimited_stack) { .legacy = 1 };
FIXTURE_VARIANT_ADD(rules, smallest) { .size = 1ULL << 32 };
FIXTURE_VARIANT_ADD(rules, largest) { .size = 1ULL << 43 };

/* Calls that containers allow only to privileged processes */
static void enter_container(void)
{
	const int nr[] = {
		SYS_kcmp, SYS_pidfd_getfd, SYS_process_vm_readv, SYS_process_vm_writev,
	};

	forbid(nr, 4, EPERM);
}

/* As on many clusters: in /proc there are only processes that one may trace. */
static int hide_processes(void)
{
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("proc", "/proc", "proc", 0, "hidepid=2");
}

FIXTURE_SETUP(rules)
{
	struct pvas_create_attr attr = user;
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (variant->hidden && hide_processes())
		SKIP(return, "can't mount /proc");
	if (variant->ordinary && !getuid() && (setgid(65534) || setuid(65534)))
		SKIP(return, "can't become an ordinary user");
	/* set*id() makes a process undumpable; an ordinary one is not. */
	prctl(PR_SET_DUMPABLE, 1);
	if (variant->container)
		enter_container();
	if (variant->legacy && setrlimit(RLIMIT_STACK, &unlimited))
		SKIP(return, "can't raise the limit of the stack");
	attr.partition_size = variant->size;
	ASSERT_EQ(pvas_space_create(&self->s, &attr), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(rules)
{
	pvas_space_destroy(self->s);
}

#define RULE(what) \
	TEST_F(rules, what) { EXPECT_EQ(run_two(self->s, #what), 0); }

RULE(bounds)
RULE(place)
RULE(heap)
RULE(moving_break)
RULE(stack)
RULE(files)
RULE(children)
RULE(filter)
RULE(threads)
RULE(signals)
RULE(above_break)
RULE(map_flags)
RULE(interrupted)
RULE(below)

/* ---- start and end ---- */

FIXTURE(life)
{
	struct pvas_space *s;
};

FIXTURE_SETUP(life)
{
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(life)
{
	pvas_space_destroy(self->s);
}

/* Is anything mapped in a partition? */
static int is_mapped(struct pvas_space *s, unsigned int index)
{
	unsigned long lo, hi;
	uint64_t size;
	char line[512];
	int found = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	pvas_space_get_bounds(s, NULL, NULL, &size);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && lo / size == index)
			found = 1;
	fclose(f);
	return found;
}

/* Wait until no task is left; on a busy machine the launcher may notice late. */
static int all_ended(struct pvas_space *s)
{
	const int64_t end = now_ms() + 120000;

	while (pvas_task_list(s, NULL, 0) && now_ms() < end)
		usleep(1000);
	return !pvas_task_list(s, NULL, 0);
}

/* A task is killed at any moment, and immediately replaced in the same partition. */
TEST_F(life, kill_and_start_again)
{
	static const char *const whats[] = { "place", "threads", "children", "files", "heap" };
	pid_t pid;
	int i;

	srand(7);
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(start(self->s, 3, whats[i % 5], NULL, &pid), 3)
			TH_LOG("%d: %s", i, pvas_error_get());
		usleep(rand() % (i < 200 ? 800 : 9000));
		kill(pid, SIGKILL);
		end_of(pid);
	}
	/* The memory of the last one is freed shortly after its end. */
	EXPECT_TRUE(all_ended(self->s));
	EXPECT_EQ(is_mapped(self->s, 3), 0);
}

/* A process that leaves by exec is still the caller's child, but no longer a task. */
TEST_F(life, exec_leads_out)
{
	char *argv[] = { (char *)ours("user_task"), "leave", "/bin/sleep", "100", NULL };
	pid_t pid;

	ASSERT_EQ(pvas_task_spawn(self->s, 4, argv[0], argv, environ, NULL, &pid), 4);
	EXPECT_TRUE(all_ended(self->s));
	EXPECT_EQ(is_mapped(self->s, 4), 0);
	EXPECT_EQ(kill(pid, 0), 0);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
}

TEST_F_TIMEOUT(life, sixty_four, 400)
{
	pid_t pid[64];
	int i;

	for (i = 0; i < 64; i++)
		ASSERT_GT(start(self->s, PVAS_ANY, "place", NULL, &pid[i]), 0);
	for (i = 0; i < 64; i++)
		EXPECT_EQ(end_of(pid[i]), 0);
}

struct from_thread {
	struct pvas_space *s;
	pid_t pid;
	int ret;
};

static void *start_and_leave(void *arg)
{
	struct from_thread *f = arg;

	f->ret = start(f->s, 2, "leave", "/bin/true", &f->pid);
	return NULL;
}

/* Tasks are killed when their parent *thread* ends: that must not be the one that spawned them. */
TEST_F(life, started_by_a_thread_that_ends)
{
	struct from_thread f = { .s = self->s };
	pthread_t t;

	ASSERT_EQ(pthread_create(&t, NULL, start_and_leave, &f), 0);
	pthread_join(t, NULL);
	ASSERT_EQ(f.ret, 2);
	EXPECT_EQ(end_of(f.pid), 0);
}

static __thread int mine;

static int look(void *arg)
{
	cpu_set_t *cpus = arg;

	errno = 99;		/* of the caller, which sleeps */
	return mine == 42 && !sched_getaffinity(0, sizeof(*cpus), cpus) ? 0 : -EDOM;
}

TEST_F(life, setup_is_the_callers)
{
	cpu_set_t one, seen;
	struct pvas_spawn_attr a = { .size = sizeof(a), .setup = look, .setup_arg = &seen };
	char *argv[] = { "true", NULL };
	pid_t pid;

	mine = 42;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	errno = 5;
	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, "/bin/true", argv, environ, &a, &pid), 0)
		TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(errno, 5);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_TRUE(CPU_EQUAL(&one, &seen));
}

/* Below most open descriptors. The program needs one, and no other is free. */
static int lower_limit(void *arg)
{
	const struct rlimit few = { 20, 20 };

	close(*(int *)arg);
	return setrlimit(RLIMIT_NOFILE, &few) ? -errno : 0;
}

/* As in execve(): close-on-exec descriptors are closed, the others stay. */
TEST_F(life, descriptors)
{
	char script[] = "cd /proc/$$/fd && test -e $1 -a ! -e $2 -a ! -e $3 -a ! -e $4 && "
			"! ls -l | grep -q seccomp";
	struct pvas_spawn_attr a = { .size = sizeof(a), .setup = lower_limit };
	char text[4][12], *argv[] = { "sh", "-c", script, "sh", text[0], text[1], text[2], text[3],
				      NULL };
	int i, fds[100];
	pid_t pid;

	fds[0] = open("/dev/null", O_RDONLY);
	for (i = 1; i < 100; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 4; i++)
		snprintf(text[i], sizeof(text[i]), "%d", fds[i * 33]);
	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, "/bin/sh", argv, environ, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	ASSERT_LT(fds[1], 20);
	a.setup_arg = &fds[1];
	argv[2] = text[3];
	argv[3] = NULL;
	i = pvas_task_spawn(self->s, PVAS_ANY, ours("shape-static"), argv, environ, &a, &pid);
	ASSERT_GT(i, 0) TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(end_of(pid), 0);
}

TEST_F(life, big_arguments)
{
	char *argv[] = { "true", NULL, NULL }, *huge = malloc(200000);
	char *many[3002];
	pid_t pid;
	int i;

	memset(huge, 'x', 199999);
	huge[199999] = 0;
	argv[1] = huge;
	EXPECT_EQ(pvas_task_spawn(self->s, 1, "/bin/true", argv, environ, NULL, &pid), -E2BIG);
	huge[100000] = 0;
	EXPECT_EQ(pvas_task_spawn(self->s, 1, "/bin/true", argv, environ, NULL, &pid), 1);
	EXPECT_EQ(end_of(pid), 0);
	for (i = 0; i < 3000; i++)
		many[i] = huge + 99000;
	many[3000] = NULL;
	EXPECT_EQ(pvas_task_spawn(self->s, 1, "/bin/true", many, environ, NULL, &pid), -E2BIG);
}

TEST_F(life, one_space_a_process)
{
	struct pvas_space *other;

	EXPECT_EQ(pvas_space_create(&other, &user), -EBUSY);
	EXPECT_NE(strstr(pvas_error_get(), "has made a space already"), NULL);
}

/* Map a page of a file whose name is 2000 bytes long, and looks like a mapping in many places. */
static void *map_long_name(void)
{
	char name[4096] = "/tmp/pvas-long-XXXXXX", *end = mkdtemp(name);
	void *p = MAP_FAILED;
	int i, k, fd = -1;

	for (i = 0; end && i < 8; i++) {
		end = stpcpy(name + strlen(name), "/");
		for (k = 0; k < 17; k++)
			end = stpcpy(end, "1-7fffffffffff");
		if (i < 7)
			mkdir(name, 0700);
		else
			fd = open(name, O_RDWR | O_CREAT, 0600);
	}
	if (fd >= 0 && !ftruncate(fd, 4096))
		p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	for (i = 0; i < 9; i++) {
		remove(name);
		*strrchr(name, '/') = 0;
	}
	return p;
}

TEST(long_file_name)
{
	struct pvas_space *s;

	ASSERT_NE(map_long_name(), MAP_FAILED);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(run_two(s, "place"), 0);
	pvas_space_destroy(s);
}

TEST_F(life, not_for_a_fork_child)
{
	pid_t pid = fork();

	if (!pid) {
		int ret = start(self->s, PVAS_ANY, "nothing", NULL, &pid);

		pvas_space_destroy(self->s);
		_exit(ret == -EINVAL ? 0 : 1);
	}
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(run_two(self->s, "bounds"), 0);	/* the space still works */
}

/* ---- where it is not available ---- */

static int create_fails(int err, const char *text)
{
	struct pvas_space *s;
	int ret = pvas_space_create(&s, &user);

	if (ret == err && strstr(pvas_error_get(), text))
		return 1;
	fprintf(stderr, "%d: %s\n", ret, pvas_error_get());
	return 0;
}

TEST(no_seccomp)
{
	const int nr = SYS_seccomp;

	forbid(&nr, 1, ENOSYS);
	EXPECT_TRUE(create_fails(-ENOSYS, "no seccomp filters, or a container forbids"));
}

TEST(seccomp_not_permitted)
{
	const int nr = SYS_seccomp;

	forbid(&nr, 1, EPERM);
	EXPECT_TRUE(create_fails(-EACCES, "is not permitted here"));
}

TEST(old_kernel)
{
	const int nr = SYS_seccomp;

	forbid(&nr, 1, EINVAL);
	EXPECT_TRUE(create_fails(-ENOSYS, "Linux 5.19"));
}

TEST(watched_already)
{
	const int nr = SYS_seccomp;

	forbid(&nr, 1, EBUSY);
	EXPECT_TRUE(create_fails(-ENOSYS, "under a seccomp listener already"));
}

/* The memory of a process whose first thread has ended can be found by its other threads only. */
static int memory_is_found(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int c = maps ? getc(maps) : EOF;

	if (maps)
		fclose(maps);
	return c != EOF;
}

static void *run_rules(void *arg)
{
	static const char *const rules[] = { "bounds", "place", "heap", "children", "threads" };
	struct pvas_space *s = NULL;
	unsigned int i;
	int status = 0;

	while (memory_is_found())
		usleep(1000);
	if (pvas_space_create(&s, arg))
		_exit(1);
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (run_two(s, rules[i])) {
			fprintf(stderr, "# %s\n", rules[i]);
			status |= 2 << i;
		}
	pvas_space_destroy(s);
	_exit(status);
}

TEST(first_thread_has_ended)
{
	pthread_t thread;
	pid_t pid = fork();

	if (!pid) {
		pthread_create(&thread, NULL, run_rules, (void *)&user);
		pthread_exit(NULL);
	}
	EXPECT_EQ(end_of(pid), 0);
}

TEST(nothing_is_left)
{
	struct pvas_space *s;
	int i, fd = dup(0);

	close(fd);
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(pvas_space_create(&s, &user), 0);
		if (i % 2)
			EXPECT_EQ(run_two(s, "nothing"), 0);
		pvas_space_destroy(s);
	}
	EXPECT_EQ(dup(0), fd);
}

TEST_HARNESS_MAIN
