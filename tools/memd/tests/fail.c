// SPDX-License-Identifier: GPL-2.0-only
/* The library's far_fail(), for tests of the store alone */
#include <stdarg.h>
#include <stdio.h>
#include "store.h"

static _Thread_local char text[400];

int far_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err;
}

const char *far_error(void)
{
	return text;
}
