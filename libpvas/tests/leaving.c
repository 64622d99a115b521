// SPDX-License-Identifier: LGPL-2.1-or-later
/* A program that was to be a task, or whose parent is one, and is none: the line about it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "helpers.h"
#include "pvas.h"

/* The values of variables that a launcher sets */
struct set {
	pid_t launcher;		/* 0: none */
	const char *verbose, *exec;
	int asks;		/* how often it asks for its index */
};

static void put(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void ask(const struct set *set, int out)
{
	char launcher[16];
	int i, status = 0;

	snprintf(launcher, sizeof(launcher), "%d", set->launcher);
	put("PVAS_LAUNCHER", set->launcher ? launcher : NULL);
	put("PVAS_VERBOSE", set->verbose);
	put("PVAS_EXEC", set->exec);
	setenv("PVAS_SPACE", "7", 1);
	setenv("PVAS_RANK", "5", 1);
	dup2(out, STDERR_FILENO);
	for (i = 0; i < set->asks; i++) {
		errno = 0;
		status |= pvas_task_get_index() != -ESRCH || errno;
	}
	_exit(status);
}

/* The text that a child of this process writes; returns its wait status. */
static int written_by(const struct set *set, char *text, size_t len)
{
	int p[2];
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(p))
		return -1;
	pid = fork();
	if (!pid)
		ask(set, p[1]);
	close(p[1]);
	while ((n = read(p[0], text + used, len - 1 - used)) > 0)
		used += n;
	text[used] = '\0';
	close(p[0]);
	return end_of(pid);
}

/* The launcher's own child */
TEST(child_of_the_launcher)
{
	struct set set = { .launcher = getpid(), .asks = 3 };
	char text[8192], *end;

	EXPECT_EQ(0, written_by(&set, text, sizeof(text)));
	EXPECT_EQ(0, strncmp(text, "libpvas: rank 5 (pid ", strlen("libpvas: rank 5 (pid "))) TH_LOG("%s", text);
	EXPECT_TRUE(strstr(text, "/leaving runs outside the space (see PVAS_EXEC in pvas(7))\n"));
	end = strchr(text, '\n');
	EXPECT_TRUE(end && !end[1]) TH_LOG("not one line: %s", text);
	set.exec = "leave";
	EXPECT_EQ(0, written_by(&set, text, sizeof(text)));
	EXPECT_STREQ("", text);
}

/* A task's child, as if process 1 were the launcher */
TEST(child_of_a_task)
{
	struct set set = { .launcher = 1, .verbose = "1", .asks = 3 };
	char text[8192], wanted[256];

	/* A name that would write to the terminal what it wants */
	prctl(PR_SET_NAME, "a\n\033b");
	snprintf(wanted, sizeof(wanted), ") is no task: a??b (pid %d), in rank 5, started it as a child process, outside the space (",
		 getpid());
	EXPECT_EQ(0, written_by(&set, text, sizeof(text)));
	EXPECT_EQ(0, strncmp(text, "libpvas: /", strlen("libpvas: /"))) TH_LOG("%s", text);
	EXPECT_TRUE(strstr(text, "/leaving (pid "));
	EXPECT_TRUE(strstr(text, wanted)) TH_LOG("%s", text);
	EXPECT_TRUE(strchr(text, '\n') && !strchr(text, '\n')[1]) TH_LOG("not one line: %s", text);
}

/* Not unless the user wants to know more, nor outside a job, nor if the user wants it so */
TEST(silent)
{
	static const char *const values[] = { NULL, "", "0", "-", "11" };
	struct set set = { .asks = 1 };
	char text[8192];
	size_t i;

	set.launcher = 1;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		set.verbose = values[i];
		EXPECT_EQ(0, written_by(&set, text, sizeof(text)));
		EXPECT_STREQ("", text);
	}
	set.verbose = "1";
	set.exec = "leave";
	EXPECT_EQ(0, written_by(&set, text, sizeof(text)));
	EXPECT_STREQ("", text);
	set.exec = NULL;
	set.launcher = 0;
	EXPECT_EQ(0, written_by(&set, text, sizeof(text)));
	EXPECT_STREQ("", text);
}

TEST_HARNESS_MAIN
