/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests: a launcher that is killed while a file server doesn't answer its task. */
#ifndef PVAS_TEST_HUNG_LAUNCHER_H
#define PVAS_TEST_HUNG_LAUNCHER_H

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"

static inline int start_of(struct pvas_space *s, const char *program, const char *what,
			   const char *arg, const char *arg2, pid_t *pid)
{
	char *argv[] = {
		(char *)ours(program), (char *)what, (char *)arg, (char *)arg2, NULL,
	};

	return pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, pid);
}

static inline void __attribute__((noreturn)) launch(const char *const task[4], int ready)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	struct pvas_space *s;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!pvas_space_create(&s, &attr) &&
	    start_of(s, task[0], task[1], task[2], task[3], &pid) > 0 && write(ready, "", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static inline int ends_within(pid_t pid, int ms)
{
	int64_t until = now_ms() + ms;

	while (!waitpid(pid, NULL, WNOHANG) && now_ms() < until)
		usleep(10000);
	return now_ms() < until;
}

/* With this task, a program and its arguments, a second after it has begun */
static inline int launcher_can_be_killed(const char *const task[4])
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return 0;
	pid = fork();
	if (!pid)
		launch(task, ready[1]);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		return 0;
	close(ready[0]);
	usleep(1000000);
	kill(pid, SIGKILL);
	return ends_within(pid, 20000);
}

#endif /* PVAS_TEST_HUNG_LAUNCHER_H */
