// SPDX-License-Identifier: GPL-2.0-only
/* Remove all of a directory, and nothing else */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "../remove_tree.h"
#include "../session_dir.h"
#include "unit.h"

#define ORDINARY_USER 12345

static char dir[] = "/tmp/pvas-unit-XXXXXX";

/* Each look at the clock takes so long. */
static int64_t step_ms, later_ms;

void clock_later(int64_t ms)
{
	later_ms += ms;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = syscall(SYS_clock_gettime, clock, now);

	later_ms += step_ms;
	now->tv_nsec += later_ms % 1000 * CLOCK_NS_PER_MS;
	now->tv_sec += later_ms / 1000 + now->tv_nsec / CLOCK_NS_PER_S;
	now->tv_nsec %= CLOCK_NS_PER_S;
	return err;
}

static void fill(int fd, const char *name, mode_t mode)
{
	int sub;

	check(!mkdirat(fd, name, 0700));
	sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(!mkdirat(sub, "sub", 0700));
	check(!close(openat(sub, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	check(!close(openat(sub, "sub/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	check(!fchmodat(sub, "sub", mode, 0) && !fchmod(sub, mode));
	close(sub);
}

/* Longer than PATH_MAX, and deeper than the limit of descriptors */
static void fill_deeply(int top)
{
	char name[201];
	int fd = dup(top), next, i;

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i < 1100; i++) {
		if (mkdirat(fd, name, 0700))
			break;
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	check(i == 1100);
	close(fd);
}

static bool exists(int fd, const char *name)
{
	return !faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void removes_all(int top)
{
	int fd;

	check(!mkdirat(top, "all", 0700));
	fd = open_own_directory(top, "all");
	fill(fd, "open", 0700);
	fill(fd, "read-only", 0500);
	fill(fd, "closed", 0);
	fill_deeply(fd);
	check(!symlinkat("../kept", fd, "link"));
	check(!symlinkat("../../kept", fd, "open/link"));
	check(!fchmod(fd, 0500));
	empty_directory(fd, NULL, now_ms() + 10000);
	remove_directory(top, "all", fd);
	close(fd);
	check(!exists(top, "all"));
	check(exists(top, "kept/precious"));
}

/* Another directory, or a link, in the place of one that was opened */
static void exchanged(int top)
{
	int fd;

	check(!mkdirat(top, "mine", 0700));
	fd = open_own_directory(top, "mine");
	fill(fd, "in", 0700);
	check(!renameat(top, "mine", top, "moved") && !symlinkat("kept", top, "mine"));
	empty_directory(fd, NULL, now_ms() + 10000);
	remove_directory(top, "mine", fd);
	check(exists(top, "mine") && exists(top, "kept/precious"));
	check(exists(top, "moved") && !exists(top, "moved/in"));
	check(open_own_directory(top, "mine") < 0);
	check(!unlinkat(top, "mine", 0) && !mkdirat(top, "mine", 0700));
	remove_directory(top, "mine", fd);
	check(exists(top, "mine"));
	close(fd);
}

static void make_name(char name[static PATH_MAX], unsigned int number)
{
	snprintf(name, PATH_MAX, "%s/pvasrun-%u-1-%032x", dir, geteuid(), number);
}

/* A directory that is not empty, and says of itself that it is the session's of @owner */
static void leave_on(const char *node, const char *path, const char *owner)
{
	char file[PATH_MAX + 16];
	int fd;

	check(!mkdir(path, 0700));
	snprintf(file, sizeof(file), "%s/sub", path);
	check(!mkdir(file, 0700));
	if (!owner)
		return;
	snprintf(file, sizeof(file), "%s/.pvasrun", path);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	check(dprintf(fd, "%s %s\n", strrchr(owner, '/') + 1, node) > 0);
	close(fd);
}

static void leave(const char *path, const char *owner)
{
	struct utsname node;

	check(!uname(&node));
	leave_on(node.nodename, path, owner);
}

/* The same for a session directory that is replaced, at its end and in a sweep */
static void session_dir_replaced(int top)
{
	struct session_dir session, next;
	char why[200], moved[300], name[PATH_MAX], in[PATH_MAX + 8];

	check(!session_dir_create(&session, dir, why, sizeof(why)));
	snprintf(in, sizeof(in), "%s/in", session.path);
	check(!mkdir(in, 0700));
	snprintf(moved, sizeof(moved), "%s/aside", dir);
	snprintf(in, sizeof(in), "%s/kept", dir);
	check(!rename(session.path, moved) && !rename(in, session.path));
	strcpy(name, session.path);
	session_dir_remove(&session);
	check(!rename(name, in) && exists(top, "kept/precious"));
	check(exists(top, "aside") && !exists(top, "aside/in"));
	/* stale: a link, and a directory that contains one */
	make_name(name, 1);
	check(!symlink(in, name));
	make_name(name, 2);
	leave(name, name);
	snprintf(moved, sizeof(moved), "%s/sub/link", name);
	check(!symlink(in, moved));
	snprintf(moved, sizeof(moved), "%s/sub", name);
	check(!chmod(moved, 0500));
	check(!session_dir_create(&next, dir, why, sizeof(why)));
	check(access(name, F_OK) && exists(top, "kept/precious"));
	session_dir_remove(&next);
	check(access(next.path, F_OK));
}

/*
 * Somebody gave a directory of this user such a name: it is none of pvasrun's, not even
 * if it is a session directory's copy, or was one under another name. One of another node's
 * may be in use there.
 */
static void not_session_dirs(void)
{
	struct session_dir next;
	char names[5][PATH_MAX], other[PATH_MAX], why[200];
	int i;

	for (i = 0; i < 5; i++)
		make_name(names[i], 10 + i);
	make_name(other, 99);
	leave(names[0], NULL);
	leave(names[1], other);
	leave(names[2], names[2]);
	check(!chmod(names[2], 0770));
	leave_on("another-node", names[4], names[4]);
	snprintf(names[3], sizeof(names[3]), "%s/pvasrun-%u-results", dir, geteuid());
	leave(names[3], names[3]);
	check(!session_dir_create(&next, dir, why, sizeof(why)));
	session_dir_remove(&next);
	for (i = 0; i < 5; i++)
		check(rmdir(names[i]) && errno == ENOTEMPTY);
}

/* It is removed by one sweep after the other, however little time each has. */
static void sweeps_run_out_of_time(void)
{
	struct session_dir next;
	char name[PATH_MAX], file[PATH_MAX + 16], why[200];
	int i, jobs = 0;

	make_name(name, 50);
	leave(name, name);
	for (i = 0; i < 200; i++) {
		snprintf(file, sizeof(file), "%s/%d", name, i);
		check(!close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	}
	snprintf(file, sizeof(file), "%s/.pvasrun", name);
	step_ms = 5;
	while (!access(name, F_OK) && jobs++ < 50) {
		if (access(file, F_OK))
			break;
		check(!session_dir_create(&next, dir, why, sizeof(why)));
		step_ms = 0;
		session_dir_remove(&next);
		step_ms = 5;
	}
	step_ms = 0;
	check(access(name, F_OK) && jobs > 2 && jobs < 50);
}

/* No file can be written, as where the file system is full: nothing stays of a directory. */
static void no_space(int top)
{
	struct rlimit old, none;
	struct session_dir session;
	char why[200], name[PATH_MAX];
	int fd;

	signal(SIGXFSZ, SIG_IGN);
	check(!getrlimit(RLIMIT_FSIZE, &old));
	none = (struct rlimit){ 0, old.rlim_max };
	check(!mkdirat(top, "full", 0700));
	snprintf(name, sizeof(name), "%s/full", dir);
	check(!setrlimit(RLIMIT_FSIZE, &none));
	fd = session_dir_create(&session, name, why, sizeof(why));
	check(!setrlimit(RLIMIT_FSIZE, &old));
	check(fd < 0 && !rmdir(name));
}

/* A job was killed before it had written its file, or while it did. */
static void half_make(char name[static PATH_MAX], unsigned int number, bool begun, bool new)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char file[PATH_MAX + 16];
	int fd;

	make_name(name, number);
	check(!mkdir(name, 0700));
	snprintf(file, sizeof(file), "%s/.pvasrun", name);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (begun)
		check(dprintf(fd, "%.20s", strrchr(name, '/') + 1) > 0);
	check(new || !futimens(fd, old));
	close(fd);
}

static void half_made(void)
{
	char empty[PATH_MAX], begun[PATH_MAX], new[PATH_MAX], used[PATH_MAX], file[PATH_MAX + 16];
	struct session_dir next;
	char why[200];

	half_make(empty, 40, false, false);
	half_make(begun, 41, true, false);
	half_make(new, 42, false, true);	/* it may still be written */
	half_make(used, 43, false, false);
	snprintf(file, sizeof(file), "%s/results", used);
	check(!mkdir(file, 0700));
	check(!session_dir_create(&next, dir, why, sizeof(why)));
	session_dir_remove(&next);
	check(access(empty, F_OK) && access(begun, F_OK));
	check(rmdir(new) && errno == ENOTEMPTY);
	check(!rmdir(file) && rmdir(used) && errno == ENOTEMPTY);
}

/* File systems that never answer are mounted in the tree: not even a child can end that waits. */
static void hung_mounts(void)
{
	static const char * const places[] = { "mounted", "a/mounted", "a/b/mounted" };
	char path[PATH_MAX], options[64];
	unsigned int i;
	int fuse;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
		snprintf(path, sizeof(path), "%s/%s", dir, places[i]);
		snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0",
			 fuse);
		if (fuse < 0 || mount("none", path, "fuse", 0, options))
			return;
	}
	empty_directory(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "kept", now_ms() + 1000);
}

static void leaves_hung_mounts(int top)
{
	pid_t pid, ended = 0;
	int i;

	check(!mkdirat(top, "mounted", 0700) && !mkdirat(top, "a", 0700) &&
	      !mkdirat(top, "a/mounted", 0700) && !mkdirat(top, "a/b", 0700) &&
	      !mkdirat(top, "a/b/mounted", 0700));
	pid = fork();
	if (!pid) {
		hung_mounts();
		_exit(0);
	}
	for (i = 0; i < 1000 && !ended; i++) {
		ended = waitpid(pid, NULL, WNOHANG);
		usleep(10000);
	}
	check(ended == pid);
	if (!ended)
		kill(pid, SIGKILL);
}

static void all(void)
{
	int top;

	check(mkdtemp(dir) != NULL);
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(!mkdirat(top, "kept", 0700));
	check(!close(openat(top, "kept/precious", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	removes_all(top);
	exchanged(top);
	session_dir_replaced(top);
	not_session_dirs();
	sweeps_run_out_of_time();
	no_space(top);
	half_made();
	leaves_hung_mounts(top);
	empty_directory(top, NULL, now_ms() + 10000);
	close(top);
	check(!rmdir(dir));
}

/* Permissions do not apply to root, so this part runs as a user. */
void test_remove_tree(void)
{
	int status = -1;
	pid_t pid;

	all();
	if (geteuid())
		return;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	pid = fork();
	if (!pid) {
		unsigned int before = check_failures();

		if (setresgid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) ||
		    setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER))
			_exit(2);
		all();
		fflush(stdout);
		_exit(check_failures() != before);
	}
	check(waitpid(pid, &status, 0) == pid && !status);
}
