// SPDX-License-Identifier: GPL-2.0-only
/* Found by $ORIGIN/lib, a library says who it is. */
#include <stdio.h>

int answer(void);

int main(void)
{
	return printf("%d\n", answer()) < 0;
}
