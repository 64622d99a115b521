// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: the owner of a tree that is somebody's root directory decides what is
 * there in /proc. Nobody believes it: neither about a caller with that root, nor if it is
 * the launcher's, nor in a new task.
 */
#include <fcntl.h>
#include <signal.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "pvas.h"
#include "user/worker.h"
#include "rights.h"
#include "kselftest_harness.h"

#define CLOSED	200	/* numbers of descriptors, with and without close-on-exec */
#define OPEN	201
#define NUMBERS	100

static char root[64];

FIXTURE(roots)
{
	struct pvas_space *s;
	pid_t pid;
};

FIXTURE_SETUP(roots)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};

	strcpy(root, "/tmp/pvas-roots-XXXXXX");
	ASSERT_NE(mkdtemp(root), NULL);
	ASSERT_EQ(chmod(root, 0755), 0);
	ASSERT_EQ(pvas_space_create(&self->s, &attr), 0) TH_LOG("%s", pvas_error_get());
}

/* The root can be the test's own by now. */
FIXTURE_TEARDOWN(roots)
{
	char *argv[] = { "rm", "-r", root, NULL };
	pid_t pid;

	pvas_space_destroy(self->s);
	pid = fork();
	if (!pid) {
		execv("/bin/rm", argv);
		_exit(127);
	}
	end_of(pid);
}

/* @name below the root */
static const char *in_root(const char *name)
{
	static char path[4200];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

/* Wait status */
static int run(struct pvas_space *s, const char *what, const char *arg)
{
	char *argv[] = { (char *)ours("roots_task"), (char *)what, (char *)arg, NULL };
	pid_t pid;
	int ret = pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid);

	return ret < 0 ? ret : end_of(pid);
}

/* ---- the caller's ---- */

TEST_F(roots, caller_with_proc)
{
	int status = run(self->s, "exe", "/");

	if (status == 77 << 8)
		SKIP(return, "needs root, or user namespaces");
	EXPECT_EQ(status, 1 << 8);
}

TEST_F(roots, caller_without_proc)
{
	int status = run(self->s, "exe", root);

	if (status == 77 << 8)
		SKIP(return, "needs root, or user namespaces");
	EXPECT_EQ(status, 0);
}

/* A task with a root of its own, as with the launcher's */
TEST_F(roots, task_with_another)
{
	if (geteuid())
		SKIP(return, "needs root");
	EXPECT_EQ(run(self->s, "exe-itself", root), 0);
	EXPECT_EQ(run(self->s, "exe-itself", "/"), 1 << 8);
}

/* The answer would tell whether there is such a directory in the launcher's root. */
TEST_F(roots, caller_with_link)
{
	static const char *const links[] = {
		"/etc/../../../../../proc", "/proc", "../../../../proc",
	};
	int status;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		ASSERT_EQ(symlink(links[i], in_root("proc")), 0);
		status = run(self->s, "exe", root);
		unlink(in_root("proc"));
		if (status == 77 << 8)
			SKIP(return, "needs root, or user namespaces");
		EXPECT_EQ(status, 0) TH_LOG("%s", links[i]);
	}
}

/* ---- the launcher's ---- */

