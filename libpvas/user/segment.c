// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: may a task attach a System V segment?
 *
 * A worker attaches it, so the kernel checks the launcher's rights. A task can have fewer,
 * or belong to other groups (see rights.c). This repeats the kernel's check for it, as
 * ipcperms() and do_shmat() in ipc/.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

#define STATUS_MAX	(1 << 16)	/* several thousand groups */

struct rights {
	char text[STATUS_MAX];
	char *lines[4];
};

enum { UID, GID, GROUPS, CAPS };

static const char *const names[] = {
	[UID] = "\nUid:", [GID] = "\nGid:", [GROUPS] = "\nGroups:", [CAPS] = "\nCapEff:",
};

/* With more groups than the buffer holds the check can't be made. */
static int read_rights(pid_t tid, struct rights *r)
{
	unsigned int i;

	if (user_proc_read(tid, "status", r->text, sizeof(r->text)) <= 0)
		return -EACCES;
	for (i = 0; i < 4; i++) {
		r->lines[i] = strstr(r->text, names[i]);
		if (!r->lines[i] || !strchr(r->lines[i] + 1, '\n'))
			return -EACCES;
		r->lines[i] += strlen(names[i]);
	}
	for (i = 0; i < 4; i++)
		*strchr(r->lines[i], '\n') = 0;
	return 0;
}

static int are_equal(const struct rights *a, const struct rights *b)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (strcmp(a->lines[i], b->lines[i]))
			return 0;
	return 1;
}

/* Of a row of ids: real, effective, saved and of the file system. */
static uint32_t id_at(const char *line, unsigned int n)
{
	char *end = (char *)line;
	unsigned long id;

	do
		id = strtoul(end, &end, 10);
	while (n--);
	return (uint32_t)id;
}

static int in_group(const struct rights *r, uint32_t gid)
{
	const char *at = r->lines[GROUPS];
	char *end;

	if (id_at(r->lines[GID], 3) == gid)
		return 1;
	for (;; at = end) {
		unsigned long id = strtoul(at, &end, 10);

		if (end == at)
			return 0;
		if (id == gid)
			return 1;
	}
}

static int may_attach(const struct rights *r, const struct ipc_perm *p, int flags)
{
	unsigned int granted = p->mode, wanted = flags & SHM_RDONLY ? 4 : 6;
	uint32_t euid = id_at(r->lines[UID], 1);

	if (flags & SHM_EXEC)
		wanted |= 1;
	if (euid == p->cuid || euid == p->uid)
		granted >>= 6;
	else if (in_group(r, p->cgid) || in_group(r, p->gid))
		granted >>= 3;
	return !(wanted & ~granted) || (strtoull(r->lines[CAPS], NULL, 16) >> CAP_IPC_OWNER & 1);
}

int user_segment_check(pid_t tid, int id, int flags)
{
	struct rights *r = malloc(2 * sizeof(*r));
	struct shmid_ds ds;
	int err;

	if (!r)
		return -ENOMEM;
	err = read_rights(tid, &r[0]);
	if (!err)
		err = read_rights(user_caller_self(), &r[1]);
	if (!err && !are_equal(&r[0], &r[1])) {
		err = (int)pvas_raw3(__NR_shmctl, id, IPC_STAT, &ds);
		if (!err && !may_attach(&r[0], &ds.shm_perm, flags))
			err = -EACCES;
	}
	free(r);
	return err;
}
