// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where faults are served. The thread that faults sleeps meanwhile, and its processor has nothing
 * to do; but the kernel likes to wake a server on another one that is idle, and each of the two
 * wakeups then waits until a sleeping processor is up: several times as long as the fault of a
 * small page. So while all faults come from one thread, the servers run on its processor. If
 * several threads fault, the kernel has the better view: some of them run while others wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "far.h"

enum {
	ALONE = 32,	/* faults of one thread in a row that make it the only one */
	LOOK = 512,	/* faults after which its processor is looked up again */
	ANYWHERE = -1,
};

/* Field 39 of proc(5)'s stat, behind the name, which may contain anything; ANYWHERE: unknown */
static int parse_processor(const char *stat)
{
	const char *at = strrchr(stat, ')');
	int field;

	for (field = 2; at && field < 39; field++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	return at && *at >= '0' && *at <= '9' ? atoi(at) : ANYWHERE;
}

/* Of a thread that sleeps: where it will go on */
static int processor_of(pid_t tid)
{
	char path[40], stat[1024];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, stat, sizeof(stat) - 1);
		close(fd);
	}
	if (n <= 0)
		return ANYWHERE;
	stat[n] = '\0';
	return parse_processor(stat);
}

void far_home_begin(struct far_home *home)
{
	home->at = ANYWHERE;
	home->known = !sched_getaffinity(0, sizeof(home->all), &home->all);
}

static void move_to(struct far_home *home, int processor)
{
	cpu_set_t one;

	if (!home->known || processor == home->at || processor >= CPU_SETSIZE)
		return;
	CPU_ZERO(&one);
	if (processor >= 0)
		CPU_SET(processor, &one);
	/* If it is refused, nothing is lost. */
	sched_setaffinity(0, sizeof(one), processor < 0 ? &home->all : &one);
	home->at = processor;
}

void far_home_follow(struct far_home *home, pid_t tid)
{
	static pid_t last;
	static unsigned int count;
	unsigned int now;

	/* Several servers: a count that is wrong once in a while does no harm. */
	if (__atomic_exchange_n(&last, tid, __ATOMIC_RELAXED) != tid) {
		__atomic_store_n(&count, 0, __ATOMIC_RELAXED);
		move_to(home, ANYWHERE);
		return;
	}
	now = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	if (now >= ALONE && (home->at == ANYWHERE || now % LOOK == 0))
		move_to(home, processor_of(tid));
}
