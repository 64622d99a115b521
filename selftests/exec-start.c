// SPDX-License-Identifier: GPL-2.0-only
/* A program that enters a space by exec: its environment, and its state as others see it. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

#define BIG_ARGS 2000

TASK(count_args)
{
	int n = 0;

	while (pt_args[n]) {
		CHECK_EQ(n % 256, (int)strlen(pt_args[n]));
		n++;
	}
	CHECK_EQ(BIG_ARGS, n);
	CHECK(!strcmp(getenv("PVAS_TEST_EMPTY"), ""));
	CHECK(pt_inside(pt_args[BIG_ARGS - 1], 255));
}

/* thousands of arguments, empty ones too, arrive */
PVAS_TEST(arguments)
{
	struct pvas_space *space = PT_SPACE();
	static char *argv[BIG_ARGS + 4];
	static char *envp[] = { (char *)"PVAS_TEST_EMPTY=", NULL };
	pid_t pid;
	int i;

	argv[0] = (char *)pt_self();
	argv[1] = (char *)"--task";
	argv[2] = (char *)"count_args";
	for (i = 0; i < BIG_ARGS; i++) {
		argv[i + 3] = calloc(1, 257);
		memset(argv[i + 3], 'a', i % 256);
	}
	ASSERT_LT(0, pvas_task_spawn(space, PVAS_ANY, pt_self(), argv, envp, NULL, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

TASK_TEST(auxiliary_vector)
{
	CHECK_EQ(4096, getauxval(AT_PAGESZ));
	CHECK_EQ(0, getauxval(AT_SECURE));
	CHECK_EQ(getuid(), getauxval(AT_UID));
	CHECK_EQ(geteuid(), getauxval(AT_EUID));
	CHECK_EQ(getgid(), getauxval(AT_GID));
	CHECK_EQ(sysconf(_SC_CLK_TCK), getauxval(AT_CLKTCK));
	CHECK(getauxval(AT_HWCAP) != 0);
	CHECK(getauxval(AT_MINSIGSTKSZ) != 0 || pt_kernel_before(5, 14));
	CHECK(pt_inside((void *)getauxval(AT_PHDR), 56));
	CHECK(pt_inside((void *)getauxval(AT_BASE), 64));
	CHECK(pt_inside((void *)getauxval(AT_ENTRY), 1));
	CHECK(pt_inside((void *)getauxval(AT_RANDOM), 16));
	CHECK(!strcmp((char *)getauxval(AT_PLATFORM), "x86_64"));
	CHECK(!strcmp((char *)getauxval(AT_EXECFN), pt_self()));
	CHECK(!memcmp((void *)getauxval(AT_BASE), ELFMAG, SELFMAG));
	CHECK(!memcmp((void *)getauxval(AT_SYSINFO_EHDR), ELFMAG, SELFMAG));
}

TASK(no_extra_files)
{
	/* The loader has closed the program: only 0, 1 and 2 are left of its descriptors. */
	CHECK_ERR(EBADF, fcntl(200, F_GETFD));
	CHECK_EQ(3, open("/dev/null", O_RDONLY));
}

static int close_rest(void *arg)
{
	int fd;

	(void)arg;
	if (!close_range(3, -1, CLOSE_RANGE_CLOEXEC))
		return 0;
	/* Before 5.11 there is no such flag. */
	for (fd = 3; fd < 1024; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

/* no descriptor of the loader's is left open */
PVAS_TEST(descriptors)
{
	struct pvas_space *space = PT_SPACE();
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = close_rest };
	pid_t pid;

	ASSERT_LT(0, pvas_task_spawn(space, PVAS_ANY, pt_self(), pt_task_argv("no_extra_files"),
				     environ, &attr, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

TASK(signals_reset)
{
	struct sigaction sa;
	sigset_t set;

	CHECK_EQ(0, sigaction(SIGUSR1, NULL, &sa));
	CHECK(sa.sa_handler == SIG_DFL);
	sigprocmask(0, NULL, &set);
	CHECK(!sigismember(&set, SIGUSR1));
}

PVAS_TEST(signals)
{
	signal(SIGUSR1, SIG_IGN);
	EXPECT_EQ(0, pt_run_task("signals_reset"));
}

/* ---- the program's file ---- */

static const char *start_file;	/* what a task waits for */

TASK(wait_for_file)
{
	int tries;

	CHECK_EQ(1, write(atoi(pt_args[1]), "r", 1));
	for (tries = 0; tries < 3000 && access(pt_args[0], F_OK); tries++)
		usleep(10000);
	CHECK(tries < 3000);
}

/* Returns when its main() runs. */
static pid_t start_waiting(struct pvas_space *space, const char *path)
{
	char fd[16], c;
	char *argv[] = { (char *)path, (char *)"--task", (char *)"wait_for_file", (char *)start_file,
			 fd, NULL };
	int fds[2], ret;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	ret = pvas_task_spawn(space, PVAS_ANY, path, argv, environ, NULL, &pid);
	close(fds[1]);
	if (ret >= 0 && read(fds[0], &c, 1) != 1)
		ret = -ECHILD;
	close(fds[0]);
	return ret < 0 ? ret : pid;
}

/* a running program can't be written to (ETXTBSY), and can be afterwards */
MODULE_TEST(text_busy, "a running program can be written to")
{
	struct pvas_space *space = PT_SPACE();
	const char *path = strdup(pt_copy_file("busy", pt_self(), 0755));
	pid_t pid[2];
	int fd;

	start_file = strdup(pt_tmp("start_file"));
	pid[0] = start_waiting(space, path);
	pid[1] = start_waiting(space, path);
	ASSERT_LT(0, pid[0]);
	ASSERT_LT(0, pid[1]);
	EXPECT_EQ(-1, open(path, O_WRONLY));
	EXPECT_EQ(ETXTBSY, errno);
	kill(pid[0], SIGKILL);
	pt_wait(pid[0]);
	EXPECT_EQ(-1, open(path, O_WRONLY));
	EXPECT_EQ(ETXTBSY, errno);
	close(creat(start_file, 0600));
	EXPECT_EQ(0, pt_wait(pid[1]));
	fd = open(path, O_WRONLY);
	EXPECT_LE(0, fd);
	/* And while it is open for writing, it can't be run. */
	EXPECT_EQ(-ETXTBSY, pt_run_path(space, path, "succeed"));
	close(fd);
	EXPECT_EQ(0, pt_run_path(space, path, "succeed"));
	pvas_space_destroy(space);
}

/* /proc/PID/exe is each task's own; so is comm; cmdline is the first one's */
MODULE_TEST(proc_exe, "/proc/PID/exe is the launcher's")
{
	struct pvas_space *space = PT_SPACE();
	char a[64], b[64], buf[4096], proc[64];
	pid_t pa, pb;

	start_file = strdup(pt_tmp("start_file"));
	strcpy(a, pt_copy_file("first", pt_self(), 0755));
	strcpy(b, pt_copy_file("second", pt_self(), 0755));
	pa = start_waiting(space, a);
	pb = start_waiting(space, b);
	ASSERT_LT(0, pa);
	ASSERT_LT(0, pb);
	EXPECT_EQ(0, pt_exe_of(pa, buf, sizeof(buf)));
	EXPECT_STREQ(a, buf);
	EXPECT_EQ(0, pt_exe_of(pb, buf, sizeof(buf)));
	EXPECT_STREQ(b, buf);
	snprintf(proc, sizeof(proc), "/proc/%d/comm", pb);
	EXPECT_EQ(0, pt_read_file(proc, buf, sizeof(buf)));
	EXPECT_STREQ("second", buf);
	snprintf(proc, sizeof(proc), "/proc/%d/cmdline", pa);
	EXPECT_EQ(0, pt_read_file(proc, buf, sizeof(buf)));
	EXPECT_STREQ(a, buf);
	kill(pa, SIGKILL);
	pt_wait(pa);
	/* With the first gone, the second's is shown. */
	EXPECT_EQ(0, pt_exe_of(pb, buf, sizeof(buf)));
	EXPECT_STREQ(b, buf);
	snprintf(proc, sizeof(proc), "/proc/%d/cmdline", pb);
	EXPECT_EQ(0, pt_read_file(proc, buf, sizeof(buf)));
	EXPECT_STREQ(b, buf);
	pt_kill(pb);
	pvas_space_destroy(space);
}

#define MANY_ARGS 20000
#define ENDS 150

/* So many that the kernel needs a while to write them. */
static int exec_many_args(void *arg)
{
	static char *argv[MANY_ARGS + 1];
	char *envp[] = { NULL };
	int i;

	(void)arg;
	for (i = 0; i < MANY_ARGS; i++)
		argv[i] = (char *)"a";
	execve("/bin/true", argv, envp);
	return -errno;
}

/* One task ends at some moment of another one's exec. Is the other one's cmdline empty then? */
static int end_during_exec(struct pt_raw *raw, long delay_us, long *exec_us)
{
	pid_t first = pt_raw_spawn(raw, 1), second, killer;
	char proc[64], buf[16] = "";
	long began;

	pt_raw_call(raw, 1, SYS_getppid);
	killer = fork();
	if (!killer) {
		usleep(delay_us);
		_exit(kill(first, SIGKILL));
	}
	began = now_ms();
	second = pt_raw_spawn_by(raw, 2, exec_many_args, NULL);
	pt_raw_call(raw, 2, SYS_getppid);
	*exec_us = (now_ms() - began) * 1000;
	pt_wait(killer);
	pt_wait(first);
	snprintf(proc, sizeof(proc), "/proc/%d/cmdline", second);
	pt_read_file(proc, buf, sizeof(buf));
	pt_kill(second);
	return buf[0] != 'a';
}

/* /proc has the whole command line of a task whose exec was not done when the first one ended */
MODULE_TEST(cmdline_is_whole, "uses the ABI")
{
	long exec_us = 20000, now_us, began = now_ms();
	struct pt_raw raw;
	int i, empty = 0;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < ENDS && now_ms() - began < pt_timeout() * 300L; i++) {
		empty += end_during_exec(&raw, rand() % (exec_us + 1), &now_us);
		exec_us = (3 * exec_us + now_us) / 4;
	}
	TH_LOG("%d of %d times empty, an exec of %ld ms", empty, i, exec_us / 1000);
	EXPECT_EQ(0, empty);
	pt_raw_close(&raw);
}

PT_MAIN()
