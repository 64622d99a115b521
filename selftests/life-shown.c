// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc shows another task when the one that it shows ends. Its program must not stay behind in
 * a space without tasks.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "window.h"

#define WAIT_MS "/sys/module/pvas/parameters/reclaim_wait_ms"
#define TRIES 400

TASK(wait_told)
{
	pt_say("r");
	CHECK_EQ('g', pt_hear(atoi(pt_args[1])));
}

struct told {
	pid_t pid;
	int out[2], in[2];
};

static bool start(struct told *t, struct pvas_space *space, unsigned int index,
		  const char *program)
{
	char out[16], in[16];
	char *argv[] = { (char *)program, (char *)"--task", (char *)"wait_told", out, in, NULL };

	if (pipe(t->out) || pipe(t->in))
		return false;
	snprintf(out, sizeof(out), "%d", t->out[1]);
	snprintf(in, sizeof(in), "%d", t->in[0]);
	return pvas_task_spawn(space, index, program, argv, environ, NULL, &t->pid) ==
	       (int)index && pt_hear(t->out[0]) == 'r';
}

static int let_end(struct told *t)
{
	return write(t->in[1], "g", 1) == 1 ? pt_wait(t->pid) : -errno;
}

static bool are_left(struct pvas_space *space, int n)
{
	int tries;

	for (tries = 0; tries < TRIES && pvas_task_list(space, NULL, 0) > n; tries++)
		usleep(50000);
	return pvas_task_list(space, NULL, 0) == n;
}

static bool copy_file(const char *to)
{
	int in = open(pt_self(), O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	struct stat st;
	bool done = in >= 0 && out >= 0 && !fstat(in, &st);

	while (done && lseek(out, 0, SEEK_CUR) < st.st_size)
		done = sendfile(out, in, NULL, (size_t)st.st_size) > 0;
	close(in);
	close(out);
	return done;
}

/* the next one ends when it has been chosen, and the worker is about to wait for mmap_lock */
MODULE_TEST(next_one_ends_too, "each task has an mm of its own")
{
	struct told shown, next;
	struct pvas_space *space;
	char program[128], wait_ms[32];
	struct window window = { .map = -1 };
	int fd, err;

	PT_NEED_ROOT();
	err = window_make_at(&window, "pvas_lock_write", WINDOW_ANY);
	if (window_is_missing(err))
		SKIP(return, "no BPF program can be attached: %s", strerror(-err));
	ASSERT_EQ(0, err);
	snprintf(program, sizeof(program), "%s/program", pt_tmpdir());
	ASSERT_TRUE(copy_file(program));
	pt_read_file(WAIT_MS, wait_ms, sizeof(wait_ms));
	pt_write_file(WAIT_MS, "500");
	space = PT_SPACE();
	ASSERT_TRUE(start(&shown, space, 1, pt_self()));
	ASSERT_TRUE(start(&next, space, 2, program));
	EXPECT_EQ(-1, open(program, O_WRONLY));
	EXPECT_EQ(ETXTBSY, errno);
	window_hold(&window, 1);
	EXPECT_EQ(0, let_end(&shown));
	ASSERT_TRUE(window_is_open(&window));
	/* Only this one */
	window.control->key = 0;
	EXPECT_EQ(0, let_end(&next));
	EXPECT_TRUE(are_left(space, 1));
	EXPECT_TRUE(window_close(&window));
	EXPECT_TRUE(are_left(space, 0));
	fd = open(program, O_WRONLY);
	EXPECT_LE(0, fd) TH_LOG("%s", strerror(errno));
	close(fd);
	window_break(&window);
	pt_write_file(WAIT_MS, wait_ms);
	pvas_space_destroy(space);
	unlink(program);
	pt_remove_tmpdir();
}

PT_MAIN()
