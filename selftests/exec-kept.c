// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task leaves to the process what that of any process does: both set up the same,
 * execute the same program, and that describes what it finds. The descriptions are compared.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

#define TEXT_MAX	16384

/* ---- what is described ---- */

static void describe_signals(void)
{
	struct sigaction act;
	sigset_t blocked, pending;
	stack_t stack;
	int sig;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	sigpending(&pending);
	for (sig = 1; sig < SIGRTMAX; sig++) {
		if (sigaction(sig, NULL, &act))
			continue;
		/* Flags of one that is ignored mean nothing; the user backend leaves some. */
		dprintf(1, "signal %d: %d%d %lx %x\n", sig, sigismember(&blocked, sig),
			sigismember(&pending, sig), (unsigned long)act.sa_handler,
			sig < SIGRTMIN ? act.sa_flags : 0);
	}
	sigaltstack(NULL, &stack);
	dprintf(1, "stack %d\n", stack.ss_flags);
}

/* A timer that runs is only told from one that doesn't. */
static void describe_timers(void)
{
	static const int which[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
	struct itimerval it;
	char line[64] = "";
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(which); i++) {
		getitimer(which[i], &it);
		dprintf(1, "itimer %zu: %d every %ld s\n", i, it.it_value.tv_sec > 100,
			it.it_interval.tv_sec);
	}
	if (pt_read_file("/proc/self/timers", line, sizeof(line)))
		return;
	dprintf(1, "timers: %s\n", line);
}

static void describe_limits(void)
{
	struct rlimit limit;
	int i;

	for (i = 0; i < RLIMIT_NLIMITS; i++) {
		getrlimit(i, &limit);
		dprintf(1, "limit %d: %llu %llu\n", i, (unsigned long long)limit.rlim_cur,
			(unsigned long long)limit.rlim_max);
	}
}

static void describe_scheduling(void)
{
	cpu_set_t set;
	unsigned long nodes[16] = { 0 };
	int mode = -1;

	sched_getaffinity(0, sizeof(set), &set);
	syscall(SYS_get_mempolicy, &mode, nodes, 1024UL, NULL, 0UL);
	dprintf(1, "nice %d policy %d processors %d memory %d %lx\n", getpriority(PRIO_PROCESS, 0),
		sched_getscheduler(0), CPU_COUNT(&set), mode, nodes[0]);
	dprintf(1, "io %ld slack %d\n", syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0),
		prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
}

/* Relations, as each run has other numbers */
static void describe_process(const char *old_pid)
{
	int pid = getpid(), parent = getppid(), subreaper = -1, deathsig = -1, tty, keeps;
	char dir[256] = "", name[16] = "";
	mode_t mask = umask(0);

	prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0);
	prctl(PR_GET_PDEATHSIG, &deathsig, 0, 0, 0);
	prctl(PR_GET_NAME, name, 0, 0, 0);
	keeps = prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0);
	tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
	dprintf(1, "pid %d session %d group %d parent %d tty %d %d\n", pid == atoi(old_pid),
		getsid(0) == pid, getpgrp() == pid, parent > 1, tty >= 0,
		tty >= 0 && tcgetpgrp(tty) == pid);
	dprintf(1, "umask %o in %s name %s subreaper %d deathsig %d keepcaps %d\n", mask,
		getcwd(dir, sizeof(dir)), name, subreaper, deathsig, keeps);
	dprintf(1, "personality %x cpuid %ld speculation %d\n", personality(~0UL),
		syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0),
		prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0));
	dprintf(1, "ids %d %d %d %d, %d groups\n", getuid(), geteuid(), getgid(), getegid(),
		getgroups(0, NULL));
}