/* It says that the program of @pid is small, as after an execve(). */
static int make_false_proc(pid_t pid)
{
	static const char small[] = "1 1 1 0 0 0 0\n";
	char name[64];
	int fd, bad;

	snprintf(name, sizeof(name), "proc/%d", pid);
	if (mkdir(in_root("proc"), 0755) || mkdir(in_root(name), 0755))
		return -1;
	strcat(name, "/statm");
	fd = open(in_root(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	bad = fd < 0 || write(fd, small, sizeof(small) - 1) != sizeof(small) - 1;
	close(fd);
	return bad ? -1 : 0;
}

TEST_F(roots, launcher_changes_its_own)
{
	char *argv[] = { (char *)ours("roots_task"), "tries", NULL };
	int here = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), ret;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
	ASSERT_EQ(make_false_proc(pid), 0);
	ASSERT_EQ(chroot(root), 0);
	EXPECT_EQ(end_of(pid), 0);
	ret = pvas_task_list(self->s, NULL, 0);
	EXPECT_EQ(ret, 0);
	ASSERT_EQ(fchdir(here), 0);
	ASSERT_EQ(chroot("."), 0);
	close(here);
}

/* ---- a new task's ---- */

static int confine(void *arg)
{
	return result(chroot(root)) ?: result(chdir("/"));
}

/* The numbers of the launcher's descriptors are other files' there, without the flag. */
static int replace_and_confine(void *arg)
{
	char proc[80];
	int fd;

	strcpy(proc, root);
	strcat(proc, "/proc");
	syscall(SYS_close_range, 3, NUMBERS, 0);
	do {
		fd = (int)syscall(SYS_openat, AT_FDCWD, proc, O_PATH | O_DIRECTORY, 0);
	} while (fd >= 0 && fd < NUMBERS);
	return fd < 0 ? -errno : confine(arg);
}

static int copy_program(void)
{
	int from = open(ours("roots_task"), O_RDONLY | O_CLOEXEC);
	int to = open(in_root("roots_task"), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	struct stat st;
	int bad = fstat(from, &st) || sendfile(to, from, NULL, (size_t)st.st_size) != st.st_size;

	close(from);
	close(to);
	return bad;
}

TEST_F(roots, setup_changes_it)
{
	static int (*const setups[])(void *) = { confine, replace_and_confine };
	char *argv[] = { "/roots_task", "open", "200", "201", NULL };
	struct pvas_spawn_attr attr = { .size = sizeof(attr) };
	pid_t pid;
	int ret;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(copy_program(), 0);
	ASSERT_EQ(dup3(0, CLOSED, O_CLOEXEC), CLOSED);
	ASSERT_EQ(dup2(0, OPEN), OPEN);
	/* Of what is open, an empty directory says: nothing. */
	ASSERT_EQ(mkdir(in_root("proc"), 0755), 0);
	ASSERT_EQ(mkdir(in_root("proc/self"), 0755), 0);
	ASSERT_EQ(mkdir(in_root("proc/self/fd"), 0755), 0);
	for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
		attr.setup = setups[i];
		ret = pvas_task_spawn(self->s, PVAS_ANY, argv[0], argv, environ, &attr, &pid);
		ASSERT_GT(ret, 0) TH_LOG("%s", pvas_error_get());
		EXPECT_EQ(end_of(pid), 2 << 8) TH_LOG("setup %zu", i);
	}
}

/* ---- a reader that is killed ---- */

/* How many processes of that group have not died? */
static int count_living(pid_t group)
{
	DIR *dir = opendir("/proc");
	const struct dirent *d;
	char path[300], state;
	int n = 0, of;
	FILE *f;

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/stat", d->d_name);
		f = atoi(d->d_name) ? fopen(path, "re") : NULL;
		if (f && fscanf(f, "%*d (%*[^)]) %c %*d %d", &state, &of) == 2)
			n += of == group && state != 'Z' && state != 'X';
		if (f)
			fclose(f);
	}
	closedir(dir);
	return n;
}

/* Another one begins, but not one after the other all the time. */
TEST_F(roots, reader_that_is_killed)
{
	struct user_readers *readers = &((struct user_space *)self->s->priv)->readers;
	int status = run(self->s, "exe", "/");
	const pid_t first = readers->pid;

	if (WEXITSTATUS(status) == 77)
		SKIP(return, "can't have a root of its own");
	ASSERT_EQ(WEXITSTATUS(status), 1);
	ASSERT_GT(first, 0);
	ASSERT_EQ(kill(first, SIGKILL), 0);
	while (count_living(first))
		usleep(1000);
	readers->since = INT64_MAX / 2;
	EXPECT_EQ(WEXITSTATUS(run(self->s, "exe", "/")), 2);
	EXPECT_EQ(readers->pid, first);
	readers->since = 0;
	EXPECT_EQ(WEXITSTATUS(run(self->s, "exe", "/")), 1);
	EXPECT_NE(readers->pid, first);
	EXPECT_GT(now_ns(), readers->since);
}

TEST_HARNESS_MAIN
