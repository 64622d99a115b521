// SPDX-License-Identifier: GPL-2.0-only
/* Common to all test programs: see pvas_test.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pvas_test.h"

#define NOBODY 65534

/* ---- anything ---- */

int pt_backend(void)
{
	const char *name = getenv("PVAS_TEST_BACKEND");

	return name && !strcmp(name, "user") ? PVAS_BACKEND_USER : PVAS_BACKEND_KERNEL;
}

bool pt_have_device(const char **why)
{
	int fd = open("/dev/pvas", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		*why = errno == ENOENT ? "no /dev/pvas: the module is not loaded" :
					 "/dev/pvas can't be opened";
		return false;
	}
	close(fd);
	return true;
}

bool pt_kernel_before(unsigned int major, unsigned int minor)
{
	unsigned int a = 0, b = 0;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &a, &b) == 2 &&
	       (a < major || (a == major && b < minor));
}

int pt_userfaultfd(int flags)
{
	int fd = syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);

	return fd < 0 && errno == EINVAL ? syscall(SYS_userfaultfd, flags) : fd;
}

int pt_open(void)
{
	return open("/dev/pvas", O_RDWR | O_CLOEXEC);
}

long pt_ioctl(int fd, unsigned long cmd, void *arg)
{
	long ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

int pt_become(uid_t uid)
{
	return setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ?
	       -errno : 0;
}

int pt_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1) ? -errno : 0;
}

static int in_child_as(int (*fn)(void *arg), void *arg, uid_t uid)
{
	int fds[2], ret = -ECHILD;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		if (uid && pt_become(uid))
			_exit(1);
		ret = fn(arg);
		_exit(write(fds[1], &ret, sizeof(ret)) != sizeof(ret));
	}
	close(fds[1]);
	if (read(fds[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -ECHILD;
	close(fds[0]);
	pt_wait(pid);
	return ret;
}

int pt_in_child(int (*fn)(void *arg), void *arg)
{
	return in_child_as(fn, arg, 0);
}

int pt_as_nobody(int (*fn)(void *arg), void *arg)
{
	return in_child_as(fn, arg, NOBODY);
}

int pt_hold_exit(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT) || kill(pid, SIGTERM))
		return -1;
	/* The signal itself stops it once. */
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
			return 0;
		if (ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status)))
			break;
	}
	return -1;
}

void pt_let_exit(pid_t pid)
{
	ptrace(PTRACE_DETACH, pid, 0, 0);
	pt_wait(pid);
}

int pt_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

int pt_read_file(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

int pt_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

long pt_ia32(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret;

	/* %ebp is the sixth argument; r8 to r11 are lost in some kernels. */
	__asm__ volatile("push %%rbp\n\tmov %7, %%rbp\n\tint $0x80\n\tpop %%rbp"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), "r"(f)
			 : "r8", "r9", "r10", "r11", "memory");
	return (int)ret;
}

static char tmpdir[64];

void pt_remove_tmpdir(void)
{
	char cmd[128];

	if (!tmpdir[0])
		return;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", tmpdir);
	if (system(cmd))
		fprintf(stderr, "# can't remove %s\n", tmpdir);
	tmpdir[0] = '\0';
}

/* Short, for it must fit where a program has /lib64/ld-linux-x86-64.so.2. */
const char *pt_tmpdir(void)
{
	if (tmpdir[0])
		return tmpdir;
	strcpy(tmpdir, "/tmp/pvXXXXXX");
	if (!mkdtemp(tmpdir) || chmod(tmpdir, 0777)) {
		perror("# mkdtemp");
		exit(1);
	}
	return tmpdir;
}

unsigned int pt_timeout(void)
{
	const char *s = getenv("TIMEOUT");

	return s && atoi(s) > 0 ? atoi(s) : 60;
}

/* ---- the kernel log ---- */

static const char * const complaints[] = {
	"WARNING:", "BUG:", "BUG ", "Oops", "general protection fault, ", "suspicious RCU",
	"circular locking", "KASAN", "UBSAN", "INFO: lockdep", "blocked for more than", "stall",
	"refcount_t", "list_add", "list_del", "Bad page", "bad rss", "can't be unmapped",
};

/*
 * KCSAN's reports are passed over: most are of the kernel's own races, and vm/run, who has
 * the whole log, knows which are not.
 */
static bool pt_is_complaint(const char *line, bool *race)
{
	size_t i;

	if (strstr(line, "BUG: KCSAN:"))
		*race = true;
	else if (strstr(line, "======"))
		*race = false;
	for (i = 0; !*race && i < PT_ARRAY_SIZE(complaints); i++)
		if (strstr(line, complaints[i]))
			return true;
	return false;
}

int pt_kmsg_mark(const char *name)
{
	char mark[128];
	int fd = open("/dev/kmsg", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -1;
	lseek(fd, 0, SEEK_END);
	snprintf(mark, sizeof(mark), "pvas-test: %s\n", name);
	if (write(fd, mark, strlen(mark)) < 0)
		fprintf(stderr, "# can't mark the kernel log\n");
	return fd;
}

int pt_kmsg_complaints(int fd)
{
	char line[2048];
	bool race = false;
	int found = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = '\0';
		if (!pt_is_complaint(line, &race))
			continue;
		fprintf(stderr, "# kernel: %s", line);
		found++;
	}
	close(fd);
	return found;
}

void pt_kill(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	pt_wait(pid);
}

/* ---- functions that run in tasks ---- */

static struct pt_task *tasks;
int pt_failed;
char **pt_args;

void pt_register(struct pt_task *task)
{
	task->next = tasks;
	tasks = task;
}

void pt_check_failed(const char *file, int line, const char *what, long got, long want)
{
	pt_failed++;
	fprintf(stderr, "# %s:%d: %s: got %ld, want %ld\n", file, line, what, got, want);
}

static int run_here(const char *name)
{
	struct pt_task *task;

	for (task = tasks; task; task = task->next)
		if (!strcmp(task->name, name))
			return task->fn();
	fprintf(stderr, "# no task function %s\n", name);
	return 1;
}

int pt_main(int argc, char **argv, int (*run)(int argc, char **argv))
{
	if (argc >= 3 && !strcmp(argv[1], "--task")) {
		pt_args = argv + 3;
		return run_here(argv[2]);
	}
	return run(argc, argv);
}

const char *pt_self(void)
{
	static char path[PATH_MAX];
	ssize_t n;

	if (!path[0]) {
		n = readlink("/proc/self/exe", path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = '\0';
	}
	return path;
}

void *pt_idle_thread(void *arg)
{
	pause();
	return arg;
}

char *const *pt_task_argv(const char *name)
{
	static char *argv[4];

	argv[0] = (char *)pt_self();
	argv[1] = (char *)"--task";
	argv[2] = (char *)name;
	return argv;
}

/* ---- amounts of memory ---- */

long pt_file_kib(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[256], *at;
	long kib = -1;

	while (f && kib < 0 && fgets(line, sizeof(line), f))
		if ((at = strstr(line, name)))
			kib = atol(at + strlen(name));
	if (f)
		fclose(f);
	return kib;
}

long pt_status_kib(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return pt_file_kib(path, name);
}

long pt_resident_kib(void)
{
	return pt_file_kib("/proc/pvas", "rss_kib ");
}
