// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: once the launcher can know that a task has exited, was killed or has
 * left by execve(), the task is not listed, and its partition can be used again.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "user/worker.h"
#include "kselftest_harness.h"

#define INDEX	3
#define PENDING	INT_MIN

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

FIXTURE(ended)
{
	struct pvas_space *s;
	struct pipes {
		int to[2];	/* the task waits for a line */
		int from[2];
	} pipes;
};

FIXTURE_VARIANT(ended)
{
	const char *script;
	int leaves;
};

FIXTURE_VARIANT_ADD(ended, by_exit) { .script = "read go; exit 0" };
FIXTURE_VARIANT_ADD(ended, by_kill) { .script = "read go; kill -KILL $$" };
FIXTURE_VARIANT_ADD(ended, by_exec) {
	.script = "read go; export PVAS_EXEC=leave; exec sh -c 'echo; exec sleep 100'", .leaves = 1,
};

FIXTURE_SETUP(ended)
{
	ASSERT_EQ(pipe2(self->pipes.to, O_CLOEXEC), 0);
	ASSERT_EQ(pipe2(self->pipes.from, O_CLOEXEC), 0);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(ended)
{
	pvas_space_destroy(self->s);
}

static int use_pipes(void *arg)
{
	const struct pipes *p = arg;

	return dup2(p->to[0], 0) == 0 && dup2(p->from[1], 1) == 1 ? 0 : -errno;
}

/*
 * Returns its pid once the caller can know that there is no such task any more; < 0: error. With
 * the lock, which its start needs.
 */
static pid_t make_ended(struct pvas_space *s, const char *script, int leaves, struct pipes *p)
{
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr), .setup = use_pipes, .setup_arg = p,
	};
	char *argv[] = { "sh", "-c", (char *)script, NULL };
	pid_t pid;
	char c;
	int ret = pvas_task_spawn(s, INDEX, "/bin/sh", argv, environ, &attr, &pid);

	pthread_mutex_lock(&((struct user_space *)s->priv)->fork_lock);
	if (ret < 0)
		return ret;
	if (write(p->to[1], "\n", 1) != 1)
		return -EIO;
	if (leaves)
		return read(p->from[0], &c, 1) == 1 ? pid : -EIO;
	return end_of(pid) < 0 ? -ECHILD : pid;
}

struct query {
	struct pvas_space *s;
	int answer;
};

static void *list(void *arg)
{
	struct query *q = arg;

	__atomic_store_n(&q->answer, pvas_task_list(q->s, NULL, 0), __ATOMIC_RELEASE);
	return NULL;
}

static void *start_another(void *arg)
{
	char *argv[] = { "true", NULL };
	struct query *q = arg;
	pid_t pid;

	__atomic_store_n(&q->answer,
			 pvas_task_spawn(q->s, INDEX, "/bin/true", argv, environ, NULL, &pid),
			 __ATOMIC_RELEASE);
	if (q->answer == INDEX)
		end_of(pid);
	return NULL;
}

/*
 * The lock stops the supervisor between its discovery that the task has ended and the
 * moment when the table says so. A query in between has to wait.
 */
static int query_in_between(struct __test_metadata *_metadata, struct pvas_space *s,
			    const FIXTURE_VARIANT(ended) *variant, struct pipes *p,
			    void *(*query)(void *))
{
	struct query q = { .s = s, .answer = PENDING };
	struct user_space *u = s->priv;
	pthread_t t;
	pid_t pid;

	pid = make_ended(s, variant->script, variant->leaves, p);
	EXPECT_GT(pid, 0) TH_LOG("%d: %s", pid, pvas_error_get());
	usleep(100000);
	EXPECT_EQ(pthread_create(&t, NULL, query, &q), 0);
	usleep(100000);
	EXPECT_EQ(__atomic_load_n(&q.answer, __ATOMIC_ACQUIRE), PENDING);
	pthread_mutex_unlock(&u->fork_lock);
	pthread_join(t, NULL);
	if (variant->leaves && pid > 0) {
		EXPECT_EQ(kill(pid, SIGKILL), 0);
		EXPECT_EQ(end_of(pid), SIGKILL);
	}
	return q.answer;
}

TEST_F(ended, is_not_listed)
{
	EXPECT_EQ(query_in_between(_metadata, self->s, variant, &self->pipes, list), 0);
}

TEST_F(ended, makes_room)
{
	EXPECT_EQ(query_in_between(_metadata, self->s, variant, &self->pipes, start_another),
		  INDEX);
}

/* A fork child has a copy of the table, in which no task ends any more: it must not wait. */
TEST(list_in_a_fork_child)
{
	char *argv[] = { "true", NULL };
	struct user_part *p;
	struct pvas_space *s;
	pid_t pid;

	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	p = &((struct user_space *)s->priv)->parts[INDEX];
	/* As if a worker handled a request of the task, which is not reclaimed meanwhile. */
	pthread_mutex_lock(&p->lock);
	ASSERT_EQ(pvas_task_spawn(s, INDEX, "/bin/true", argv, environ, NULL, &pid), INDEX);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	while (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING)
		usleep(1000);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(pvas_task_list(s, NULL, 0) == 1 ? 0 : 1);
	}
	pthread_mutex_unlock(&p->lock);
	EXPECT_EQ(end_of(pid), 0);
	pvas_space_destroy(s);
}

TEST_HARNESS_MAIN
