// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: readlink() of /proc/PID/exe.
 *
 * The kernel has one such link per mm, the launcher's. So the links of tasks are
 * answered here: the caller's own from its page (a fork child has a copy, which
 * outlives the parent), a peer's from the peer's page. The kernel answers for
 * other processes.
 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rawsys.h"
#include "worker.h"

/* Strip "/123", or "/self", which counts as 0, from the path. Returns whether it was there. */
static int take_number(const char **path, const char *self, pid_t *number)
{
	size_t len = strlen(self);
	long value;
	char *end;

	if (!strncmp(*path, self, len) && (*path)[len] == '/') {
		*number = 0;
		*path += len;
		return 1;
	}
	if ((*path)[0] != '/' || (*path)[1] < '1' || (*path)[1] > '9')
		return 0;
	value = strtol(*path + 1, &end, 10);
	*number = (pid_t)value;
	*path = end;
	return *end == '/' && value <= INT_MAX;
}

/*
 * The process or thread that /proc/N[/task/M]/exe is about; 0: the caller; -1: no such name, as
 * if M is a thread of another process.
 */
static pid_t subject(const char *path, pid_t caller)
{
	pid_t pid, tid;

	if (strncmp(path, "/proc", 5))
		return -1;
	path += 5;
	if (!strcmp(path, "/thread-self/exe"))
		return 0;
	if (!take_number(&path, "/self", &pid))
		return -1;
	if (!strcmp(path, "/exe"))
		return pid;
	if (strncmp(path, "/task", 5))
		return -1;
	path += 5;
	if (!take_number(&path, "/0", &tid) || !tid || strcmp(path, "/exe"))
		return -1;
	return user_caller_process(tid) == (pid ? pid : user_caller_process(caller)) ? tid : -1;
}

static struct user_part *find_task(struct user_space *u, pid_t pid)
{
	uint32_t i;

	for (i = u->space->first; pid > 0 && i <= u->space->last; i++)
		if (u->parts[i].pid == pid &&
		    __atomic_load_n(&u->parts[i].state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING)
			return &u->parts[i];
	return NULL;
}

struct user_part *user_part_of_process(struct user_space *u, pid_t tid)
{
	struct user_part *p = find_task(u, tid);

	return p ? p : find_task(u, user_caller_process(tid));
}

/* The process whose memory has the name, in the page of @at. 0: left to the kernel. */
static pid_t find_page(struct user_space *u, struct user_part *p, pid_t caller, int inside,
		       pid_t about, struct user_part **at)
{
	pid_t own = inside ? user_caller_self() : caller;

	*at = p;
	if (!about || about == caller || about == (inside ? p->pid : user_caller_process(caller)))
		return own;
	if (!inside)
		return user_caller_process(about) == user_caller_process(caller) ? own : 0;
	*at = user_part_of_process(u, about);
	return *at && !user_caller_left((*at)->pid, (*at)->pid) ? own : 0;
}

/*
 * It may have changed its root to a tree without /proc: then the kernel refuses the call. The
 * server of that tree need not answer. Nor are its links followed: see user_reader_type().
 */
static int sees_proc(pid_t tid, int inside)
{
	return (inside && user_proc_in_root(tid)) ||
	       user_reader_type(tid, "root", "proc") == PROC_SUPER_MAGIC;
}

static int exe_of(struct user_space *u, struct user_part *p, pid_t caller, int inside,
		  const char *path, char *exe, size_t len)
{
	struct user_part *at;
	pid_t about = subject(path, caller), mem;

	if (about < 0)
		return 0;
	mem = find_page(u, p, caller, inside, about, &at);
	if (!mem || !sees_proc(caller, inside))
		return 0;
	user_caller_read(mem, (uint64_t)at->page->exe, exe, len - 1);
	return *exe != 0;
}

static int64_t answer(struct user_request *r, uint64_t path, uint64_t buf, uint64_t room)
{
	pid_t memory = r->inside ? user_caller_self() : r->tid;
	char text[64] = "";
	char exe[sizeof(r->part->page->exe)] = "";
	size_t len;

	user_caller_read(memory, path, text, sizeof(text) - 1);
	if ((int64_t)room <= 0 ||
	    !exe_of(r->u, r->part, r->tid, r->inside, text, exe, sizeof(exe))) {
		r->continued = 1;
		return 0;
	}
	len = strlen(exe);
	if (len > room)
		len = room;
	if (user_caller_write(memory, buf, exe, len) != (ssize_t)len)
		return -EFAULT;
	return (int64_t)len;
}

int64_t user_on_readlink(struct user_request *r)
{
	return answer(r, r->args[0], r->args[1], (uint64_t)(int)r->args[2]);
}

int64_t user_on_readlinkat(struct user_request *r)
{
	return answer(r, r->args[1], r->args[2], (uint64_t)(int)r->args[3]);
}
