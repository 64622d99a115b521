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
#define MMAP_THRESHOLD	(16UL << 20)
#define OTHERS		"glibc.malloc.trim_threshold=67108864:glibc.malloc.top_pad=1048576"

/* With far memory all that is to be far must be mapped. */
char *malloc_tunables(const char *old, unsigned long far_threshold)
{
	char *text;

	errno = 0;
	if (!old)
		old = "";
	if (strstr(old, "glibc.malloc."))
		return NULL;
	if (!far_threshold || far_threshold > MMAP_THRESHOLD)
		far_threshold = MMAP_THRESHOLD;
	if (asprintf(&text, "%s%sglibc.malloc.mmap_threshold=%lu:" OTHERS, old, *old ? ":" : "",
		     far_threshold) < 0) {
		errno = ENOMEM;
		return NULL;
	}
	return text;
}