/* Record locks are the process', which another one is told. */
static void describe_locks(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pid_t self = getpid(), pid;

	pid = fork();
	if (!pid) {
		fcntl(fd, F_GETLK, &lock);
		dprintf(1, "lock %d of it %d\n", lock.l_type, lock.l_pid == self);
		dprintf(1, "flock %d\n", flock(open("lock", O_RDWR), LOCK_EX | LOCK_NB));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void describe_files(int kept, int closed)
{
	int status = 0;

	dprintf(1, "kept %d closed %d\n", fcntl(kept, F_GETFD), fcntl(closed, F_GETFD));
	dprintf(1, "offset %ld\n", (long)lseek(kept, 0, SEEK_CUR));
	describe_locks(kept);
	dprintf(1, "child %d", wait(&status) > 0);
	dprintf(1, " %x\n", status);
}

TASK(describe)
{
	describe_signals();
	describe_timers();
	describe_limits();
	describe_scheduling();
	describe_process(pt_args[0]);
	describe_files(50, 51);
	if (pt_args[1] && *pt_args[1])
		CHECK(pvas_task_get_index() > 0);
}

/* ---- what is set up before ---- */

static void on_signal(int sig)
{
	(void)sig;
}

static void set_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
	const int ignored[] = { SIGHUP, SIGCHLD, SIGRTMIN + 5, SIGWINCH };
	const int blocked[] = { SIGTERM, SIGUSR1, SIGRTMIN + 3, SIGCONT, SIGHUP, SIGRTMIN + 5 };
	sigset_t set;
	size_t i;

	CHECK_EQ(0, sigaltstack(&stack, NULL));
	CHECK_EQ(0, sigaction(SIGINT, &act, NULL));
	CHECK_EQ(0, sigaction(SIGCONT, &act, NULL));
	CHECK_EQ(0, sigaction(SIGRTMIN + 3, &act, NULL));
	sigemptyset(&set);
	for (i = 0; i < PT_ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	for (i = 0; i < PT_ARRAY_SIZE(blocked); i++)
		sigaddset(&set, blocked[i]);
	CHECK_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	for (i = 0; i < PT_ARRAY_SIZE(blocked); i++)
		raise(blocked[i]);
}

/* Those of timer_create() go, the others stay. */
static void set_timers(void)
{
	const struct itimerval it = { { 77, 0 }, { 5000, 0 } };
	struct itimerspec spec = { .it_value = { 5000, 0 } };
	timer_t timer;

	CHECK_EQ(0, timer_create(CLOCK_REALTIME, NULL, &timer));
	CHECK_EQ(0, timer_settime(timer, 0, &spec, NULL));
	CHECK_EQ(0, setitimer(ITIMER_VIRTUAL, &it, NULL));
	CHECK_EQ(0, setitimer(ITIMER_PROF, &it, NULL));
	alarm(4000);
}

static void set_limits(void)
{
	static const struct { int which; rlim_t value; } limits[] = {
		{ RLIMIT_CORE, 4001 }, { RLIMIT_NOFILE, 402 }, { RLIMIT_FSIZE, 4003000 },
		{ RLIMIT_CPU, 404 }, { RLIMIT_MEMLOCK, 40960 }, { RLIMIT_STACK, 5 << 20 },
	};
	struct rlimit limit;
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(limits); i++) {
		limit = (struct rlimit){ limits[i].value, 2 * limits[i].value };
		CHECK_EQ(0, setrlimit(limits[i].which, &limit));
	}
}

static void set_scheduling(void)
{
	const struct sched_param none = { 0 };
	unsigned long node = 1;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	CHECK_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	CHECK_EQ(0, sched_setscheduler(0, SCHED_BATCH, &none));
	CHECK_EQ(0, setpriority(PRIO_PROCESS, 0, 19));
	CHECK_EQ(0, syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
			    IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 6)));
	CHECK_EQ(0, prctl(PR_SET_TIMERSLACK, 123456, 0, 0, 0));
	syscall(SYS_set_mempolicy, MPOL_BIND, &node, 1024UL);
}

