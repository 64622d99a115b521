// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two tasks map up to the border of their partitions. The kernel makes one area of what
 * they map there. The end of one must not act on the part of the other.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

#define UPPER_LEN	(64UL << 20)	/* several times as much as is freed in one step */
#define LOWER_LEN	(16 * PAGE)
#define BYTE		42

/* In a task: says that it is ready, and waits until it may go on. */
static void meet(void)
{
	char c = 'r';

	CHECK_EQ(1, write(atoi(pt_args[0]), &c, 1));
	CHECK_EQ(1, read(atoi(pt_args[1]), &c, 1));
}

static char *map_at(uintptr_t at, size_t len)
{
	char *p = mmap((void *)at, len, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(p == (char *)at);
	return p;
}

struct neighbour {
	pid_t pid;
	int up[2], down[2];
};

static int start(struct neighbour *n, struct pvas_space *space, unsigned int index,
		 const char *name)
{
	char c;
	int ret;

	if (pipe2(n->up, 0) || pipe2(n->down, 0))
		return -errno;
	ret = pt_start_task_fds(space, index, name, n->up[1], n->down[0], &n->pid);
	close(n->up[1]);
	close(n->down[0]);
	if (ret < 0)
		return ret;
	return read(n->up[0], &c, 1) == 1 ? 0 : -EPIPE;
}

static int end(struct neighbour *n)
{
	int ret = write(n->down[1], "g", 1) == 1 ? pt_wait(n->pid) : -errno;

	close(n->up[0]);
	close(n->down[1]);
	return ret;
}

TASK(lower)
{
	char *p = map_at(pt_base() + pt_size() - LOWER_LEN, LOWER_LEN);

	memset(p, BYTE, LOWER_LEN);
	meet();
}

TASK(upper_keeps)
{
	char *p = map_at(pt_base(), UPPER_LEN);
	size_t i, gone = 0;
	unsigned char in;

	memset(p, BYTE, UPPER_LEN);
	meet();
	for (i = 0; i < UPPER_LEN; i += PAGE)
		gone += mincore(p + i, PAGE, &in) || p[i] != BYTE;
	CHECK_EQ(0, gone);
}

/* one that ends unmaps its own part */
MODULE_TEST(end_of_a_neighbour, "each task has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	struct neighbour upper, lower;

	ASSERT_EQ(0, start(&upper, space, 2, "upper_keeps"));
	ASSERT_EQ(0, start(&lower, space, 1, "lower"));
	EXPECT_EQ(0, end(&lower));
	EXPECT_EQ(0, end(&upper));
	pvas_space_destroy(space);
}

PT_MAIN()
