// SPDX-License-Identifier: GPL-2.0-only
/* Stands before the program's output. */
#include <unistd.h>

static void __attribute__((constructor)) hello(void)
{
	if (write(1, "preloaded ", 10) != 10)
		_exit(1);
}