/* A session of its own, whose terminal's other end is kept open by the program. */
static void set_process(void)
{
	int master, slave;

	CHECK_EQ(0, openpty(&master, &slave, NULL, NULL, NULL));
	CHECK(setsid() > 0);
	CHECK_EQ(0, ioctl(slave, TIOCSCTTY, 0));
	umask(0137);
	CHECK_EQ(0, chdir(pt_args[1]));
	CHECK_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_SET_NAME, "another", 0, 0, 0));
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	/* Not all processors have these. */
	syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
	prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE_NOEXEC, 0, 0);
	CHECK(personality(READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE) >= 0);
}

static void set_files(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open("lock", O_RDWR | O_CREAT, 0600);

	CHECK_EQ(50, dup2(fd, 50));
	/* To close another descriptor of the file would release the lock. */
	CHECK_EQ(51, dup3(0, 51, O_CLOEXEC));
	CHECK_EQ(10, lseek(50, 10, SEEK_SET));
	CHECK_EQ(0, fcntl(50, F_SETLK, &lock));
	CHECK_EQ(0, flock(50, LOCK_EX));
}

/* @pt_args: where to write, a directory, and whether it is a task */
TASK(set_up_and_exec)
{
	char pid[16], *argv[] = { (char *)pt_self(), "--task", "describe", pid, pt_args[2], NULL };
	int out = open(pt_args[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	snprintf(pid, sizeof(pid), "%d", getpid());
	CHECK_EQ(1, dup2(out, 1));
	set_process();
	set_files();
	set_limits();
	set_scheduling();
	set_timers();
	if (!fork())
		_exit(7);
	set_signals();
	if (!pt_failed)
		execv(pt_self(), argv);
	CHECK_EQ(0, errno);
}

/* ---- both ---- */

/* Runs it as a process or, with a space, as a task. */
static int run(struct pvas_space *space, char *file)
{
	char *argv[] = { (char *)pt_self(), "--task", "set_up_and_exec", file,
			 (char *)pt_tmpdir(), space ? "task" : "", NULL };
	pid_t pid;
	int ret;

	if (!space) {
		pid = fork();
		if (!pid)
			_exit(execv(argv[0], argv));
		return pt_wait(pid);
	}
	ret = pvas_task_spawn(space, 1, argv[0], argv, environ, NULL, &pid);
	return ret < 0 ? ret : pt_wait(pid);
}

static char *read_all(const char *path)
{
	char *text = calloc(1, TEXT_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, TEXT_MAX - 1) < 0)
		*text = 0;
	close(fd);
	return text;
}

/* The first line in which they differ */
static const char *difference(char *a, char *b)
{
	static char text[512];
	char *nexta, *nextb, *la, *lb;

	for (la = strtok_r(a, "\n", &nexta), lb = strtok_r(b, "\n", &nextb); la && lb;
	     la = strtok_r(NULL, "\n", &nexta), lb = strtok_r(NULL, "\n", &nextb)) {
		snprintf(text, sizeof(text), "process: %s, task: %s", la, lb);
		if (strcmp(la, lb))
			return text;
	}
	return la || lb ? "lines are missing" : NULL;
}

/* signals, timers, limits, scheduling, terminal, session, locks, children, and more */
PVAS_TEST(as_of_a_process)
{
	char *plain = strdup(pt_tmp("plain")), *task = strdup(pt_tmp("task"));
	struct pvas_space *space;
	const char *differ;
	char *text;

	/* A process can't have it without the right to. */
	ASSERT_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	ASSERT_EQ(0, run(NULL, plain));
	space = PT_SPACE();
	EXPECT_EQ(0, run(space, task));
	text = read_all(plain);
	EXPECT_LT(1000, strlen(text));
	differ = difference(text, read_all(task));
	EXPECT_EQ(NULL, differ) TH_LOG("%s", differ);
	pvas_space_destroy(space);
}

PT_MAIN()
