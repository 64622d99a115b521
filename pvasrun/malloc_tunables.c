// SPDX-License-Identifier: GPL-2.0-only
/* Tunables of glibc's malloc. */
#include "malloc_tunables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * All tasks share one mmap lock, and unmapping flushes the TLB of each processor that
 * runs one of them; with the user backend such a call is a round trip to the launcher.
 * glibc raises the thresholds by itself to these values in a program that frees large
 * blocks. doc/one-space.md has measurements. A top_pad of 2 MiB or more would make the
 * first byte used of it take a huge page.
 */
static const char tunables[] = "glibc.malloc.mmap_threshold=16777216:"
	"glibc.malloc.trim_threshold=67108864:glibc.malloc.top_pad=1048576";

char *malloc_tunables(const char *old)
{
	char *text;

	errno = 0;
	if (!old)
		old = "";
	if (strstr(old, "glibc.malloc."))
		return NULL;
	if (asprintf(&text, "%s%s%s", old, *old ? ":" : "", tunables) < 0) {
		errno = ENOMEM;
		return NULL;
	}
	return text;
}
