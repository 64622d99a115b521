// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * UMap (github.com/LLNL/umap) in the place of libpvasfar, below the same benchmark: these are the
 * functions that far.c calls. Of the stores, file:FOLDER only, with O_DIRECT, as ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pvas_far.h"
#include "umap/umap.h"

static struct pvas_far_attr attr;
static const char *error = "";

static int fail(const char *why, int err)
{
	error = why;
	return err;
}

/* As PVAS_FAR_PAGE has it, in bytes or K */
static uint64_t page_of_environment(void)
{
	const char *text = getenv("PVAS_FAR_PAGE");
	char *unit = NULL;
	uint64_t n = text ? strtoull(text, &unit, 10) : 0;

	return unit && *unit == 'K' ? n << 10 : n;
}

static void set(const char *variable, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	setenv(variable, text, 1);
}

int pvas_far_open(const struct pvas_far_attr *wanted)
{
	attr = *wanted;
	if (!attr.page)
		attr.page = page_of_environment();
	if (!attr.stores || strncmp(attr.stores, "file:", 5) || !attr.page)
		return fail("UMap: only file:FOLDER, and pages in bytes or K", -EINVAL);
	set("UMAP_PAGESIZE", attr.page);
	set("UMAP_BUFSIZE", attr.ram / attr.page);
	return 0;
}

int pvas_far_alloc(void **p, size_t size)
{
	int fd = open(attr.stores + 5, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	size = (size + attr.page - 1) / attr.page * attr.page;
	if (fd < 0 || posix_fallocate(fd, 0, (off_t)size))
		return fail("UMap: no file", -EIO);
	*p = umap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	return *p == (void *)-1 ? fail("UMap: no memory", -ENOMEM) : 0;
}

/* Without uunmap(), which would write everything to the file. */
int pvas_far_close(void)
{
	fflush(stdout);
	_exit(0);
}

const char *pvas_far_error(void)
{
	return error;
}

/* It counts nothing that could be asked for. */
int pvas_far_get_counters(struct pvas_far_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	return 0;
}
