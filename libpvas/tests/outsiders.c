// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend and processes that are no tasks, whose calls hang in a file server that
 * doesn't answer. Needs root, to mount a file system.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "helpers.h"
#include "hung_server.h"
#include "pvas.h"
#include "user/worker.h"
#include "kselftest_harness.h"

FIXTURE(outsiders)
{
	struct hung_server server;
	struct pvas_space *s;
};

FIXTURE_SETUP(outsiders)
{
	static volatile int answers;
	const char *why = hung_server_start(&self->server, &answers);

	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(pvas_space_create(&self->s, &(struct pvas_create_attr){
			.size = sizeof(struct pvas_create_attr), .backend = PVAS_BACKEND_USER }), 0)
		TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(outsiders)
{
	hung_server_stop(&self->server);
}

static pid_t start(struct pvas_space *s, const char *what, const char *file, const char *n)
{
	char *argv[] = {
		(char *)ours("outsider_task"), (char *)what, (char *)file, (char *)n, NULL,
	};
	pid_t pid;
	int index = pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid);

	return index < 0 ? index : pid;
}

static int run_shell(struct pvas_space *s, const char *command)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	pid_t pid;
	int index = pvas_task_spawn(s, PVAS_ANY, "/bin/sh", argv, environ, NULL, &pid);

	return index < 0 ? index : end_of(pid);
}

/* Until as many helpers as calls of one user may keep have one that hangs */
static void all_hang(struct pvas_space *s)
{
	const struct user_space *u = s->priv;

	while (__atomic_load_n(&u->queue.nr_strangers, __ATOMIC_SEQ_CST) < OWNER_MAX)
		usleep(10000);
	usleep(300000);
}

/* Programs that a task's child has started, of the same user: the children of others go on. */
TEST_F_TIMEOUT(outsiders, that_hang_keep_no_child_of_a_task, 60)
{
	pid_t pid = start(self->s, "install", self->server.file, "80");

	ASSERT_GT(pid, 0);
	all_hang(self->s);
	EXPECT_EQ(run_shell(self->s, "/bin/true; exit 3"), 3 << 8);
	kill(pid, SIGKILL);
	end_of(pid);
	pvas_space_destroy(self->s);
}

/* Those of one user: a program of another one goes on. */
TEST_F_TIMEOUT(outsiders, that_hang_keep_no_other_user, 60)
{
	pid_t pid = start(self->s, "install-as-other", self->server.file, "80"), other;

	ASSERT_GT(pid, 0);
	all_hang(self->s);
	other = start(self->s, "install-well", self->server.file, "1");
	ASSERT_GT(other, 0);
	EXPECT_EQ(end_of(other), 0);
	kill(pid, SIGKILL);
	end_of(pid);
	pvas_space_destroy(self->s);
}

TEST_HARNESS_MAIN
