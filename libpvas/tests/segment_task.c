// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task without effective capabilities attaches segments of another user: run as root by
 * segment.c, and plainly, as the control. A status of 0 means that all was right.
 *
 *	segment_task MODE ID...
 *
 * Each segment has the mode 0600, 0644, 0660 or 0666. MODE none, group: which rights it
 * has to them; all: it keeps its capabilities.
 */
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "task_check.h"

#define GROUP	65534

/* Per segment: may it be read, may it be written */
static const char *const expected[][4] = {
	{ "--", "r-", "--", "rw" },	/* none */
	{ "--", "r-", "rw", "rw" },	/* group */
	{ "rw", "rw", "rw", "rw" },	/* all */
};

static void drop_effective(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	CHECK(!syscall(SYS_capget, &head, caps));
	caps[0].effective = caps[1].effective = 0;
	CHECK(!syscall(SYS_capset, &head, caps));
}

static void attach(int id, int flags, int may)
{
	char *p;

	if (!may) {
		CHECK(FAILS((intptr_t)shmat(id, NULL, flags), EACCES));
		return;
	}
	CHECK((p = shmat(id, NULL, flags)) != (char *)-1);
	if (p != (char *)-1)
		CHECK(!shmdt(p));
}

int main(int argc, char **argv)
{
	const gid_t other = 65533, group = GROUP;
	unsigned int how;

	if (argc < 6)
		return 2;
	how = !strcmp(argv[1], "all") ? 2 : !strcmp(argv[1], "group");
	CHECK(!setgroups(1, how ? &group : &other));
	if (how < 2)
		drop_effective();
	for (int i = 0; i < 4; i++) {
		attach(atoi(argv[2 + i]), SHM_RDONLY, expected[how][i][0] == 'r');
		attach(atoi(argv[2 + i]), 0, expected[how][i][1] == 'w');
	}
	CHECK(FAILS((intptr_t)shmat(-1, NULL, 0), EINVAL));
	return failures != 0;
}
