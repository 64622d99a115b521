// SPDX-License-Identifier: GPL-2.0-only
/*
 * owned - before and after an attack: has all memory an owner?
 *
 *	owned			print how much has none, in KiB
 *	owned BEFORE		status 1 if it is more than that was
 *	owned BEFORE KIB	the same while so much has none: a test of this test
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "left.h"

int main(int argc, char **argv)
{
	long kib;

	if (argc > 2) {
		int fd = memfd_create("without an owner", MFD_CLOEXEC);

		if (fd < 0 || posix_fallocate(fd, 0, atol(argv[2]) * 1024))
			return 2;
	}
	kib = memory_without_owner();
	if (argc > 1 && kib < atol(argv[1]) + OWNER_SLACK_KIB)
		return 0;
	printf("%ld\n", kib);
	return argc > 1;
}
