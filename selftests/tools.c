// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tools that inspect or restrict a task: debuggers, userfaultfd, seccomp, namespaces,
 * other processes' reads, writes and advice.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

/* A task that says where its word is, and waits until that is 1. */
static volatile long word = 4711;

TASK(show_word)
{
	const volatile long *at = &word;

	CHECK_EQ(sizeof(at), write(atoi(pt_args[0]), &at, sizeof(at)));
	while (word != 1)
		usleep(1000);
	_exit(42);
}

/* Starts show_word; sets the address of its word. */
static pid_t start_word(struct pvas_space *space, unsigned int index, uintptr_t *at)
{
	int fds[2];
	pid_t pid;

	*at = 0;
	if (pipe(fds))
		return -errno;
	pid = pt_start_task_fd(space, index, "show_word", fds[1]);
	close(fds[1]);
	if (pid > 0 && read(fds[0], at, sizeof(*at)) != sizeof(*at))
		*at = 0;
	close(fds[0]);
	return pid;
}

/* ---- ptrace ---- */

PVAS_TEST(ptrace_attach)
{
	struct pvas_space *space = PT_SPACE();
	struct user_regs_struct regs;
	uintptr_t at;
	pid_t pid = start_word(space, 3, &at);
	int st, i;

	ASSERT_LT(0, pid);
	ASSERT_NE(0, at);
	ASSERT_EQ(0, ptrace(PTRACE_ATTACH, pid, 0, 0));
	ASSERT_EQ(pid, waitpid(pid, &st, 0));
	ASSERT_TRUE(WIFSTOPPED(st));
	EXPECT_EQ(4711, ptrace(PTRACE_PEEKDATA, pid, at, 0));
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, ptrace(PTRACE_SINGLESTEP, pid, 0, 0));
		ASSERT_EQ(pid, waitpid(pid, &st, 0));
		ASSERT_TRUE(WIFSTOPPED(st)) TH_LOG("step %d: %x", i, st);
		ASSERT_EQ(0, ptrace(PTRACE_GETREGS, pid, 0, &regs));
	}
	EXPECT_EQ(0, ptrace(PTRACE_POKEDATA, pid, at, 1));
	EXPECT_EQ(0, ptrace(PTRACE_DETACH, pid, 0, 0));
	EXPECT_EQ(42, pt_wait(pid));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

static int trace_me(void *arg)
{
	(void)arg;
	return ptrace(PTRACE_TRACEME, 0, 0, 0) ? -errno : 0;
}

/* A tracer from before the exec: it sees the exec, every system call, and the end. */
PVAS_TEST(ptrace_through_exec)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = trace_me };
	struct pvas_space *space = PT_SPACE();
	char *argv[] = { (char *)"true", NULL };
	int st, calls = 0, ret;
	pid_t pid;

	ret = pvas_task_spawn(space, 1, "/bin/true", argv, environ, &attr, &pid);
	ASSERT_EQ(1, ret) TH_LOG("%s", pvas_error_get());
	ASSERT_EQ(pid, waitpid(pid, &st, 0));
	ASSERT_TRUE(WIFSTOPPED(st));
	EXPECT_EQ(SIGTRAP, WSTOPSIG(st));
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXIT);
	do {
		ASSERT_EQ(0, ptrace(PTRACE_SYSCALL, pid, 0, 0));
		ASSERT_EQ(pid, waitpid(pid, &st, 0));
		calls += WIFSTOPPED(st) && WSTOPSIG(st) == (SIGTRAP | 0x80);
	} while (!WIFEXITED(st) && !WIFSIGNALED(st));
	EXPECT_TRUE(WIFEXITED(st));
	EXPECT_EQ(0, WEXITSTATUS(st));
	EXPECT_LT(20, calls);
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

/* A tracee killed while it stands still in its exit: the partition comes free. */
PVAS_TEST(ptrace_kill_in_exit)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = trace_me };
	struct pvas_space *space = PT_SPACE();
	char *argv[] = { (char *)"true", NULL };
	int st, i;
	pid_t pid;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, pvas_task_spawn(space, 1, "/bin/true", argv, environ, &attr, &pid));
		ASSERT_EQ(pid, waitpid(pid, &st, 0));
		ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT);
		ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0, 0));
		ASSERT_EQ(pid, waitpid(pid, &st, 0));
		EXPECT_EQ(PTRACE_EVENT_EXIT, st >> 16);
		EXPECT_EQ(0, kill(pid, SIGKILL));
		/* One that stands in its exit goes on when it is told to. */
		ptrace(PTRACE_CONT, pid, 0, 0);
		EXPECT_LE(0, pt_wait(pid));
		ASSERT_EQ(0, pvas_task_list(space, NULL, 0));
	}
	pvas_space_destroy(space);
}

/* ---- memory from outside ---- */

