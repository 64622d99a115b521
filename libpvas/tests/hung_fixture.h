/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests, as root: a space, and a file server that doesn't answer its tasks. */
#ifndef PVAS_TEST_HUNG_FIXTURE_H
#define PVAS_TEST_HUNG_FIXTURE_H

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "hung_launcher.h"
#include "hung_server.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define TASKS	8	/* more than there are workers at first */
#define CHILDREN "80"	/* more than there can be workers */

/*
 * Of this program and of the library in it. A wait until a time of this clock, which may be set
 * back, takes too long.
 */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += 3600;
	return err;
}

FIXTURE(hung)
{
	struct hung_server server;
	volatile int *holds_close;
	struct pvas_space *s;
};

FIXTURE_SETUP(hung)
{
	const char *why = hung_server_start_shared(&self->server, &self->holds_close);

	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(pvas_space_create(&self->s, &(struct pvas_create_attr){
			.size = sizeof(struct pvas_create_attr), .backend = PVAS_BACKEND_USER }), 0)
		TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(hung)
{
	hung_server_stop(&self->server);
}

static inline int start_with(struct pvas_space *s, const char *what, const char *arg,
			     const char *arg2, pid_t *pid)
{
	return start_of(s, "hung_task", what, arg, arg2, pid);
}

static inline int start(struct pvas_space *s, const char *what, const char *arg, pid_t *pid)
{
	return start_with(s, what, arg, NULL, pid);
}

/* Tasks start, run and end. */
static inline void others_go_on(struct __test_metadata *_metadata, struct pvas_space *s)
{
	pid_t other;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_GT(start_of(s, "peer_task", "own-state", NULL, NULL, &other), 0);
		EXPECT_EQ(end_of(other), 0);
	}
	ASSERT_GT(start_of(s, "peer_task", "descriptors", NULL, NULL, &other), 0);
	EXPECT_EQ(end_of(other), 0);
}

static inline void all_wait(struct __test_metadata *_metadata, struct pvas_space *s,
			    const char *what, const char *file, pid_t pid[TASKS])
{
	int i;

	for (i = 0; i < TASKS; i++) {
		ASSERT_GT(start(s, what, file, &pid[i]), 0);
	}
	usleep(300000);
	others_go_on(_metadata, s);
	for (i = 0; i < TASKS; i++) {
		EXPECT_EQ(waitpid(pid[i], NULL, WNOHANG), 0);
		kill(pid[i], SIGKILL);
	}
}

static inline void destroy(struct __test_metadata *_metadata, struct pvas_space *s)
{
	int64_t begin = now_ms();

	pvas_space_destroy(s);
	EXPECT_LT(now_ms() - begin, 60000);
}

/* A worker fills the mapping; or it reads the name of a link in one. */
static inline void reader_waits(struct __test_metadata *_metadata, FIXTURE_DATA(hung) *self,
				const char *what)
{
	pid_t pid[TASKS];
	int i;

	all_wait(_metadata, self->s, what, self->server.file, pid);
	for (i = 0; i < TASKS; i++) {
		EXPECT_EQ(end_of(pid[i]), SIGKILL);
	}
	others_go_on(_metadata, self->s);
	/* No other task gets their partitions: workers are going to store there. */
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), TASKS);
	destroy(_metadata, self->s);
}

#endif /* PVAS_TEST_HUNG_FIXTURE_H */
