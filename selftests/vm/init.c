// SPDX-License-Identifier: GPL-2.0-only
/*
 * Process 1 of the test machine that selftests/vm/run boots.
 *
 * Built static and put into an initramfs with the few modules needed to reach
 * the host's files. It makes a root out of the host's root file system (9p,
 * read-only) and a tmpfs (overlayfs), inserts the module under test, runs one
 * command, removes the module, looks for leaks, reports and powers off.
 *
 * Ways to the host:
 *   /dev/kmsg	the kernel log, which the host records from ttyS0 and judges
 *   /dev/ttyS1	the report, one line each: "exit N", "timeout",
 *		"module TEXT", "fail TEXT", and at last "end"
 *   9p "io"	in: the file "job"; out: the files "stdout" and "stderr". The
 *		command can't see it
 *   9p "out"	/run/pvas-out, for the command's own use
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define HOSTNAME	"pvas-vm"
#define OUT_DIR		"/run/pvas-out"
#define NEW_ROOT	"/newroot"
#define P9_OPTIONS	"trans=virtio,version=9p2000.L,msize=262144"
#define OUTPUT_MAX	(1ULL << 30)	/* a runaway must not fill the host's disk */
#define KILL_SECONDS	20		/* for all processes to die */
#define UNLOAD_SECONDS	10		/* for the last references to go */
#define LEAK_AGE	6		/* kmemleak trusts objects older than 5 s */
#define LEAK_FILE	"/sys/kernel/debug/kmemleak"
#define RACE_FILE	"/sys/kernel/debug/kcsan"

static int kmsg = -1;
static int report = -1;

/* What the host wants done; filled by read_job(). */
static struct {
	const char *cwd;
	const char *module;	/* file name in io, or NULL */
	uid_t uid;
	gid_t gid;
	gid_t groups[64];
	size_t n_groups;
	long limit;		/* seconds of uptime */
	char **env;
	char **argv;
} job;

/* A pipe the command writes to, and the file on the host it is copied into. */
struct stream {
	const char *name;
	int from;
	int to;
	unsigned long long bytes;
};

/* One line into @fd. Nothing can be done about a failure, and nobody told. */
static void put_line(int fd, const char *prefix, const char *fmt, va_list ap)
{
	char buf[900];
	int len, n;

	len = snprintf(buf, sizeof(buf), "%s", prefix);
	n = vsnprintf(buf + len, sizeof(buf) - len, fmt, ap);
	if (n < 0)
		return;
	len += n;
	if (len > (int)sizeof(buf) - 1)
		len = sizeof(buf) - 1;
	buf[len++] = '\n';
	while (write(fd, buf, len) < 0 && errno == EINTR)
		;
}

__attribute__((format(printf, 1, 2)))
static void klog(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(kmsg, "<5>pvas-vm: ", fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 1, 2)))
static void tell(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(report, "", fmt, ap);
	va_end(ap);
}

