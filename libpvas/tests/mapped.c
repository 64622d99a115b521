// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend and files that tasks map, of a server that does not answer: they keep neither
 * the launcher nor its workers. Needs root, to mount a file system.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hung_launcher.h"
#include "hung_server.h"
#include "kselftest_harness.h"

#define THREADS	"80"	/* more than there can be workers */

FIXTURE(mapped)
{
	struct hung_server server;
	volatile int *holds_close;
	char bare[80];
};

FIXTURE_SETUP(mapped)
{
	const char *why;

	self->holds_close = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	why = hung_server_start(&self->server, self->holds_close);
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

TEST_HARNESS_MAIN
