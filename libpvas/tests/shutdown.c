// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: pvas_space_destroy() comes back, and ends all tasks, whichever system calls
 * a sandbox forbids, signals are pending, or descriptors have been closed. Afterwards calls of
 * processes that the tasks have left running fail, and don't wait.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "hung_server.h"
#include "pvas.h"
#include "user/worker.h"
#include "kselftest_harness.h"

#define LAST_NR	470	/* all known calls are below */
#define SECONDS	60	/* of a busy machine, until a test counts as hung */

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

/* The system call that the process is in; -1: none */
static int call_of(pid_t pid)
{
	char path[40];
	int nr = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%d", &nr) != 1)
		nr = -1;
	if (f)
		fclose(f);
	return nr;
}

/* Returns when it sleeps. */
static int start_sleep(struct pvas_space *s, pid_t *pid)
{
	char *argv[] = { "sleep", "1000", NULL };
	int ret = pvas_task_spawn(s, PVAS_ANY, "/bin/sleep", argv, environ, NULL, pid);

	while (ret > 0 && call_of(*pid) != SYS_clock_nanosleep)
		usleep(1000);
	return ret;
}

/* ---- sandboxes ---- */

/* As Docker's or systemd's: what is not on the list is answered by @action. */
static void allow_known(unsigned int action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_NR, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

FIXTURE(sandbox)
{
};

FIXTURE_VARIANT(sandbox)
{
	unsigned int others;	/* answer to unknown calls */
	int nr[4];		/* forbidden; ends with 0 */
};

FIXTURE_VARIANT_ADD(sandbox, allows_known_calls) { .others = SECCOMP_RET_ERRNO | EPERM };
FIXTURE_VARIANT_ADD(sandbox, lacks_other_calls) { .others = SECCOMP_RET_ERRNO | ENOSYS };
FIXTURE_VARIANT_ADD(sandbox, kills) { .others = SECCOMP_RET_KILL_PROCESS };
FIXTURE_VARIANT_ADD(sandbox, no_tgkill) { .nr = { SYS_tgkill } };
FIXTURE_VARIANT_ADD(sandbox, no_pidfd_signal) { .nr = { SYS_pidfd_send_signal } };
FIXTURE_VARIANT_ADD(sandbox, no_kill) { .nr = { SYS_kill } };
FIXTURE_VARIANT_ADD(sandbox, no_faccessat2) { .nr = { SYS_faccessat2 } };
FIXTURE_VARIANT_ADD(sandbox, no_signals) {
	.nr = { SYS_kill, SYS_pidfd_send_signal, SYS_tgkill },
};

FIXTURE_SETUP(sandbox)
{
	unsigned int n = 0;

	alarm(SECONDS);
	while (variant->nr[n])
		n++;
	if (n)
		forbid(variant->nr, n, EPERM);
	if (variant->others)
		allow_known(variant->others);
}

FIXTURE_TEARDOWN(sandbox)
{
}

/* As a job does: a task that ends by itself, and one that doesn't. */
TEST_F(sandbox, ends)
{
	char *argv[] = { "true", NULL };
	struct pvas_space *s;
	pid_t pid;

	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid), 0)
		TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(pvas_task_list(s, NULL, 0), 0);
	ASSERT_GT(start_sleep(s, &pid), 0);
	pvas_space_destroy(s);
	EXPECT_EQ(end_of(pid), SIGKILL);
}

/* Without a group of their own, the end of the readers is not that of the launcher's group. */
static void __attribute__((noreturn)) end_without_group(void)
{
	/* Its child's readlink() needs a reader. */
	char *argv[] = { (char *)ours("roots_task"), "exe", "/", NULL };
	const int nr[] = { SYS_setpgid };
	struct pvas_space *s;
	pid_t pid;

	setpgid(0, 0);
	forbid(nr, 1, EPERM);
	if (pvas_space_create(&s, &user) ||
	    pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid) < 0)
		_exit(1);
	end_of(pid);
	/* A child without SIGCHLD */
	if (waitpid(-1, NULL, __WCLONE | WNOHANG))
		_exit(2);
	/* Mapping calls would wait for the end of its fork. */
	if (((struct user_space *)s->priv)->turns.launcher_since)
		_exit(3);
	pvas_space_destroy(s);
	usleep(500000);
	_exit(0);
}

TEST(no_group_for_readers)
{
	pid_t pid = fork();

	if (!pid)
		end_without_group();
	EXPECT_EQ(end_of(pid), 0);
}

/* Without the call that ends workers there is no space, and nothing of it is left. */
TEST(no_call_for_workers)
{
	const int nr[] = { SYS_rt_sigaction };
	struct pvas_space *s;

	alarm(SECONDS);
	forbid(nr, 1, ENOSYS);
	EXPECT_EQ(pvas_space_create(&s, &user), -EACCES);
	EXPECT_NE(strstr(pvas_error_get(), "rt_sigaction"), NULL);
}

/* A call that ends no worker is not repeated. Here nothing receives it. */
TEST(call_without_effect)
{
	static struct user_space u;

	alarm(SECONDS);
	pthread_mutex_init(&u.pool_lock, NULL);
	user_init_condition(&u.pool_changed);
	user_init_condition(&u.queue.added);
	u.nr_live = 2;
	user_workers_stop(&u);
	EXPECT_EQ(u.nr_live, 2);
	EXPECT_EQ(u.abandoned, 1);
}

/* ---- signals, and descriptors that the application has closed ---- */

