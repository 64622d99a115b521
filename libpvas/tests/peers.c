// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: what a task does, its peers and those who come after it do
 * not feel; nor the launcher's forks. See peer_task.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define SET_MDWE	65

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

/* A task, and pipes to and from it. */
struct peer {
	pid_t pid;
	int to;
	int from;
};

static void end_pipes(struct peer *p)
{
	close(p->to);
	close(p->from);
}

/* peer_task WHAT, descriptors of its pipes, and MORE. */
static int start(struct pvas_space *s, struct peer *p, const char *what, const char *more)
{
	char in[12], out[12], *argv[] = { (char *)ours("peer_task"), (char *)what, in, out,
					  (char *)more, NULL };
	int a[2], b[2], ret;

	if (pipe2(a, O_CLOEXEC) || pipe2(b, O_CLOEXEC))
		return -errno;
	fcntl(a[0], F_SETFD, 0);
	fcntl(b[1], F_SETFD, 0);
	snprintf(in, sizeof(in), "%d", a[0]);
	snprintf(out, sizeof(out), "%d", b[1]);
	ret = pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &p->pid);
	close(a[0]);
	close(b[1]);
	p->to = a[1];
	p->from = b[0];
	return ret;
}

static int run(struct pvas_space *s, const char *what, const char *arg)
{
	char *argv[] = { (char *)ours("peer_task"), (char *)what, (char *)arg, NULL };
	pid_t pid;
	int ret = pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid);

	return ret < 0 ? ret : end_of(pid);
}

static uint64_t word_from(const struct peer *p)
{
	uint64_t word = UINT64_MAX;

	return read(p->from, &word, sizeof(word)) == sizeof(word) ? word : UINT64_MAX;
}

static int byte_from(const struct peer *p)
{
	char c;

	return read(p->from, &c, 1) == 1;
}

static int byte_to(const struct peer *p)
{
	return write(p->to, "", 1) == 1;
}

FIXTURE(peers)
{
	struct pvas_space *s;
};

FIXTURE_SETUP(peers)
{
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(peers)
{
	pvas_space_destroy(self->s);
}

/* ---- fork ---- */

#define TOUCHED		"16"			/* MiB */
#define PAGES		(16UL << 20 >> 12)

/* Faults of a peer that stores to memory it has, while a fork child of another lives. */
static uint64_t faults_beside(struct pvas_space *s, const char *how)
{
	struct peer victim, forker;
	uint64_t faults = UINT64_MAX;

	if (start(s, &victim, "touch", TOUCHED) < 0 || word_from(&victim) < PAGES)
		return UINT64_MAX;
	if (start(s, &forker, "fork", how) < 0)
		return UINT64_MAX;
	if (byte_from(&forker) && byte_to(&victim))
		faults = word_from(&victim);
	byte_to(&forker);
	if (end_of(forker.pid))
		faults = UINT64_MAX;
	end_pipes(&victim);
	end_pipes(&forker);
	if (end_of(victim.pid))
		faults = UINT64_MAX;
	return faults;
}

/* A fork in one task copies nothing of another, however it is made. */
TEST_F(peers, fork_leaves_them_alone)
{
	static const char *const hows[] = { "libc", "raw", "clone", "clone3", "thread" };
	unsigned int i;

	for (i = 0; i < 5; i++) {
		EXPECT_LT(faults_beside(self->s, hows[i]), PAGES / 16) TH_LOG("%s", hows[i]);
	}
}

/* Nor does a fork in the launcher. */
TEST_F(peers, launchers_fork_leaves_them_alone)
{
	struct peer victim;
	pid_t pid;

	ASSERT_GT(start(self->s, &victim, "touch", TOUCHED), 0);
	ASSERT_GE(word_from(&victim), PAGES);
	pid = fork();
	if (!pid)
		pause();
	ASSERT_TRUE(byte_to(&victim));
	EXPECT_LT(word_from(&victim), PAGES / 16);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	end_pipes(&victim);
	EXPECT_EQ(end_of(victim.pid), 0);
}

/* The child of a fork has all of its parent's, though the others fork too. */
TEST_F(peers, all_fork_at_once)
{
	char *argv[] = { (char *)ours("peer_task"), "storm", "60", NULL };
	pid_t pid[6];
	int i;

	for (i = 0; i < 6; i++) {
		ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, argv[0], argv, environ, NULL, &pid[i]),
			  0);
	}
	for (i = 0; i < 6; i++) {
		EXPECT_EQ(end_of(pid[i]), 0);
	}
}

