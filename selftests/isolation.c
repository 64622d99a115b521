// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two users' jobs side by side: no ioctl, /proc file or signal lets one read,
 * enter, list in detail or end the other's space. abi-user.c has what the device
 * refuses to whom; here both jobs run, with libpvas, as users would have them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define VICTIM		65534	/* the one's user id */
#define INTRUDER	65533	/* the other's */
#define KEY		"isolation"

/* The intruder knows everything about the job, but has no descriptor. */
struct job {
	pid_t launcher, task;
	uint32_t id;
	uintptr_t word;
};

static struct job *job;

static int become(uid_t uid)
{
	return pt_become(uid) ?: pt_dumpable();
}

static volatile long word = 4711;

TASK(victim)
{
	const volatile long *at = &word;

	CHECK_EQ(sizeof(at), write(atoi(pt_args[0]), &at, sizeof(at)));
	while (word == 4711)
		usleep(1000);
	_exit(word == 4711 ? 0 : 1);
}

/* The victim's launcher: a space that others of its user can find by key, one task. */
static void launch_victim(void)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = PVAS_BACKEND_KERNEL };
	struct pvas_space *space;
	int fds[2], err;

	err = become(VICTIM);
	if (!err)
		err = pvas_space_join(&space, KEY, &attr);
	if (err || pipe(fds))
		_exit(1);
	job->task = pt_start_task_fd(space, 1, "victim", fds[1]);
	if (job->task < 0 || read(fds[0], &job->word, sizeof(job->word)) != sizeof(job->word))
		_exit(2);
	__atomic_store_n(&job->id, pvas_space_get_id(space), __ATOMIC_SEQ_CST);
	pause();
	_exit(3);
}

FIXTURE(two_users)
{
	bool skip;
};

FIXTURE_SETUP(two_users)
{
	const char *why;
	pid_t pid;

	self->skip = geteuid() || !pt_have_device(&why);
	if (self->skip)
		SKIP(return, "needs root and the module");
	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, job);
	pid = fork();
	if (!pid)
		launch_victim();
	job->launcher = pid;
	while (!__atomic_load_n(&job->id, __ATOMIC_SEQ_CST) && !waitpid(pid, NULL, WNOHANG))
		usleep(20000);
	ASSERT_NE(0, job->id);
}

/* After any attack the victim's job must still run, and its memory must be unchanged. */
FIXTURE_TEARDOWN(two_users)
{
	struct iovec here, there;
	long value = 0;

	if (self->skip)
		return;
	here = (struct iovec){ &value, sizeof(value) };
	there = (struct iovec){ (void *)job->word, sizeof(value) };
	EXPECT_EQ(0, kill(job->task, 0));
	EXPECT_EQ(8, process_vm_readv(job->task, &here, 1, &there, 1, 0));
	EXPECT_EQ(4711, value);
	EXPECT_EQ(0, waitpid(job->launcher, NULL, WNOHANG));
	kill(job->task, SIGKILL);
	pt_kill(job->launcher);
	/* The next victim would find this one's by the key, with its partition still taken. */
	EXPECT_TRUE(pt_spaces_gone());
}

/* As the intruder, in a process of its own; 0 if all was refused. */
static int as_intruder(int (*fn)(void *arg))
{
	pid_t pid = fork();

	if (!pid)
		_exit(become(INTRUDER) ? 99 : fn(NULL));
	return pt_wait(pid);
}

#define REFUSED(error, expr) do { \
	long got__; \
	errno = 0; \
	got__ = (expr); \
	if (got__ != -(error) && !(got__ == -1 && errno == (error))) { \
		fprintf(stderr, "# %s: %ld, errno %d\n", #expr, got__, errno); \
		return 1; \
	} \
} while (0)

static int spawn_by_id(void *unused)
{
	struct pvas_spawn spawn = {
		.size = sizeof(spawn), .flags = PVAS_SPAWN_ANY, .id = job->id,
	};

	(void)unused;
	REFUSED(EPERM, pt_ioctl(pt_open(), PVAS_IOC_SPAWN, &spawn));
	return 0;
}

TEST_F(two_users, enter_by_id)
{
	EXPECT_EQ(0, as_intruder(spawn_by_id));
}

