// SPDX-License-Identifier: LGPL-2.1-or-later
/* A task that maps memory to be filled: run by tests/fill.c, as fill_task populate|locked GIB. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	int how = argc == 3 && !strcmp(argv[1], "locked") ? MAP_LOCKED : MAP_POPULATE;
	size_t len = argc == 3 ? strtoul(argv[2], NULL, 10) << 30 : 0;

	/* Pages of zeros: it takes time, and no memory but page tables. */
	if (mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0) !=
	    MAP_FAILED)
		return 0;
	return errno == EAGAIN ? 77 : errno == EPERM ? 78 : 1;
}
