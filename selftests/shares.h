/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes of users and containers that take all spaces they can get. */
#ifndef SHARES_H
#define SHARES_H

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pvas_test.h"

#define PARAM "/sys/module/pvas/parameters/"
#define RW (PROT_READ | PROT_WRITE)

static inline int take_all(int *fds, int n)
{
	struct pt_raw raw;
	int i, err = 0;

	for (i = 0; i < n; i++) {
		err = pt_raw_make(&raw);
		fds[i] = raw.fd;
		if (err)
			break;
		close(raw.mem);
	}
	return err ? err : -EOVERFLOW;
}

static int *made;

static inline int take_and_count(void)
{
	static int fds[64];
	int i, err = pt_dumpable();

	if (err)
		return -ENOTSUP;
	err = take_all(fds, 64);
	for (i = 0; i < 64 && fds[i]; i++)
		(*made)++;
	(*made)--;
	return err;
}

static inline int as_user(void *arg)
{
	return pt_become(*(uid_t *)arg) ? -ENOTSUP : take_and_count();
}

static inline int as_user_in_namespace(void *arg)
{
	if (pt_become(*(uid_t *)arg) || unshare(CLONE_NEWUSER))
		return -ENOTSUP;
	/* Unmapped there, but the namespace is that user's all the same. */
	return take_and_count();
}

static inline int one_as(uid_t uid)
{
	int err = pt_in_child(as_user, &uid);

	return err == -ENOSPC ? 0 : err;
}

/* ---- containers ---- */

#define CONTAINER_IDS 65536

static inline bool map_ids(pid_t pid, const char *file, uid_t first)
{
	char path[64], map[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	snprintf(map, sizeof(map), "0 %u %u", first, CONTAINER_IDS);
	return !pt_write_file(path, map);
}

/* The caller is root of a user namespace that root has made and given ids from @first on. */
static inline bool enter_container(uid_t first)
{
	pid_t pid = getpid(), manager;
	int go[2];
	char c;

	if (pipe(go))
		return false;
	manager = fork();
	if (!manager) {
		close(go[1]);
		_exit(read(go[0], &c, 1) == 1 && map_ids(pid, "uid_map", first) &&
		      map_ids(pid, "gid_map", first) ? 0 : 1);
	}
	close(go[0]);
	if (unshare(CLONE_NEWUSER) || write(go[1], "g", 1) != 1)
		return false;
	close(go[1]);
	return !pt_wait(manager) && !setgroups(0, NULL) && !setresgid(0, 0, 0) &&
	       !setresuid(0, 0, 0);
}

/* It does not set limits any more. */
static inline int drop_sys_resource(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int i;

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1U << CAP_SYS_RESOURCE);
	for (i = 0; i < 2; i++)
		data[i].inheritable = 0;
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/*
 * Root of a container without a user namespace: it has a pid namespace, and few rights. The
 * caller goes on as the first process there.
 */
static inline int enter_weak_container(void)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		return -ENOTSUP;
	pid = fork();
	if (pid)
		_exit(pt_wait(pid));
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL) || drop_sys_resource())
		return -ENOTSUP;
	return 0;
}

/* How many spaces @as makes until there are no more for it; negative if it ends otherwise */
static inline int spaces_for(int (*as)(void *arg), uid_t uid)
{
	*made = 0;
	return pt_in_child(as, &uid) == -ENOSPC ? *made : -1;
}

/* Processes that have taken all spaces they could get, and keep them */
struct greedy {
	pid_t pid[5];
	int go[5];	/* closed: they end */
	int n;
};

/* One more; returns as spaces_for() does. */
static inline int greedy_add(struct greedy *g, int (*as)(void *arg), uid_t uid)
{
	int fds[2], ready[2];
	pid_t pid;
	char c;

	*made = 0;
	if (pipe(fds) || pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(fds[1]);
		c = as(&uid) == -ENOSPC ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1 && read(fds[0], &c, 1))
			_exit(1);
		_exit(0);
	}
	close(fds[0]);
	g->go[g->n] = fds[1];
	g->pid[g->n++] = pid;
	return read(ready[0], &c, 1) == 1 && c == 'y' ? *made : -1;
}

/* In reverse: each has the descriptors of those before it. */
static inline int greedy_end(struct greedy *g)
{
	int bad = 0;

	while (g->n--) {
		close(g->go[g->n]);
		bad += !!pt_wait(g->pid[g->n]);
	}
	return bad;
}

/* ---- the limits ---- */

struct limits {
	int fd;
	char total[32], each[32];	/* as they were */
};

static inline int limits_set(struct limits *l, const char *total, const char *each)
{
	made = mmap(NULL, 4096, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return -errno;
	l->fd = pt_open();
	return pt_read_file(PARAM "max_spaces", l->total, sizeof(l->total)) ?:
	       pt_read_file(PARAM "max_spaces_per_user", l->each, sizeof(l->each)) ?:
	       (total ? pt_write_file(PARAM "max_spaces", total) : 0) ?:
	       (each ? pt_write_file(PARAM "max_spaces_per_user", each) : 0);
}

/* When all spaces have been freed */
static inline int limits_restore(struct limits *l)
{
	int left = pt_raw_spaces_left(l->fd);

	close(l->fd);
	return left ?: pt_write_file(PARAM "max_spaces", l->total) ?:
	       pt_write_file(PARAM "max_spaces_per_user", l->each);
}

#endif /* SHARES_H */
