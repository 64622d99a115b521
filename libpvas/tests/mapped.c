// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend and files that tasks map, of a server that does not answer: they keep neither
 * the launcher nor its workers. Needs root, to mount a file system.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hung_launcher.h"
#include "hung_server.h"
#include "kselftest_harness.h"

#define THREADS	"80"	/* more than there can be workers */
#define PROCESSES 64	/* that wait for one server */

FIXTURE(mapped)
{
	struct hung_server server;
	volatile int *holds_close;
	char bare[80];
};

FIXTURE_SETUP(mapped)
{
	const char *why = hung_server_start_shared(&self->server, &self->holds_close);

	if (why)
		SKIP(return, "%s", why);
	snprintf(self->bare, sizeof(self->bare), "%s/bare", self->server.dir);
	*self->holds_close = 1;
}

FIXTURE_TEARDOWN(mapped)
{
	hung_server_stop(&self->server);
}

TEST_F_TIMEOUT(mapped, file_keeps_no_launcher, 60)
{
	const char *task[4] = { "hung_task", "map", self->server.file };

	EXPECT_TRUE(launcher_can_be_killed(task));
	EXPECT_EQ(*self->holds_close, CLOSE_HANGS);
}

/* How often is this segment attached? It is in the memory of the launcher. */
static int attached(int id)
{
	struct shmid_ds ds;

	return shmctl(id, IPC_STAT, &ds) ? -1 : (int)ds.shm_nattch;
}

/* Where descriptors can't be copied it is opened again. No process keeps the job's memory. */
TEST_F_TIMEOUT(mapped, open_keeps_no_memory, 60)
{
	const char *task[4] = { "hung_task", "map", self->bare };
	const int nr[] = { SYS_pidfd_getfd }, id = shmget(IPC_PRIVATE, 4096, 0600);
	int i;

	ASSERT_NE(shmat(id, NULL, 0), (void *)-1);
	shmctl(id, IPC_RMID, NULL);
	snprintf(self->bare, sizeof(self->bare), "%s/once", self->server.dir);
	forbid(nr, 1, EPERM);
	EXPECT_TRUE(launcher_can_be_killed(task));
	for (i = 0; i < 1000 && attached(id) != 1; i++)
		usleep(10000);
	EXPECT_EQ(attached(id), 1);
}

/* And it is mapped. */
TEST_F_TIMEOUT(mapped, opened_again, 60)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	const int nr[] = { SYS_pidfd_getfd };
	struct pvas_space *s;
	pid_t pid;
	int i;

	*self->holds_close = 0;
	forbid(nr, 1, EPERM);
	ASSERT_EQ(pvas_space_create(&s, &attr), 0) TH_LOG("%s", pvas_error_get());
	for (i = 0; i < 3; i++) {
		ASSERT_GT(start_of(s, "hung_task", "map", self->server.file, NULL, &pid), 0);
		EXPECT_EQ(end_of(pid), 0);
	}
	pvas_space_destroy(s);
}

/* Threads of one task, which all wait: another one starts, maps memory and ends. */
static void threads_wait(struct __test_metadata *_metadata, const char *what, const char *file)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	struct pvas_space *s;
	pid_t pid, other;
	int i;

	ASSERT_EQ(pvas_space_create(&s, &attr), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(start_of(s, "hung_task", what, file, THREADS, &pid), 0);
	sleep(2);
	for (i = 0; i < 3; i++) {
		ASSERT_GT(start_of(s, "peer_task", "own-state", NULL, NULL, &other), 0);
		EXPECT_EQ(end_of(other), 0);
	}
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
}

TEST_F_TIMEOUT(mapped, bare_file_keeps_workers_for_others, 60)
{
	threads_wait(_metadata, "map-threads", self->bare);
	kill(self->server.pid, SIGKILL);
}

TEST_F_TIMEOUT(mapped, file_to_be_filled_keeps_workers_for_others, 60)
{
	threads_wait(_metadata, "populate-threads", self->server.file);
	kill(self->server.pid, SIGKILL);
}

/* ---- how many processes there are for that ---- */

/* Of the processes that this thread has made, and @task not; they are killed? */
static int count_children(const char *thread, pid_t task, int kills)
{
	char path[300], text[4096], *at = text;
	ssize_t len;
	int n = 0, fd;

	snprintf(path, sizeof(path), "/proc/self/task/%s/children", thread);
	fd = open(path, O_RDONLY);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = 0;
	while (*at) {
		const pid_t pid = (pid_t)strtol(at, &at, 10);

		at += strspn(at, " ");
		if (pid == task)
			continue;
		n++;
		if (kills)
			kill(pid, SIGKILL);
	}
	return n;
}

/* Of all threads but this one */
static int count_all(pid_t task, int kills)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *t;
	int n = 0;

	while ((t = readdir(threads)))
		if (t->d_name[0] != '.' && atoi(t->d_name) != getpid())
			n += count_children(t->d_name, task, kills);
	closedir(threads);
	return n;
}

/* The server never lets them close it: then the task waits, and nobody else. */
TEST_F_TIMEOUT(mapped, file_has_few_processes, 60)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	int64_t begin = now_ms();
	struct pvas_space *s;
	int n = 0, before = -1;
	pid_t pid;

	ASSERT_EQ(pvas_space_create(&s, &attr), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(start_of(s, "hung_task", "map-again", self->server.file, "200", &pid), 0);
	while (!waitpid(pid, NULL, WNOHANG) && now_ms() - begin < 30000 &&
	       (n < PROCESSES || n != before)) {
		before = n;
		usleep(300000);
		n = count_all(pid, 0);
	}
	EXPECT_GE(n, PROCESSES);
	EXPECT_LE(n, PROCESSES + 1);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(self->server.pid, SIGKILL);
	EXPECT_EQ(end_of(pid), 0);
	pvas_space_destroy(s);
}

/* One of them is killed, by the OOM killer, say: the call fails, and returns no address. */
TEST_F_TIMEOUT(mapped, process_is_killed, 60)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	int64_t begin = now_ms();
	struct pvas_space *s;
	int n = 0, status;
	pid_t pid;

	*self->holds_close = 0;
	ASSERT_EQ(pvas_space_create(&s, &attr), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(start_of(s, "hung_task", "map-again", self->server.file, "1000000", &pid), 0);
	while (!waitpid(pid, &status, WNOHANG) && now_ms() - begin < 2000)
		n += count_all(pid, 1);
	EXPECT_GT(n, 0);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	pvas_space_destroy(s);
}

TEST_HARNESS_MAIN
