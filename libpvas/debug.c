// SPDX-License-Identifier: LGPL-2.1-or-later
/* PVAS_DEBUG: say what was decided, and why. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "private.h"

/* Asked anew each time: a launcher may set it for itself. */
int pvas_debugging(void)
{
	const char *value = getenv("PVAS_DEBUG");

	return value && *value && strcmp(value, "0") != 0;
}

/* One write: lines of many processes must not mix. */
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
		return;		/* nobody to tell */
}