/* MADV_DONTFORK of a task's own stays as it is when another forks. */
TEST_F(peers, own_marks_stay)
{
	struct peer marker, forker;

	ASSERT_GT(start(self->s, &forker, "fork", "libc"), 0);
	ASSERT_TRUE(byte_from(&forker) && byte_to(&forker));
	EXPECT_EQ(end_of(forker.pid), 0);
	ASSERT_GT(start(self->s, &marker, "marks", NULL), 0);
	ASSERT_TRUE(byte_from(&marker));
	EXPECT_EQ(run(self->s, "storm", "10"), 0);
	ASSERT_TRUE(byte_to(&marker));
	EXPECT_EQ(end_of(marker.pid), 0);
}

/* ---- the launcher forks without exec, while a task lives ---- */

static int64_t cpu_ms(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / CLOCK_NS_PER_MS;
}

/* Descriptors of a process that are a listener's, an epoll's or a pidfd's. */
static int count_of_ours(pid_t pid)
{
	char path[64], text[64];
	int fd, n = 0;
	ssize_t len;

	for (fd = 3; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		len = readlink(path, text, sizeof(text) - 1);
		text[len < 0 ? 0 : len] = 0;
		n += strstr(text, "seccomp") || strstr(text, "event") || strstr(text, "pidfd");
	}
	return n;
}

static void fork_in_launcher(struct __test_metadata *_metadata, struct pvas_space *s, int raw)
{
	struct peer a;
	int64_t before;
	int index, i, ready[2];
	pid_t pid;
	char c;

	ASSERT_EQ(pipe(ready), 0);
	index = start(s, &a, "touch", "1");
	ASSERT_GT(index, 0);
	ASSERT_NE(word_from(&a), UINT64_MAX);
	pid = raw ? (pid_t)syscall(SYS_fork) : fork();
	if (!pid) {
		syscall(SYS_write, ready[1], "", 1);
		syscall(SYS_pause);
		syscall(SYS_exit_group, 0);
	}
	ASSERT_EQ(read(ready[0], &c, 1), 1);
	if (!raw)
		EXPECT_EQ(count_of_ours(pid), 0);
	end_pipes(&a);
	kill(a.pid, SIGKILL);
	end_of(a.pid);
	EXPECT_EQ(pvas_task_list(s, NULL, 0), 0);
	before = cpu_ms();
	usleep(300000);
	EXPECT_LT(cpu_ms() - before, 150);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(run(s, "own-state", NULL), 0) TH_LOG("%s", pvas_error_get());
	}
	kill(pid, SIGKILL);
	end_of(pid);
}

TEST_F(peers, launcher_forks)
{
	fork_in_launcher(_metadata, self->s, 0);
}

/* Without libc nobody tells us: the child keeps the descriptors, and that does no harm. */
TEST_F(peers, launcher_forks_without_libc)
{
	fork_in_launcher(_metadata, self->s, 1);
}

/* ---- the end of a large task ---- */

static long resident(void)
{
	long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (fscanf(f, "%ld %ld", &size, &pages) != 2)
		pages = 0;
	fclose(f);
	return pages;
}

/* How many of this task's mmaps are served while the middle of its memory is given back. */
static int served_meanwhile(struct pvas_space *s)
{
	const long large = 192L << 20 >> 12;
	int i, served = 0;
	long begin, now;
	struct peer a;
	void *p;

	if (start(s, &a, "eat", "192") < 0 || !byte_from(&a))
		return -1;
	begin = resident();
	kill(a.pid, SIGKILL);
	end_of(a.pid);
	end_pipes(&a);
	for (i = 0; i < 1000000; i++) {
		p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(p, 4096);
		now = resident();
		if (now < begin - large / 8 * 7)
			break;
		served += now < begin - large / 8;
	}
	return served;
}

/* Some; if we were not on a processor at that time, once more. */
TEST_F(peers, large_end)
{
	int i, most = 0;

	for (i = 0; i < 10 && most < 4; i++) {
		int served = served_meanwhile(self->s);

		if (served > most)
			most = served;
	}
	EXPECT_GE(most, 4);
}

/* How many pages of @nr mappings are given back at most between two of this process' mmaps */
static long most_at_once(struct pvas_space *s, const char *nr)
{
	long large = atol(nr), begin, before, now, most = 0;
	struct peer a;
	void *p;

	if (start(s, &a, "scatter", nr) < 0 || !byte_from(&a))
		return large;
	begin = now = resident();
	kill(a.pid, SIGKILL);
	end_of(a.pid);
	end_pipes(&a);
	while (now > begin - large / 8 * 7) {
		p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(p, 4096);
		before = now;
		now = resident();
		if (before - now > most)
			most = before - now;
	}
	return most;
}

