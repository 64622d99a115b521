// SPDX-License-Identifier: GPL-2.0-only
/* What tasks' libraries are told. */
#include "tuning.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * All tasks have one mmap lock, and what one gives back each processor that runs
 * another must forget; with the user backend such a call is a round trip to the
 * launcher. glibc itself goes as far as these thresholds in a program that frees
 * large blocks. doc/one-space.md has what it brings. Of what a heap grows by (top_pad),
 * 2 MiB and more would become a huge page with the first byte used.
 */
static const char tuning[] = "glibc.malloc.mmap_threshold=16777216:"
	"glibc.malloc.trim_threshold=67108864:glibc.malloc.top_pad=1048576";

char *tuning_of_malloc(const char *old)
{
	char *text;

	errno = 0;
	if (!old)
		old = "";
	if (strstr(old, "glibc.malloc."))
		return NULL;
	if (asprintf(&text, "%s%s%s", old, *old ? ":" : "", tuning) < 0) {
		errno = ENOMEM;
		return NULL;
	}
	return text;
}