__attribute__((noreturn))
static void power_off(void)
{
	tcdrain(report);
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* The machine can't do its work; the host says so and exits with 122. */
__attribute__((format(printf, 1, 2), noreturn))
static void die(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	klog("fail: %s", text);
	tell("fail %s", text);
	power_off();
}

static long uptime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

static int write_file(const char *path, const char *text)
{
	int fd, ret = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static void must_mount(const char *src, const char *dir, const char *type,
		       unsigned long flags, const char *data)
{
	mkdir(dir, 0755);
	if (mount(src, dir, type, flags, data))
		die("mount %s on %s: %s", type, dir, strerror(errno));
}

/* --- before the host's root is there ------------------------------------- */

/* Inserts the modules named in /modules/list, in that order. */
static void insert_boot_modules(void)
{
	char name[256], path[300];
	FILE *list;
	int fd;

	list = fopen("/modules/list", "re");
	if (!list)
		die("/modules/list: %s", strerror(errno));
	while (fscanf(list, "%255s", name) == 1) {
		snprintf(path, sizeof(path), "/modules/%s", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die("%s: %s", path, strerror(errno));
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			die("insert %s: %s", name, strerror(errno));
		close(fd);
	}
	fclose(list);
}

static char *slurp(const char *path, size_t *size)
{
	struct stat st;
	ssize_t n;
	size_t have = 0;
	char *buf;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", path, strerror(errno));
	buf = malloc(st.st_size + 1);
	if (!buf)
		die("%s: out of memory", path);
	while ((n = read(fd, buf + have, st.st_size - have)) > 0)
		have += n;
	if (n < 0)
		die("%s: %s", path, strerror(errno));
	close(fd);
	buf[have] = '\0';
	*size = have;
	return buf;
}

/*
 * The job is a sequence of NUL-terminated strings. The first byte says what
 * each is: A argument, C directory, E environment, G group, g supplementary
 * group, L limit, M module, U user.
 */
static void read_job(void)
{
	size_t size, n_env = 0, n_argv = 0, n = 0;
	char *buf, *s;

	buf = slurp("/io/job", &size);
	for (s = buf; s < buf + size; s += strlen(s) + 1)
		n++;
	job.env = calloc(n + 1, sizeof(char *));
	job.argv = calloc(n + 1, sizeof(char *));
	if (!job.env || !job.argv)
		die("job: out of memory");

	for (s = buf; s < buf + size; s += strlen(s) + 1) {
		char *value = s + 1;

		switch (*s) {
		case 'A':
			job.argv[n_argv++] = value;
			break;
		case 'C':
			job.cwd = value;
			break;
		case 'E':
			job.env[n_env++] = value;
			break;
		case 'G':
			job.gid = strtoul(value, NULL, 10);
			break;
		case 'g':
			if (job.n_groups < sizeof(job.groups) / sizeof(gid_t))
				job.groups[job.n_groups++] = strtoul(value, NULL, 10);
			break;
		case 'L':
			job.limit = strtol(value, NULL, 10);
			break;
		case 'M':
			job.module = value;
			break;
		case 'U':
			job.uid = strtoul(value, NULL, 10);
			break;
		default:
			die("job: unknown record '%c' (init and run differ)", *s);
		}
	}
	if (!job.cwd || !n_argv)
		die("job: no directory or no command");
}

static int open_output(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

/* --- the command's root --------------------------------------------------- */

/*
 * /tmp stays what it is on the host (in the overlay), so that a command can be
 * run from there. Only the first entries must work with any kernel.
 */
static const struct {
	const char *type;
	const char *dir;
	unsigned long flags;
	const char *data;
	bool optional;
} mounts[] = {
	{ "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", false },
	{ "sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", false },
	{ "devtmpfs", "/dev", MS_NOSUID, "mode=755", false },
	{ "devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC,
	  "gid=5,mode=620,ptmxmode=666", false },
	{ "tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777", false },
	{ "tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755", false },
	{ "tmpfs", "/run/lock", MS_NOSUID | MS_NODEV, "mode=1777", false },
	{ "cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "debugfs", "/sys/kernel/debug", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "tracefs", "/sys/kernel/tracing", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "securityfs", "/sys/kernel/security", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "mqueue", "/dev/mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "hugetlbfs", "/dev/hugepages", MS_NOSUID | MS_NODEV, "mode=1777", true },
};

static void mount_root(void)
{
	must_mount("root", "/lower", "9p", MS_RDONLY, P9_OPTIONS ",cache=loose");
	must_mount("tmpfs", "/rw", "tmpfs", 0, "mode=755,size=80%");
	mkdir("/rw/upper", 0755);
	mkdir("/rw/work", 0755);
	must_mount("overlay", NEW_ROOT, "overlay", 0,
		   "lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work");
}

static void enter_root(void)
{
	if (chdir(NEW_ROOT) || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		die("enter the new root: %s", strerror(errno));
	umask(022);
}

static void mount_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].dir, 0755);
		if (mount(mounts[i].type, mounts[i].dir, mounts[i].type,
			  mounts[i].flags, mounts[i].data) &&
		    !mounts[i].optional)
			die("mount %s: %s", mounts[i].dir, strerror(errno));
	}
	must_mount("out", OUT_DIR, "9p", MS_NOSUID | MS_NODEV, P9_OPTIONS);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

/* mpirun and others refuse a machine without a name or without lo. */
static void name_host(void)
{
	static const char line[] = "127.0.1.1 " HOSTNAME "\n";
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd;

	sethostname(HOSTNAME, strlen(HOSTNAME));
	fd = open("/etc/hosts", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		klog("/etc/hosts: %s", strerror(errno));
	close(fd);

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		klog("lo: %s", strerror(errno));
	close(fd);
}

/* --- the module under test ------------------------------------------------ */

static void insert_module(int fd)
{
	if (fd < 0 || !syscall(SYS_finit_module, fd, "", 0))
		return;
	tell("module %s can't be inserted: %s", job.module, strerror(errno));
	klog("insert %s: %s", job.module, strerror(errno));
	tell("end");
	power_off();
}

static void module_name(char *name, size_t size)
{
	char *p;

	snprintf(name, size, "%s", job.module);
	for (p = name; *p && *p != '.'; p++)
		if (*p == '-')
			*p = '_';
	*p = '\0';
}

/* The command may have removed it already. References may need a moment. */
static void remove_module(void)
{
	char name[64], path[128], refs[32] = "?";
	long end = uptime() + UNLOAD_SECONDS;
	int fd, err;
	ssize_t n;

	module_name(name, sizeof(name));
	while (syscall(SYS_delete_module, name, O_NONBLOCK)) {
		err = errno;
		if (err == ENOENT)
			return;
		if (err == EAGAIN && uptime() < end) {
			usleep(50000);
			continue;
		}
		snprintf(path, sizeof(path), "/sys/module/%s/refcnt", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, refs, sizeof(refs) - 1);
		if (n > 0)
			refs[n - (refs[n - 1] == '\n')] = '\0';
		close(fd);
		klog("remove %s: %s, references: %s", name, strerror(err), refs);
		tell("module %s can't be removed: %s, references left: %s",
		     name, strerror(err), refs);
		return;
	}
	klog("module removed");
}

/* Puts what kmemleak knows into the kernel log, where the host finds it. */
static void find_leaks(void)
{
	long old = uptime() + LEAK_AGE;
	char line[512];
	FILE *leaks;

	if (access(LEAK_FILE, W_OK))
		return;
	klog("kmemleak: scan");
	/* A leak is reported when a second scan finds it unchanged. */
	if (write_file(LEAK_FILE, "scan"))
		klog("fail: kmemleak: the first scan failed");
	while (uptime() < old)
		sleep(1);
	if (write_file(LEAK_FILE, "scan"))
		klog("fail: kmemleak: the second scan failed");
	leaks = fopen(LEAK_FILE, "re");
	while (leaks && fgets(line, sizeof(line), leaks)) {
		line[strcspn(line, "\n")] = '\0';
		klog("kmemleak: %s", line);
	}
	if (leaks)
		fclose(leaks);
}

/* --- the command ---------------------------------------------------------- */

__attribute__((noreturn))
static void exec_command(const int out[2], const int err[2], int null)
{
	sigset_t none;
	int status;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	/* Opening /dev/stdout again must be allowed to --user. */
	if (fchown(out[1], job.uid, job.gid) || fchown(err[1], job.uid, job.gid) ||
	    dup2(null, 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		_exit(126);
	if (setgroups(job.n_groups, job.groups) || setgid(job.gid) ||
	    setuid(job.uid)) {
		dprintf(2, "vm/init: user %u: %s\n", job.uid, strerror(errno));
		_exit(126);
	}
	if (chdir(job.cwd)) {
		dprintf(2, "vm/init: %s: %s (is it on the root file system?)\n",
			job.cwd, strerror(errno));
		_exit(126);
	}
	environ = job.env;
	execvp(job.argv[0], job.argv);
	status = errno == ENOENT ? 127 : 126;
	dprintf(2, "vm/init: %s: %s\n", job.argv[0], strerror(errno));
	_exit(status);
}

/* False at the end of the stream, or when there is nothing to read now. */
static bool copy_some(struct stream *s)
{
	static char buf[65536];
	ssize_t n, done, m;

	if (s->from < 0)
		return false;
	n = read(s->from, buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close(s->from);
		s->from = -1;
		return false;
	}
	s->bytes += n;
	if (s->bytes > OUTPUT_MAX)
		die("%s: more than 1 GiB of output", s->name);
	for (done = 0; done < n; done += m) {
		m = write(s->to, buf + done, n - done);
		if (m < 0)
			die("write %s: %s", s->name, strerror(errno));
	}
	return true;
}

/* Takes in the dead. True, and the exit status, once @child is one of them. */
static bool reap(pid_t child, int *status)
{
	bool found = false;
	pid_t pid;
	int st;

	while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
		if (pid != child)
			continue;
		found = true;
		*status = WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
	}
	return found;
}

/* The time is over: leave in the log what everyone was waiting for. */
__attribute__((noreturn))
static void time_out(void)
{
	klog("timeout: backtraces follow");
	write_file("/proc/sysrq-trigger", "l");
	write_file("/proc/sysrq-trigger", "w");
	tell("timeout");
	power_off();
}

static void copy_until_exit(pid_t child, int sigs, struct stream *out,
			    struct stream *err, int *status)
{
	struct signalfd_siginfo info;
	bool ended = false;

	while (!ended) {
		struct pollfd fds[] = {
			{ .fd = sigs, .events = POLLIN },
			{ .fd = out->from, .events = POLLIN },
			{ .fd = err->from, .events = POLLIN },
		};

		if (uptime() >= job.limit)
			time_out();
		if (poll(fds, 3, 1000) <= 0)
			continue;
		if (fds[1].revents)
			copy_some(out);
		if (fds[2].revents)
			copy_some(err);
		if (fds[0].revents) {
			if (read(sigs, &info, sizeof(info)) < 0 && errno != EAGAIN)
				die("signalfd: %s", strerror(errno));
			ended = reap(child, status);
		}
	}
	while (copy_some(out))
		;
	while (copy_some(err))
		;
}

static void kill_all(void)
{
	long end = uptime() + KILL_SECONDS;
	pid_t pid;

	for (;;) {
		kill(-1, SIGKILL);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		if (uptime() >= end)
			break;
		usleep(10000);
	}
	write_file("/proc/sysrq-trigger", "l");
	write_file("/proc/sysrq-trigger", "w");
	klog("fail: processes survive SIGKILL, backtraces above");
	tell("fail processes survive SIGKILL");
}

static int run_command(struct stream *out, struct stream *err)
{
	int out_pipe[2], err_pipe[2], null, sigs, status = 0;
	sigset_t chld;
	pid_t child;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sigs = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (sigs < 0 || null < 0 || pipe2(out_pipe, O_CLOEXEC) ||
	    pipe2(err_pipe, O_CLOEXEC))
		die("prepare the command: %s", strerror(errno));

	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child)
		exec_command(out_pipe, err_pipe, null);
	close(out_pipe[1]);
	close(err_pipe[1]);
	close(null);
	/* Only the reading ends: the command's own are another description. */
	fcntl(out_pipe[0], F_SETFL, O_NONBLOCK);
	fcntl(err_pipe[0], F_SETFL, O_NONBLOCK);
	out->from = out_pipe[0];
	err->from = err_pipe[0];
	copy_until_exit(child, sigs, out, err, &status);
	close(sigs);
	return status;
}

int main(void)
{
	struct stream out = { .name = "stdout" }, err = { .name = "stderr" };
	int module = -1, status;
	char path[300];

	mkdir("/dev", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	report = open("/dev/ttyS1", O_WRONLY | O_CLOEXEC | O_NOCTTY);
	klog("init runs");
	mlockall(MCL_CURRENT | MCL_FUTURE);
	must_mount("proc", "/proc", "proc", 0, NULL);

	insert_boot_modules();
	must_mount("io", "/io", "9p", 0, P9_OPTIONS);
	read_job();
	out.to = open_output("/io/stdout");
	err.to = open_output("/io/stderr");
	if (job.module) {
		snprintf(path, sizeof(path), "/io/%s", job.module);
		module = open(path, O_RDONLY | O_CLOEXEC);
		if (module < 0)
			die("%s: %s", path, strerror(errno));
	}
	umount2("/io", MNT_DETACH);

	mount_root();
	enter_root();
	mount_all();
	name_host();

	/* From here on the host takes a warning for a failure. */
	klog("judged from here");
	/* Not before: the kernel's own start is slow enough. */
	if (!access(RACE_FILE, W_OK) && write_file(RACE_FILE, "on"))
		klog("fail: kcsan: can't be switched on");
	insert_module(module);
	klog("command starts");
	status = run_command(&out, &err);
	klog("command ended with status %d", status);
	kill_all();
	if (job.module) {
		remove_module();
		find_leaks();
	}
	tell("exit %d", status);
	tell("end");
	klog("power off");
	power_off();
}