/* The same key makes another space: keys are a user's own. */
static int join_by_key(void *unused)
{
	struct pvas_space *space;

	(void)unused;
	if (pvas_space_join(&space, KEY, NULL))
		return 1;
	if (pvas_space_get_id(space) == job->id || pvas_task_list(space, NULL, 0) != 0)
		return 2;
	return pvas_space_destroy(space) ? 3 : 0;
}

TEST_F(two_users, enter_by_key)
{
	EXPECT_EQ(0, as_intruder(join_by_key));
}

static int query(void *unused)
{
	struct pvas_query q = { .size = sizeof(q), .id = job->id };

	(void)unused;
	REFUSED(EPERM, pt_ioctl(pt_open(), PVAS_IOC_QUERY, &q));
	return 0;
}

TEST_F(two_users, query_by_id)
{
	EXPECT_EQ(0, as_intruder(query));
}

/* The list has nothing of another's space. */
static int list(void *unused)
{
	char line[512], pid[32];
	FILE *f = fopen("/proc/pvas", "r");
	int spaces = 0;

	(void)unused;
	if (!f)
		return 1;
	snprintf(pid, sizeof(pid), "pid %d ", job->task);
	while (fgets(line, sizeof(line), f)) {
		spaces += !strncmp(line, "space ", 6);
		if (strstr(line, pid) || strstr(line, " task "))
			return 2;
	}
	fclose(f);
	return spaces ? 3 : 0;
}

TEST_F(two_users, list)
{
	EXPECT_EQ(0, as_intruder(list));
}

static int open_proc(void *unused)
{
	static const char *const files[] = {
		"mem", "maps", "smaps", "pagemap", "environ", "auxv", "map_files", "fd", "exe",
	};
	char path[64], c;
	unsigned int i;
	int fd;

	(void)unused;
	for (i = 0; i < PT_ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", job->task, files[i]);
		fd = open(path, O_RDONLY);
		if (fd >= 0 && (read(fd, &c, 1) >= 0 || (errno != EACCES && errno != EPERM))) {
			fprintf(stderr, "# %s can be read\n", path);
			return 1;
		}
		close(fd);
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", job->task);
	REFUSED(EACCES, open(path, O_RDWR));
	return 0;
}

TEST_F(two_users, proc_files)
{
	EXPECT_EQ(0, as_intruder(open_proc));
}

static int meddle(void *unused)
{
	long value = 0;
	struct iovec here = { &value, sizeof(value) };
	struct iovec there = { (void *)job->word, sizeof(value) };

	(void)unused;
	REFUSED(EPERM, kill(job->task, SIGKILL));
	REFUSED(EPERM, kill(job->launcher, SIGTERM));
	REFUSED(EPERM, ptrace(PTRACE_ATTACH, job->task, 0, 0));
	REFUSED(EPERM, ptrace(PTRACE_SEIZE, job->launcher, 0, 0));
	REFUSED(EPERM, process_vm_readv(job->task, &here, 1, &there, 1, 0));
	REFUSED(EPERM, process_vm_writev(job->task, &here, 1, &there, 1, 0));
	return 0;
}

TEST_F(two_users, signals_and_memory)
{
	EXPECT_EQ(0, as_intruder(meddle));
}

/* Denied by whatever check comes first. */
#define DENIED(expr) do { \
	errno = 0; \
	if ((expr) != -1 || (errno != EPERM && errno != EACCES)) { \
		fprintf(stderr, "# %s: errno %d\n", #expr, errno); \
		return 1; \
	} \
} while (0)

/* Calls that reach another process or its memory by other ways than these. */
static int meddle_by_other_calls(void *unused)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
	};
	struct iovec there = { (void *)(job->word & ~4095UL), 4096 };
	unsigned long nodes = 1;
	struct rlimit limit = { 1, 1 };
	pid_t pid = job->task;
	union sigval value = {};
	void *page = there.iov_base;
	cpu_set_t cpus;
	char path[64];
	int pidfd, node = 0, status;

	(void)unused;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	DENIED(syscall(SYS_tgkill, pid, pid, SIGKILL));
	DENIED(sigqueue(pid, SIGUSR1, value));
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return 2;
	DENIED(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0));
	DENIED(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
	DENIED(syscall(SYS_process_madvise, pidfd, &there, 1, MADV_COLD, 0));
	close(pidfd);
	DENIED(prlimit(pid, RLIMIT_AS, &limit, NULL));
	DENIED(prlimit(pid, RLIMIT_AS, NULL, &limit));
	DENIED(setpriority(PRIO_PROCESS, pid, 19));
	DENIED(sched_setaffinity(pid, sizeof(cpus), &cpus));
	DENIED(syscall(SYS_migrate_pages, pid, 64, &nodes, &nodes));
	DENIED(syscall(SYS_move_pages, pid, 1, &page, &node, &status, 0));
	DENIED(syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0));
	DENIED(syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0));
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	DENIED(open(path, O_WRONLY));
	snprintf(path, sizeof(path), "/proc/%d/clear_refs", pid);
	DENIED(open(path, O_WRONLY));
	return 0;
}

