// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs that have left a space, or try to: run by tests/strays.c. A status
 * of 0 means that all was right.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "syscall_stub.h"
#include "task_check.h"

#define PAGE	4096UL
#define NOBODY	65534

/* ---- calls that end a worker, if the supervisor makes them ---- */

/* The size is wrong: the kernel refuses it. */
static long call_with(unsigned long signal)
{
	return syscall(SYS_rt_sigaction, signal, NULL, NULL, 0);
}

/* Until the launcher has closed its end of the pipe. */
static int call_stop(const char *pipe, const char *cookie)
{
	unsigned long arg = strtoul(cookie, NULL, 0);
	int fd = atoi(pipe);

	while (write(fd, "", 1) == 1)
		for (int i = 0; i < 100; i++)
			call_with(arg);
	return 0;
}

/* The arguments are wrong: no worker is to see these calls. */
static void call_unknown(const char *number, const char *cookie)
{
	unsigned long arg = strtoul(cookie, NULL, 0);

	for (int i = 0; i < atoi(number); i++) {
		CHECK(FAILS(call_with(0), EINVAL));
		CHECK(FAILS(call_with(arg ^ 1), EINVAL));
		CHECK(FAILS(call_with(arg ^ 1UL << 63), EINVAL));
	}
}

/* A fork child, and a program that one has started, both as nobody if they can. */
static int leave_strays(char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		if (fork())
			continue;
		setsid();
		if (!getuid() && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
			_exit(1);
		if (i)
			execl(argv[0], argv[0], "stop", argv[2], argv[3], NULL);
		_exit(call_stop(argv[2], argv[3]));
	}
	return 0;
}

/* ---- a program with code at a place in the partition that it has left ---- */

/* The addresses are the launcher's: nothing is there in this program. */
static int call_from_partition(char **argv)
{
	syscall_stub call = make_syscall_stub(strtoul(argv[2], NULL, 0));
	long path = strtol(argv[3], NULL, 0), buf = strtol(argv[4], NULL, 0);
	long act = strtol(argv[5], NULL, 0);

	if (!call)
		return 1;
	for (int i = 0; i < 20; i++) {
		call(SYS_readlink, path, buf, 8, 0);
		call(SYS_rt_sigaction, SIGUSR1, act, 0, 8);
	}
	return 0;
}

static void *exec_it(void *arg)
{
	char **argv = arg, *again[] = { argv[0], "calls", NULL, argv[2], argv[3], argv[4], NULL };
	char at[24];

	snprintf(at, sizeof(at), "%#lx", ((unsigned long)&failures & ~((1UL << 32) - 1)));
	again[2] = at;
	setenv("PVAS_EXEC", "leave", 1);
	execv(again[0], again);
	_exit(2);
}

/* By the first thread, or by another. */
static int exec_calls(char **argv)
{
	pthread_t t;

	if (*argv[5] == 'f')
		exec_it(argv);
	if (pthread_create(&t, NULL, exec_it, argv))
		return 1;
	return pthread_join(t, NULL);
}

/* A peer calls this: the system call is made by our code. */
static long lent_exec(const char *path, char **argv, char **envp)
{
	long ret = SYS_execve;

	__asm__ volatile("syscall" : "+a"(ret) : "D"(path), "S"(argv), "d"(envp)
			 : "rcx", "r11", "memory");
	return ret;
}

static int lend(const char *pipe)
{
	long (*exec)(const char *, char **, char **) = lent_exec;

	if (write(atoi(pipe), &exec, sizeof(exec)) == sizeof(exec))
		pause();
	return 1;
}

static int borrow(char **argv)
{
	long (*exec)(const char *, char **, char **) = (void *)strtoul(argv[5], NULL, 0);
	char at[24], *again[] = { argv[0], "calls", at, argv[2], argv[3], argv[4], NULL };

	snprintf(at, sizeof(at), "%#lx", ((unsigned long)&failures & ~((1UL << 32) - 1)));
	return (int)exec(again[0], again, NULL);
}

/* A program with a number that was a task's; 77: not permitted. */
static int inherit(char **argv)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid_size = 1 };
	char *again[] = { argv[0], "calls", argv[2], argv[3], argv[4], argv[5], NULL };
	int status = -1;
	pid_t number, pid;

	if (write(0, "", 1) != 1 || read(0, &number, sizeof(number)) != sizeof(number))
		return 1;
	args.set_tid = (uint64_t)&number;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		execv(again[0], again);
		_exit(2);
	}
	if (pid < 0)
		return errno == EPERM ? 77 : 3;
	return waitpid(pid, &status, 0) == pid ? !!status : 4;
}

/* Its last call that the launcher sees is a fork. */
static int fork_last(void)
{
	if (!syscall(SYS_fork))
		_exit(0);
	for (;;)
		syscall(SYS_pause);
}

/* ---- descriptors that are for reading, for writing, for nothing ---- */

static char name[] = "/tmp/pvas-stray-XXXXXX";

