// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table of a group of all ranks, once for the ranks of the node.
 *
 * Open MPI has 8 bytes for each member of a group in each rank: a number that stands for the
 * rank's name, which is the same everywhere, or the address of a process that has been used.
 * The first rank writes the table of MPI_COMM_WORLD into a file in memory. All ranks map it
 * privately over those pages of such tables that are equal to it; a store makes a copy of
 * the page, as before. The block that malloc() gave stays what it is; below its threshold for
 * memory maps (under pvasrun, 16 MiB), the table may begin elsewhere in its first page than
 * that of the first rank does, and is not shared.
 */
#include "coll_pretend.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "opal/util/proc.h"

#include "../libpvas/pvas.h"
#include "linux_names.h"

#define NAME		"coll pretend table"
#define PAGE		4096U
/* Shorter tables are not worth the memory maps. */
#define LEAST_BYTES	(1U << 20)
/* The first rank is in MPI_Init, too. */
#define WAIT_MS		2000

/**
 * struct table - what the first rank publishes
 * @fd:		of the process @pid
 * @skew:	bytes before the table's first whole page
 * @bytes:	its whole pages
 */
struct table {
	pid_t pid;
	int fd;
	size_t skew;
	size_t bytes;
};

static struct table shared = { .fd = -1 };

static size_t skew_of(const void *table)
{
	return -(uintptr_t)table % PAGE;
}

static bool write_all(int fd, const char *from, size_t bytes)
{
	ssize_t n;

	for (; bytes; from += n, bytes -= n) {
		n = write(fd, from, bytes);
		if (n <= 0)
			return false;
	}
	return true;
}

static void publish(char *table, size_t bytes)
{
	static struct table own;

	own.fd = memfd_create("pvas-group", MFD_CLOEXEC);
	own.pid = getpid();
	own.skew = skew_of(table);
	own.bytes = (bytes - own.skew) & ~(size_t)(PAGE - 1);
	if (own.fd < 0 || !write_all(own.fd, table + own.skew, own.bytes) ||
	    pvas_name_export(NAME, &own))
		return;
	shared = own;
}

static void find(void)
{
	struct table *of_first;
	char path[64];
	void *at;

	if (pvas_name_import_wait(pvas_task_get_index() - OPAL_PROC_MY_NAME.vpid, NAME, WAIT_MS,
				  &at) < 0)
		return;
	of_first = at;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", of_first->pid, of_first->fd);
	shared = *of_first;
	shared.fd = open(path, O_RDONLY | O_CLOEXEC);
}

/* Pages that are mapped beforehand are faster to read, and seen in statistics. */
static void map_run(char *to, size_t at, size_t bytes)
{
	/* A failure leaves the pages as they are. */
	if (bytes && mmap(to + at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			  shared.fd, at) != MAP_FAILED)
		madvise(to + at, bytes, MADV_POPULATE_READ);
}

/* The whole pages that are equal, in runs */
static void map_equal(char *to, const char *from)
{
	size_t at, run = 0;

	for (at = 0; at < shared.bytes; at += PAGE) {
		if (!memcmp(to + at, from + at, PAGE)) {
			run += PAGE;
			continue;
		}
		map_run(to, at - run, run);
		run = 0;
	}
	map_run(to, at - run, run);
}

void mca_coll_pretend_share_group(struct ompi_group_t *group)
{
	const size_t bytes = group->grp_proc_count * sizeof(*group->grp_proc_pointers);
	char *table = (char *)group->grp_proc_pointers;
	static bool tried;
	void *from;

	if (bytes < LEAST_BYTES || !OMPI_GROUP_IS_DENSE(group))
		return;
	if (!tried) {
		tried = true;
		if (OPAL_PROC_MY_NAME.vpid)
			find();
		else
			publish(table, bytes);
	}
	if (shared.fd < 0 || skew_of(table) != shared.skew || bytes < shared.skew + shared.bytes)
		return;
	from = mmap(NULL, shared.bytes, PROT_READ, MAP_SHARED, shared.fd, 0);
	if (from == MAP_FAILED)
		return;
	map_equal(table + shared.skew, from);
	munmap(from, shared.bytes);
}