TEST_F(two_users, other_calls)
{
	EXPECT_EQ(0, as_intruder(meddle_by_other_calls));
}

/* From a task of its own: the same answers, and the other's addresses are not there. */
static int from_own_space(void *unused)
{
	struct pvas_space *space;
	char id[16], pid[16], at[32];
	char *argv[] = {
		(char *)pt_self(), (char *)"--task", (char *)"intruder", id, pid, at, NULL,
	};
	pid_t task;

	(void)unused;
	snprintf(id, sizeof(id), "%u", job->id);
	snprintf(pid, sizeof(pid), "%d", job->task);
	snprintf(at, sizeof(at), "%lx", job->word);
	if (pt_create(&space, 0, 0) ||
	    pvas_task_spawn(space, 1, pt_self(), argv, environ, NULL, &task) != 1)
		return 1;
	return pt_wait(task) ? 2 : pvas_space_destroy(space);
}

TASK(intruder)
{
	struct job victim = {
		.id = atoi(pt_args[0]), .task = atoi(pt_args[1]),
		.word = strtoul(pt_args[2], NULL, 16), .launcher = atoi(pt_args[1]),
	};

	job = &victim;
	CHECK_EQ(0, spawn_by_id(NULL));
	CHECK_EQ(0, query(NULL));
	CHECK_EQ(0, meddle(NULL));
	CHECK_EQ(0, meddle_by_other_calls(NULL));
	CHECK_EQ(0, open_proc(NULL));
	/* In one's own space this address is one's own, with one's own value. */
	CHECK_EQ((uintptr_t)&word >> 36, victim.word >> 36);
	word = 12345;
}

TEST_F(two_users, from_a_task)
{
	EXPECT_EQ(0, as_intruder(from_own_space));
}

/* The same user, but in other namespaces: a space of its own only. */
static int in_namespaces(int as_root, int flags, int want)
{
	struct pvas_space *space;
	pid_t pid = fork();
	int ret;

	if (!pid) {
		ret = unshare(as_root) ? -errno : become(VICTIM);
		if (!ret)
			ret = unshare(flags) ? -errno : pt_dumpable();
		if (ret)
			_exit(98);
		pid = fork();
		if (pid)
			_exit(pt_wait(pid));
		ret = pvas_space_join(&space, KEY, NULL);
		if (ret)
			_exit(ret == -EPERM ? 2 : 97);
		_exit(pvas_space_get_id(space) == job->id ? 1 : 0);
	}
	ret = pt_wait(pid);
	return ret == want ? 0 : ret ? ret : -1;
}

TEST_F(two_users, own_user_other_namespaces)
{
	/* Nothing between: found. */
	EXPECT_EQ(0, in_namespaces(0, 0, 1));
	EXPECT_EQ(0, in_namespaces(0, CLONE_NEWUSER, 0));
	EXPECT_EQ(0, in_namespaces(0, CLONE_NEWUSER | CLONE_NEWPID, 0));
	EXPECT_EQ(0, in_namespaces(0, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET,
				   0));
	/* Namespaces that root can unshare without a user namespace */
	EXPECT_EQ(0, in_namespaces(CLONE_NEWPID, 0, 0));
	EXPECT_EQ(0, in_namespaces(CLONE_NEWNS, 0, 0));
	EXPECT_EQ(0, in_namespaces(CLONE_NEWIPC, 0, 0));
	EXPECT_EQ(0, in_namespaces(0x02000000, 0, 0));	/* CLONE_NEWCGROUP */
	EXPECT_EQ(0, in_namespaces(CLONE_NEWNET | CLONE_NEWUTS, 0, 1));
}

/* Tests with a fixture, too, have the time that $TIMEOUT says. */
TEST_F(two_users, time_limit)
{
	EXPECT_EQ((int)pt_timeout(), _metadata->timeout);
}

PT_MAIN()
