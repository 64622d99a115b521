// SPDX-License-Identifier: GPL-2.0-only
/* big MIB [huge|busy]: has so much resident memory, in huge pages or not, says so, and waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE	(2UL << 20)

int main(int argc, char **argv)
{
	size_t len = argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	const char *how = argc > 2 ? argv[2] : "";
	char *p = aligned_alloc(HUGE_PAGE, len);

	if (!len || !p)
		return 1;
	if (madvise(p, len, strcmp(how, "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE))
		return 1;
	memset(p, 1, len);
	puts("ready");
	fflush(stdout);
	while (!strcmp(how, "busy"))
		__asm__ volatile("");
	pause();
	return 0;
}
