// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A place of the protocol was reached; see fault_point.h. PVAS_TEST_POINT=RANK:ACTION:N says
 * of which rank and, counted from 1, which one; N=0: each one. ACTION is
 *
 *  list	write its name to standard error
 *  kill	end by SIGKILL
 *  exec	become /bin/true
 *  replace	become a program that runs for a while, where the old one was in memory
 *  stop	stop until another process continues us
 *
 * PVAS_TEST_PAUSE=NAME: all ranks pause there, so that others come to what follows; so many
 * microseconds with PVAS_TEST_PAUSE_US.
 */
#include "../../fault_point.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY 0UL

extern char **environ;

static struct {
	enum { UNKNOWN, OFF, ON } state;
	const char *pause;
	unsigned int pause_us;
	char action[16];
	unsigned long at;
	unsigned long reached;
} plan;

static void make_plan(void)
{
	const char *text = getenv("PVAS_TEST_POINT"), *self = getenv("OMPI_COMM_WORLD_RANK");
	const char *us = getenv("PVAS_TEST_PAUSE_US");
	int rank;

	plan.state = OFF;
	plan.pause = getenv("PVAS_TEST_PAUSE");
	plan.pause_us = us ? atoi(us) : 3000;
	if (!text || !self || sscanf(text, "%d:%15[a-z]:%lu", &rank, plan.action, &plan.at) != 3 ||
	    rank != atoi(self))
		return;
	plan.state = ON;
}

/* It ends once we have. */
static void start_helper(void)
{
	static char *const args[] = {
		"sh", "-c", "while kill -CONT $PPID; do sleep 0.004; done", NULL
	};
	static int started;
	posix_spawn_file_actions_t files;
	pid_t pid;
	int fd;

	if (started++)
		return;
	posix_spawn_file_actions_init(&files);
	for (fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
	if (posix_spawn(&pid, "/bin/sh", &files, NULL, args, environ))
		_exit(99);
	posix_spawn_file_actions_destroy(&files);
}

static void say(const char *name)
{
	char text[100];
	int len = snprintf(text, sizeof(text), "point %lu %s\n", plan.reached, name);

	if (write(STDERR_FILENO, text, len) != len)
		_exit(99);
}

static void act(const char *name)
{
	if (!strcmp(plan.action, "stop")) {
		start_helper();
		raise(SIGSTOP);
		return;
	}
	say(name);
	if (!strcmp(plan.action, "exec"))
		execl("/bin/true", "true", NULL);
	else if (!strcmp(plan.action, "replace"))
		execl("/bin/sleep", "sleep", "3", NULL);
	if (strcmp(plan.action, "list"))
		raise(SIGKILL);
}

void mca_pml_pvas_reach_point(const char *name)
{
	if (plan.state == UNKNOWN)
		make_plan();
	if (plan.state == ON && (++plan.reached == plan.at || plan.at == EVERY))
		act(name);
	if (plan.pause && !strcmp(plan.pause, name))
		usleep(plan.pause_us);
}
