// SPDX-License-Identifier: GPL-2.0-only
/* Causes of an error that its errno value does not tell. */
#include "diagnose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../libpvas/header.h"

static bool limited(int resource, uintmax_t *kib)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return false;
	*kib = limit.rlim_cur / 1024;
	return true;
}

/* Both limits apply to an address space, here to all tasks together. */
bool diagnose_memory_limit(char *text, size_t len)
{
	uintmax_t data, all;
	bool has_data = limited(RLIMIT_DATA, &data), has_all = limited(RLIMIT_AS, &all);

	if (has_data && has_all)
		snprintf(text, len, "ulimit -d %ju and -v %ju count for all tasks together", data, all);
	else if (has_data)
		snprintf(text, len, "ulimit -d %ju counts for all tasks together", data);
	else if (has_all)
		snprintf(text, len, "ulimit -v %ju counts for all tasks together", all);
	return has_data || has_all;
}

/* Ids of the user backend have the highest bit set; the module counts from 1. */
bool diagnose_inside_job(void)
{
	const char *space = getenv("PVAS_SPACE");

	return space && strtoul(space, NULL, 10) & PVAS_ID_USER;
}

bool diagnose_write_execute(void)
{
	size_t len = sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool refused;

	if (page == MAP_FAILED)
		return false;
	refused = mprotect(page, len, PROT_READ | PROT_EXEC) < 0;
	munmap(page, len);
	return refused;
}
