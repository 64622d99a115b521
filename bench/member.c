// SPDX-License-Identifier: GPL-2.0-only
/*
 * The small program that bench/spawn starts many times. It says that it runs,
 * and stays until it is told to go.
 *
 * usage: member READY-FD GO-FD
 */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char c = 0;

	if (argc != 3)
		return 2;
	if (write(atoi(argv[1]), &c, 1) != 1)
		return 1;
	return read(atoi(argv[2]), &c, 1) != 0;
}