static void *map_them(void *own_table)
{
	int ro, wo, path, rw;
	char *p;

	if (own_table)
		CHECK(!unshare(CLONE_FILES));
	ro = open(name, O_RDONLY);
	wo = open(name, O_WRONLY);
	path = open(name, O_PATH);
	rw = open(name, O_RDWR);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ro, 0);
	CHECK(p != MAP_FAILED && FAILS(mprotect(p, PAGE, PROT_READ | PROT_WRITE), EACCES));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0);
	CHECK(p != MAP_FAILED);
	CHECK(FAILS((long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0), EACCES));
	CHECK(FAILS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, wo, 0), EACCES));
	CHECK(FAILS((long)mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, wo, 0), EACCES));
	CHECK(FAILS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, path, 0), EBADF));
	CHECK(FAILS((long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, 1000, 0), EBADF));
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, rw, 0);
	CHECK(p != MAP_FAILED && !mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	close(ro);
	close(wo);
	close(path);
	close(rw);
	return NULL;
}

static void map_by_mode(void)
{
	pthread_t t;
	int fd = mkstemp(name);

	CHECK(fd >= 0 && !ftruncate(fd, PAGE));
	close(fd);
	map_them(NULL);
	CHECK(!pthread_create(&t, NULL, map_them, &failures) && !pthread_join(t, NULL));
	unlink(name);
}

/* ---- a task keeps its ids, namespaces and capabilities ---- */

#define SET(call, ...)	syscall(SYS_##call, __VA_ARGS__)

static void keep_ids(void)
{
	const int no = -1;
	unsigned int u = getuid(), g = getgid();

	CHECK(FAILS(SET(setuid, NOBODY), EPERM) && FAILS(SET(setgid, NOBODY), EPERM));
	CHECK(FAILS(SET(setreuid, no, NOBODY), EPERM) && FAILS(SET(setregid, NOBODY, no), EPERM));
	CHECK(FAILS(SET(setresuid, no, NOBODY, no), EPERM));
	CHECK(FAILS(SET(setresgid, no, no, NOBODY), EPERM));
	CHECK(SET(setfsuid, NOBODY) == u && SET(setfsuid, no) == u);
	CHECK(SET(setfsgid, NOBODY) == g && SET(setfsgid, no) == g);
	CHECK(!SET(setuid, u) && !SET(setgid, g) && !SET(setreuid, no, u) && !SET(setregid, g, g));
	CHECK(!SET(setresuid, no, u, no) && !SET(setresgid, no, no, no));
	CHECK(getuid() == u && geteuid() == u && getgid() == g && getegid() == g);
}

/* No libc function in between: the child must not return on its parent's stack. */
static long clone_with(int third, unsigned long flags)
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | flags, .exit_signal = SIGCHLD,
	};
	long first = third ? (long)&args : (long)(args.flags | SIGCHLD);
	long second = third ? (long)sizeof(args) : 0;
	long ret = third ? SYS_clone3 : SYS_clone;
	register long none __asm__("r10") = 0;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%edi, %%edi\n\t"
			 "mov $60, %%eax\n\t"		/* exit */
			 "syscall\n"
			 "1:"
			 : "+a"(ret)
			 : "D"(first), "S"(second), "d"(0), "r"(none)
			 : "rcx", "r11", "r8", "r9", "memory");
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

static void keep_namespaces(void)
{
	static const unsigned long kept[] = {
		CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWCGROUP,
	};
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		CHECK(FAILS(unshare((int)kept[i]), EPERM));
		CHECK(FAILS(clone_with(0, kept[i]), EPERM));
		CHECK(FAILS(clone_with(1, kept[i]), EPERM));
	}
	CHECK(FAILS(unshare(0x80), EPERM));	/* CLONE_NEWTIME */
	CHECK(FAILS(setns(fd, 0), EPERM) && FAILS(setns(fd, CLONE_NEWNS), EPERM));
	close(fd);
	CHECK(!unshare(CLONE_FILES));
	CHECK(clone_with(0, 0) > 0 && wait(NULL) > 0);
	CHECK(clone_with(1, 0) > 0 && wait(NULL) > 0);
}

static void keep_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2], fewer[2];

	CHECK(!SET(capget, &head, caps));
	memcpy(fewer, caps, sizeof(fewer));
	fewer[0].permitted &= fewer[0].permitted - 1;
	fewer[0].effective &= fewer[0].permitted;
	if (caps[0].permitted)
		CHECK(FAILS(SET(capset, &head, fewer), EPERM));
	/* Effective ones are its own affair, as with the module. */
	fewer[0].permitted = caps[0].permitted;
	CHECK(!SET(capset, &head, fewer) && !SET(capset, &head, caps));
	CHECK(FAILS(SET(capset, &head, 8), EFAULT));
}