/* Few; if we were not on a processor at that time, once more. */
TEST_F(peers, end_of_many_mappings)
{
	long least = LONG_MAX;
	int i;

	for (i = 0; i < 10 && least > 10000; i++) {
		long most = most_at_once(self->s, "30000");

		if (most < least)
			least = most;
	}
	EXPECT_LT(least, 10000);
}

/* ---- threads, descriptors, links, and what is the whole mm's ---- */

TEST_F(peers, loader_stays_as_it_is)
{
	EXPECT_EQ(run(self->s, "loader", NULL), 0);
}

TEST_F(peers, first_thread_ends)
{
	EXPECT_EQ(run(self->s, "first-thread-ends", NULL), 0);
}

TEST_F(peers, descriptors)
{
	EXPECT_EQ(run(self->s, "descriptors", NULL), 0);
}

TEST_F(peers, links)
{
	char *argv[] = { "sleep", "100", NULL }, text[12];
	pid_t pid;

	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, "/bin/sleep", argv, environ, NULL, &pid), 0);
	snprintf(text, sizeof(text), "%d", pid);
	EXPECT_EQ(run(self->s, "links", text), 0);
	kill(pid, SIGKILL);
	end_of(pid);
}

/* Not only refused: what comes after is as before. */
TEST_F(peers, shared_state)
{
	EXPECT_EQ(run(self->s, "shared-state", NULL), 0);
	EXPECT_EQ(run(self->s, "own-state", NULL), 0);
	EXPECT_EQ(run(self->s, "descriptors", NULL), 0);
}

/* A stop of the launcher, or a freezer, interrupts what answers: strace does it here. */
TEST_F_TIMEOUT(peers, interrupted_answers, 150)
{
	char command[4500];

	if (system("strace -f -qq -o /dev/null true 2>/dev/null"))
		SKIP(return, "no strace");
	snprintf(command, sizeof(command),
		 "timeout -k 5 100 strace -f -qq -o /dev/null -e trace=ioctl "
		 "-e inject=ioctl:error=EINTR:when=3+3 %s -t shared_state >/dev/null 2>&1",
		 ours("peers"));
	EXPECT_EQ(system(command), 0);
}

/* ---- where a container forbids what is fast ---- */

FIXTURE(contained)
{
	struct pvas_space *s;
};

FIXTURE_SETUP(contained)
{
	const int nr[] = {
		SYS_kcmp, SYS_pidfd_getfd, SYS_process_vm_readv, SYS_process_vm_writev,
	};

	forbid(nr, 4, EPERM);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(contained)
{
	pvas_space_destroy(self->s);
}

TEST_F(contained, first_thread_ends)
{
	EXPECT_EQ(run(self->s, "first-thread-ends", NULL), 0);
}

TEST_F(contained, descriptors)
{
	EXPECT_EQ(run(self->s, "descriptors", NULL), 0);
}

TEST_F(contained, shared_state)
{
	EXPECT_EQ(run(self->s, "shared-state", NULL), 0);
	EXPECT_EQ(run(self->s, "own-state", NULL), 0);
}

/* ---- a start that can't succeed reports the reason ---- */

TEST(no_executable_memory)
{
	struct pvas_space *s;

	if (prctl(SET_MDWE, 1, 0, 0, 0))
		SKIP(return, "no PR_SET_MDWE");
	EXPECT_EQ(pvas_space_create(&s, &user), -EACCES);
	EXPECT_NE(strstr(pvas_error_get(), "MemoryDenyWriteExecute"), NULL);
}

TEST(no_executable_memory_later)
{
	struct pvas_space *s;

	ASSERT_EQ(pvas_space_create(&s, &user), 0);
	if (prctl(SET_MDWE, 1, 0, 0, 0))
		SKIP(return, "no PR_SET_MDWE");
	EXPECT_EQ(run(s, "own-state", NULL), -EACCES);
	EXPECT_NE(strstr(pvas_error_get(), "PR_SET_MDWE"), NULL);
	pvas_space_destroy(s);
}

/* unshare -pf: numbers there are not those of our /proc. */
TEST(proc_of_another_namespace)
{
	struct pvas_space *s;
	pid_t pid;

	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		SKIP(return, "no pid namespace");
	pid = fork();
	if (!pid)
		_exit(pvas_space_create(&s, &user) != -ENOSYS ||
		      !strstr(pvas_error_get(), "another pid namespace"));
	EXPECT_EQ(end_of(pid), 0);
}

TEST(not_dumpable)
{
	struct pvas_space *s;

	if (!getuid() && setuid(65534))
		SKIP(return, "can't become an ordinary user");
	prctl(PR_SET_DUMPABLE, 0);
	EXPECT_EQ(pvas_space_create(&s, &user), -EACCES);
	EXPECT_NE(strstr(pvas_error_get(), "not dumpable"), NULL);
}

TEST_HARNESS_MAIN
