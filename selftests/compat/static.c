// SPDX-License-Identifier: GPL-2.0-only
/* Prints its arguments; aborts if told so. Linked static-PIE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	char *copy = strdup(argc > 1 ? argv[1] : "");

	for (int i = 1; i < argc; i++)
		printf("%d: %s\n", i, argv[i]);
	fflush(stdout);
	if (!strcmp(copy, "abort"))
		abort();
	free(copy);
	return argc;
}
