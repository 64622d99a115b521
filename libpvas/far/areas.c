// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel's memory areas: what the program has made of its far memory by mprotect(), munmap() */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job.h"

/* Of Linux 6.11, if the headers are older. */
struct area_query {
	uint64_t size, flags, addr;
	uint64_t start, end, protection;
	uint64_t rest[7];
};

#define QUERY_AREA	_IOWR('f', 17, struct area_query)
#define PROTECTION	(PROT_READ | PROT_WRITE | PROT_EXEC)	/* as the query's lowest bits */

/**
 * struct range - what is looked at
 * @at:		all below is mapped
 * @end:	its end
 * @protection:	of what is below; -1: nothing yet
 */
struct range {
	uint64_t at, end;
	int protection;
};

/* The next area. False: this is no range of one protection. */
static bool add_area(struct range *r, uint64_t start, uint64_t end, int protection)
{
	if (start > r->at || (r->protection >= 0 && r->protection != protection))
		return false;
	r->protection = protection;
	r->at = end;
	return true;
}

/* -ENOTTY: this kernel can't be asked */
static int ask(int fd, struct range *r)
{
	struct area_query q;

	while (r->at < r->end) {
		q = (struct area_query){ .size = sizeof(q), .addr = r->at };
		if (ioctl(fd, QUERY_AREA, &q))
			return errno == ENOENT ? -EFAULT : -ENOTTY;
		if (!add_area(r, q.start, q.end, (int)q.protection & PROTECTION))
			return -EFAULT;
	}
	return r->protection;
}

static int protection_of(const char *text)
{
	return (text[0] == 'r' ? PROT_READ : 0) | (text[1] == 'w' ? PROT_WRITE : 0) |
	       (text[2] == 'x' ? PROT_EXEC : 0);
}

static int read_areas(FILE *maps, struct range *r)
{
	unsigned long start, end;
	char *line = NULL, rights[5];
	size_t room = 0;
	int err = 0;

	while (!err && r->at < r->end && getline(&line, &room, maps) > 0) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || end <= r->at)
			continue;
		if (!add_area(r, start, end, protection_of(rights)))
			err = -EFAULT;
	}
	free(line);
	if (!err && r->at < r->end)
		err = -EFAULT;
	return err ? err : r->protection;
}

int far_area_protection(uint64_t addr, uint64_t len)
{
	struct range r = { .at = addr, .end = addr + len, .protection = -1 };
	FILE *maps = fopen("/proc/self/maps", "re");
	int protection;

	if (!maps)
		return -ENOMEM;
	protection = ask(fileno(maps), &r);
	if (protection == -ENOTTY)
		protection = read_areas(maps, &r);
	fclose(maps);
	return protection;
}
