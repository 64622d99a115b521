// SPDX-License-Identifier: GPL-2.0-only
/* Takes memory, touches it, and takes more, until somebody ends it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	const size_t step = 1 << 20;
	char *p;

	while ((p = malloc(step)))
		memset(p, 1, step);
	pause();
	return 0;
}