/* A copy of each ordinary signal that doesn't end the process, pending at each of its threads */
static void signal_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *d;
	int sig;

	while (dir && (d = readdir(dir)))
		for (sig = 1; *d->d_name != '.' && atoi(d->d_name) != getpid() && sig < 32; sig++)
			if (sig != SIGKILL && sig != SIGSTOP)
				syscall(SYS_tgkill, getpid(), atoi(d->d_name), sig);
	closedir(dir);
}

static int64_t processor_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

TEST(pending_signals)
{
	struct pvas_space *s;
	pid_t pid;

	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(start_sleep(s, &pid), 0);
	signal_threads();
	sleep(1);	/* and they have slept again since */
	alarm(SECONDS);
	pvas_space_destroy(s);
	EXPECT_EQ(end_of(pid), SIGKILL);
}

/* The supervisor sees tasks end, without turning in circles, and leaves the new file alone. */
TEST(epoll_replaced)
{
	const struct user_space *u;
	struct pvas_space *s;
	int64_t begin;
	pid_t pid[2];
	int fd;

	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	u = s->priv;
	ASSERT_GT(start_sleep(s, &pid[0]), 0);
	ASSERT_GT(start_sleep(s, &pid[1]), 0);
	fd = dup2(open("/dev/null", O_RDWR), u->epoll);
	ASSERT_GE(fd, 0);
	alarm(SECONDS);
	/* It learns of this one yet, and then waits for the next event. */
	kill(pid[0], SIGKILL);
	EXPECT_EQ(end_of(pid[0]), SIGKILL);
	begin = processor_ms();
	sleep(2);
	EXPECT_LT(processor_ms() - begin, 500);
	kill(pid[1], SIGKILL);
	EXPECT_EQ(end_of(pid[1]), SIGKILL);
	EXPECT_EQ(pvas_task_list(s, NULL, 0), 0);
	pvas_space_destroy(s);
	EXPECT_GE(fcntl(fd, F_GETFD), 0);
}

TEST(all_descriptors_closed)
{
	struct pvas_space *s;
	pid_t pid[2];

	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(start_sleep(s, &pid[0]), 0);
	ASSERT_GT(start_sleep(s, &pid[1]), 0);
	ASSERT_EQ(syscall(SYS_close_range, 3, ~0U, 0), 0);
	alarm(SECONDS);
	kill(pid[0], SIGKILL);
	EXPECT_EQ(end_of(pid[0]), SIGKILL);
	EXPECT_GE(pvas_task_list(s, NULL, 0), 1);
	EXPECT_LT(start_sleep(s, &pid[0]), 0);
	pvas_space_destroy(s);
	EXPECT_EQ(end_of(pid[1]), SIGKILL);
}

/* A pidfd of @pid with the number @fd, and files with all that are free below */
static int take_numbers(pid_t pid, int fd)
{
	int n = -1;

	while (n < fd && (n = open("/etc/passwd", O_RDONLY)) >= 0 && n < fd)
		;
	if (n != fd)
		return -1;
	close(n);
	return (int)syscall(SYS_pidfd_open, pid, 0) == fd ? 0 : -1;
}

/* Then the application's own files get their numbers. They, and what they name, are left alone. */
TEST(numbers_taken)
{
	const struct user_space *u;
	struct pvas_space *s;
	pid_t pid[2], other;
	int index, fd, last;

	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	u = s->priv;
	index = start_sleep(s, &pid[0]);
	ASSERT_GT(index, 0);
	last = u->parts[index].pidfd;
	ASSERT_EQ(syscall(SYS_close_range, 3, ~0U, 0), 0);
	other = fork();
	while (!other)
		pause();
	ASSERT_EQ(take_numbers(other, last), 0);
	alarm(SECONDS);
	EXPECT_EQ(pvas_task_list(s, NULL, 0), 1);
	EXPECT_LT(start_sleep(s, &pid[1]), 0);
	pvas_space_destroy(s);
	EXPECT_EQ(end_of(pid[0]), SIGKILL);
	for (fd = 3; fd <= last; fd++)
		EXPECT_GE(fcntl(fd, F_GETFD), 0) TH_LOG("%d", fd);
	EXPECT_EQ(waitpid(other, NULL, WNOHANG), 0);
	kill(other, SIGKILL);
	end_of(other);
}

/* ---- what the tasks leave running ---- */

FIXTURE(orphans)
{
	struct hung_server server;
	int go[2];
	int result[2];
	volatile int holds_close;
};

/* Needs root, to mount a file system of its own. */
FIXTURE_SETUP(orphans)
{
	const char *why;

	self->holds_close = 0;
	why = hung_server_start(&self->server, &self->holds_close);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(pipe(self->go), 0);
	ASSERT_EQ(pipe(self->result), 0);
}

FIXTURE_TEARDOWN(orphans)
{
	hung_server_stop(&self->server);
}

/* A helper is in a call that doesn't end. The calls of others fail, as without it. */
TEST_F(orphans, calls_fail)
{
	char go[12], result[12], *argv[] = { NULL, self->server.file, go, result, NULL };
	struct pvas_space *s;
	int err[2];
	pid_t pid;

	snprintf(go, sizeof(go), "%d", self->go[0]);
	snprintf(result, sizeof(result), "%d", self->result[1]);
	argv[0] = (char *)ours("orphan_task");
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	alarm(SECONDS / 2);	/* half of the time that the server lives */
	pvas_space_destroy(s);
	ASSERT_EQ(write(self->go[1], "", 1), 1);
	ASSERT_EQ(read(self->result[0], err, sizeof(err)), sizeof(err));
	EXPECT_EQ(err[0], ENOSYS);
	EXPECT_EQ(err[1], ENOSYS);
}

TEST_HARNESS_MAIN
