// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: whether a process has left our mm, by the sizes of its address space.
 *
 * kcmp(), and all files of /proc for which the right to trace is checked, wait for an execve() of
 * that process: from when it takes the old mm's lock until it has closed files. Both can take as
 * long as a file server likes, which can be of another user. /proc/PID/statm, and "status", take
 * no lock that anybody can hold for long.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

#define SAMPLES	64

/* Of an address space in pages; both 0 if there is none, as of an exited first thread */
struct size {
	unsigned long all;
	unsigned long text;	/* of the program's file: the same as long as the mm exists */
};

static struct size read_size(int fd)
{
	struct size size = { 0 };
	char text[128];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return size;
	text[n] = 0;
	if (sscanf(text, "%lu %*u %*u %lu", &size.all, &size.text) != 2)
		size.all = 0;
	return size;
}

static int open_size(pid_t pid, pid_t tid)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%d/statm", tid);
	return user_proc_open(pid, name, O_RDONLY);
}

static void close_size(int fd)
{
	if (fd >= 0)
		close(fd);
}

unsigned long user_caller_pages(pid_t pid, pid_t tid)
{
	int fd = open_size(pid, tid);
	unsigned long pages = fd < 0 ? 0 : read_size(fd).all;

	close_size(fd);
	return pages;
}

/*
 * Does one keep a size that the other never has? Peers map and unmap meanwhile, so one
 * mm can have another size at each look, but it doesn't know whom we ask next.
 */
static int differ_for_long(int own, int its)
{
	const unsigned long kept = read_size(its).all;
	uint64_t order;
	unsigned int i;

	if (!kept || pvas_raw3(__NR_getrandom, &order, sizeof(order), 0) != sizeof(order))
		return 0;
	for (i = 0; i < SAMPLES; i++, order >>= 1) {
		if (order & 1 ? read_size(its).all != kept : read_size(own).all == kept)
			return 0;
	}
	return 1;
}

/* At the end of an execve() an mm has no text yet. */
static int differ(int own, int its)
{
	const struct size at = read_size(its), ours = read_size(own);

	if (!at.all || !ours.all)
		return 0;
	if (at.text != ours.text)
		return 1;
	return at.all != ours.all && differ_for_long(own, its);
}

int user_caller_left(pid_t pid, pid_t tid)
{
	const pid_t self = user_caller_self();
	int its = open_size(pid, tid), own = its < 0 ? -1 : open_size(self, self);
	int left = own >= 0 && differ(own, its);

	close_size(own);
	close_size(its);
	return left;
}
