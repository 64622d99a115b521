// SPDX-License-Identifier: LGPL-2.1-or-later
/* PVAS_DEBUG: print decisions and their reasons. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "private.h"

/* Read each time, because a launcher may set it for itself. */
int pvas_debugging(void)
{
	const char *value = getenv("PVAS_DEBUG");

	return value && *value && strcmp(value, "0") != 0;
}

/* One write, so that the lines of many processes do not mix. */
void pvas_debug(const char *format, ...)
{
	char line[1024] = "pvas: ";
	size_t used = strlen(line);
	va_list ap;
	int n;

	if (!pvas_debugging())
		return;
	va_start(ap, format);
	n = vsnprintf(line + used, sizeof(line) - used - 1, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	used += (size_t)n < sizeof(line) - used - 1 ? (size_t)n : sizeof(line) - used - 2;
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		return;		/* it can't be reported */
}