PVAS_TEST(process_vm_and_madvise)
{
	struct pvas_space *space = PT_SPACE();
	static const int advice[] = { MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED, 25 /* COLLAPSE */ };
	struct iovec here, there;
	long value = 0;
	uintptr_t at;
	pid_t pid = start_word(space, 2, &at);
	int pidfd, i;

	ASSERT_LT(0, pid);
	ASSERT_NE(0, at);
	there = (struct iovec){ (void *)at, sizeof(long) };
	here = (struct iovec){ &value, sizeof(value) };
	EXPECT_EQ(8, process_vm_readv(pid, &here, 1, &there, 1, 0));
	EXPECT_EQ(4711, value);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	ASSERT_LE(0, pidfd);
	there.iov_base = (void *)(at & ~(PAGE - 1));
	there.iov_len = PAGE;
	for (i = 0; i < (int)PT_ARRAY_SIZE(advice); i++)
		syscall(SYS_process_madvise, pidfd, &there, 1, advice[i], 0);
	/* Only the task itself may give destructive advice. */
	EXPECT_EQ(-1, syscall(SYS_process_madvise, pidfd, &there, 1, MADV_DONTNEED, 0));
	there = (struct iovec){ (void *)at, sizeof(long) };
	value = 1;
	EXPECT_EQ(8, process_vm_writev(pid, &here, 1, &there, 1, 0));
	EXPECT_EQ(42, pt_wait(pid));
	close(pidfd);
	pvas_space_destroy(space);
}

/* ---- userfaultfd ---- */

static int uffd_open(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -errno;
	}
	return fd;
}

static int uffd_register(int fd, void *at, size_t len)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)at, len }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg);
}

static void *uffd_serve(void *arg)
{
	char page[PAGE] __attribute__((aligned(4096)));
	struct uffdio_copy copy = { .src = (uintptr_t)page, .len = PAGE };
	struct uffd_msg msg;
	int fd = *(int *)arg, i;

	memset(page, 9, PAGE);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(sizeof(msg), read(fd, &msg, sizeof(msg)));
		CHECK_EQ(UFFD_EVENT_PAGEFAULT, msg.event);
		copy.dst = msg.arg.pagefault.address & ~(PAGE - 1);
		CHECK_EQ(0, ioctl(fd, UFFDIO_COPY, &copy));
	}
	return NULL;
}

TASK_TEST(userfaultfd_own_partition)
{
	char *p = mmap(NULL, 4 * PAGE, RW, ANON, -1, 0);
	int fd = uffd_open(0), i;
	pthread_t thread;

	CHECK(pt_inside(p, 4 * PAGE));
	CHECK(fd >= 0);
	CHECK_EQ(0, uffd_register(fd, p, 4 * PAGE));
	CHECK_EQ(0, pthread_create(&thread, NULL, uffd_serve, &fd));
	for (i = 0; i < 4; i++)
		CHECK_EQ(9, p[i * PAGE]);
	pthread_join(thread, NULL);
	close(fd);
}

/*
 * A monitor of unmappings that never reads would keep the partition from being freed, and
 * eight of them all that end after it: memory that is nobody's. One of forks would keep each
 * peer from its own.
 */
TASK_TEST(userfaultfd_no_events_of_others)
{
	static const uint64_t bad[] = { UFFD_FEATURE_EVENT_UNMAP, UFFD_FEATURE_EVENT_FORK };
	char *p = mmap(NULL, PAGE, RW, ANON, -1, 0);
	size_t i;
	int fd;

	for (i = 0; i < PT_ARRAY_SIZE(bad); i++) {
		fd = uffd_open(bad[i]);
		CHECK(fd >= 0);
		errno = 0;
		CHECK_EQ(-1, uffd_register(fd, p, PAGE));
		CHECK_EQ(EPERM, errno);
		close(fd);
	}
	fd = uffd_open(UFFD_FEATURE_EVENT_REMOVE);
	CHECK(fd >= 0);
	CHECK_EQ(0, uffd_register(fd, p, PAGE));
	close(fd);
}

static void *register_at(void *arg)
{
	struct { int fd; void *reg; } *call = arg;

	return (void *)(long)ioctl(call->fd, UFFDIO_REGISTER, call->reg);
}