/* A fork child has an mm of its own, and may. */
static void child_may(void)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		if (!getuid() && (unshare(CLONE_NEWNS) || setgroups(0, NULL) || setgid(NOBODY) ||
				  setuid(NOBODY)))
			_exit(1);
		_exit(setuid(getuid()) != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* ---- what the launcher is to keep ---- */

/* It lives as long as the launcher: so it does not change that it is killed then. */
static void die_with_launcher(void)
{
	int sig = 0;
	pid_t pid;

	CHECK(FAILS(prctl(PR_SET_PDEATHSIG, 0), EPERM));
	CHECK(FAILS(prctl(PR_SET_PDEATHSIG, SIGTERM), EPERM));
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	CHECK(!prctl(PR_GET_PDEATHSIG, &sig) && sig == SIGKILL);
	/* Programs that it starts are its own affair. */
	pid = vfork();
	if (!pid)
		_exit(prctl(PR_SET_PDEATHSIG, SIGTERM) || prctl(PR_SET_PDEATHSIG, 0));
	CHECK(waitpid(pid, &sig, 0) == pid && !sig);
	pid = fork();
	if (!pid)
		_exit(prctl(PR_SET_PDEATHSIG, SIGTERM) || prctl(PR_SET_PDEATHSIG, 0));
	CHECK(waitpid(pid, &sig, 0) == pid && !sig);
}

/* The launcher has a lock on it. */
static void map_locked(const char *path)
{
	int fd = open(path, O_RDWR);

	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
}

/* Two huge pages long, though its size is less; what is beside it stays. */
static void attach_huge(int id)
{
	const size_t huge = 2UL << 20;
	char *small[64], *p, *q;
	int i;

	/* Places that aren't aligned come first. */
	for (i = 0; i < 64; i++) {
		small[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
		*small[i] = (char)i;
	}
	p = shmat(id, NULL, 0);
	q = shmat(id, NULL, 0);
	CHECK(p != (char *)-1 && q != (char *)-1);
	if (failures)
		return;
	CHECK(!((uintptr_t)p & (huge - 1)) && !((uintptr_t)q & (huge - 1)));
	strcpy(p, "segment");
	strcpy(p + 2 * huge - 8, "the end");
	CHECK(!strcmp(q, "segment") && !strcmp(q + 2 * huge - 8, "the end"));
	for (i = 0; i < 64; i++)
		CHECK(*small[i] == (char)i);
	CHECK(!shmdt(p) && !shmdt(q));
}

/* As the kernel: a buffer that can't be stored to is refused, and stays as it is. */
static void link_to_read_only(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	strcpy(p + PAGE, "intact");
	CHECK(!mprotect(p + PAGE, PAGE, PROT_READ));
	CHECK(FAILS(readlink("/proc/self/exe", p + PAGE, 4), EFAULT));
	CHECK(FAILS(readlink("/proc/self/exe", p + PAGE - 2, 4), EFAULT));
	CHECK(!strcmp(p + PAGE, "intact"));
	CHECK(readlink("/proc/self/exe", p + PAGE - 4, 4) == 4 && p[PAGE - 4] == '/');
	CHECK(munmap(p, 2 * PAGE) == 0);
}

/* Without /proc there is no such link. */
static void link_without_proc(void)
{
	char dir[] = "/tmp/pvas-root-XXXXXX", buf[8];
	pid_t pid;
	int status = -1;

	CHECK(mkdtemp(dir));
	pid = fork();
	if (!pid) {
		if (chroot(dir) && errno == EPERM)
			_exit(0);
		failures = 0;
		CHECK(FAILS(readlink("/proc/self/exe", buf, sizeof(buf)), ENOENT));
		_exit(failures);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!rmdir(dir));
}

static void links(void)
{
	pid_t pid;
	int status = -1;

	link_without_proc();
	link_to_read_only();
	pid = fork();
	if (!pid) {
		failures = 0;
		link_to_read_only();
		_exit(failures);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "stop")) {
		signal(SIGPIPE, SIG_IGN);
		return call_stop(argv[2], argv[3]);
	}
	if (!strcmp(what, "strays"))
		return leave_strays(argv);
	if (!strcmp(what, "calls"))
		return call_from_partition(argv);
	if (!strcmp(what, "exec"))
		return exec_calls(argv);
	if (!strcmp(what, "lend"))
		return lend(argv[2]);
	if (!strcmp(what, "borrow"))
		return borrow(argv);
	if (!strcmp(what, "inherit"))
		return inherit(argv);
	if (!strcmp(what, "fork"))
		return fork_last();
	if (!strcmp(what, "unknown")) {
		call_unknown(argv[2], argv[3]);
	} else if (!strcmp(what, "modes")) {
		map_by_mode();
	} else if (!strcmp(what, "lock")) {
		map_locked(argv[2]);
	} else if (!strcmp(what, "segment")) {
		attach_huge(atoi(argv[2]));
	} else if (!strcmp(what, "links")) {
		links();
	} else if (!strcmp(what, "death")) {
		die_with_launcher();
	} else if (!strcmp(what, "rights")) {
		keep_ids();
		keep_namespaces();
		keep_capabilities();
		child_may();
	} else {
		failures++;
	}
	return failures != 0;
}