/* a REGISTER whose own argument waits for a monitor keeps no other task from its REGISTER */
TASK_TEST(userfaultfd_argument_faults)
{
	char *p = mmap(NULL, 4 * PAGE, RW, ANON, -1, 0);
	static char page[PAGE] __attribute__((aligned(4096)));
	struct uffdio_register *reg = (void *)(p + PAGE - sizeof(reg->range)), other = {
		.range = { (uintptr_t)p + 3 * PAGE, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_copy copy = {
		.dst = (uintptr_t)p + PAGE, .src = (uintptr_t)page, .len = PAGE,
	};
	int monitor = uffd_open(0), fds[2] = { uffd_open(0), uffd_open(0) };
	struct { int fd; void *reg; } calls[2] = { { fds[0], reg }, { fds[1], &other } };
	struct timespec end;
	pthread_t thread[2];
	struct uffd_msg msg;
	void *ret;

	/* The range can be read. The rest of the argument is the first in the next page. */
	reg->range.start = (uintptr_t)p + 2 * PAGE;
	reg->range.len = PAGE;
	CHECK_EQ(0, uffd_register(monitor, p + PAGE, PAGE));
	CHECK_EQ(0, pthread_create(&thread[0], NULL, register_at, &calls[0]));
	CHECK_EQ(sizeof(msg), read(monitor, &msg, sizeof(msg)));
	CHECK_EQ(0, pthread_create(&thread[1], NULL, register_at, &calls[1]));
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	CHECK_EQ(0, pthread_timedjoin_np(thread[1], &ret, &end));
	CHECK_EQ(0, ret);
	*(uint64_t *)page = UFFDIO_REGISTER_MODE_MISSING;
	CHECK_EQ(0, ioctl(monitor, UFFDIO_COPY, &copy));
	CHECK_EQ(0, pthread_join(thread[0], &ret));
	CHECK_EQ(0, ret);
}

/* ---- what a process does to itself ---- */

TASK(filtered)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { PT_ARRAY_SIZE(code), code };

	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	CHECK(pt_inside(mmap(NULL, PAGE, RW, ANON, -1, 0), PAGE));
	CHECK_EQ(0, pt_failed);
	if (!pt_failed)
		syscall(SYS_getppid);
}

PVAS_TEST(seccomp_of_one_task)
{
	struct pvas_space *space = PT_SPACE();
	uintptr_t at;
	pid_t peer = start_word(space, 1, &at);
	pid_t pid = pt_start_task(space, 2, "filtered");

	ASSERT_LT(0, peer);
	ASSERT_LT(0, pid);
	EXPECT_EQ(256 + SIGSYS, pt_wait(pid));
	/* A filter is a process's, not the space's. */
	EXPECT_EQ(0, waitpid(peer, NULL, WNOHANG));
	pt_kill(peer);
	pvas_space_destroy(space);
}

TASK_TEST(lock_everything)
{
	void *p;

	CHECK_EQ(0, mlockall(MCL_CURRENT));
	/* The kernel keeps this one for the mm: it would lock what peers map. */
	CHECK_ERR(EPERM, mlockall(MCL_CURRENT | MCL_FUTURE));
	p = mmap(NULL, 16 * PAGE, RW, ANON, -1, 0);
	CHECK(pt_inside(p, 16 * PAGE));
	CHECK_EQ(0, munmap(p, 16 * PAGE));
	CHECK_EQ(0, munlockall());
}

/*
 * Network and host name are a process's own; the namespaces that all of a space
 * have in common are not. A fork child may have all.
 */
TASK_TEST(namespaces_and_chroot)
{
	int st;
	pid_t pid;

	if (geteuid())
		return;
	CHECK_EQ(0, unshare(CLONE_NEWUTS | CLONE_NEWNET));
	CHECK_ERR(EPERM, unshare(CLONE_NEWNS));
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID))
			_exit(2);
		pid = fork();
		_exit(pid ? pid < 0 || waitpid(pid, &st, 0) != pid || st : getpid() != 1);
	}
	CHECK_EQ(pid, waitpid(pid, &st, 0));
	CHECK_EQ(0, st);
	CHECK_EQ(0, chroot("/usr"));
	CHECK_EQ(0, chdir("/"));
	CHECK_EQ(0, access("/bin/true", X_OK));
	CHECK_EQ(-1, access("/usr/bin/true", X_OK));
	CHECK(pt_inside(malloc(1 << 22), 1 << 22));
}

/* A task can't leave for a user namespace; what it forks can, and is no task then. */
PVAS_TEST(user_namespace_beside_a_peer)
{
	struct pvas_space *space = PT_SPACE();
	uintptr_t at;
	pid_t peer = start_word(space, 1, &at);
	pid_t pid = pt_start_task(space, 2, "new_user_namespace");

	ASSERT_LT(0, peer);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	pt_kill(peer);
	pvas_space_destroy(space);
}

TASK(new_user_namespace)
{
	struct pvas_spawn spawn = {
		.size = sizeof(spawn), .flags = PVAS_SPAWN_ANY, .id = pvas_space_get_id(NULL),
	};
	int fd = pt_open(), st;
	pid_t pid;

	CHECK_ERR(EPERM, unshare(CLONE_NEWUSER));
	CHECK(pt_inside(mmap(NULL, PAGE, RW, ANON, -1, 0), PAGE));
	pid = fork();
	if (!pid)
		_exit(unshare(CLONE_NEWUSER) ? 1 :
		      pt_ioctl(fd, PVAS_IOC_SPAWN, &spawn) != -EPERM);
	CHECK_EQ(pid, waitpid(pid, &st, 0));
	CHECK_EQ(0, st);
}

PT_MAIN()
