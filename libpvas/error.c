// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_error_get: a text with more details than an errno value. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "private.h"
#include "pvas.h"

static __thread char text[512];

void pvas_clear_error(void)
{
	text[0] = 0;
}

int pvas_fail(int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return err;
}

const char *pvas_error_text(int err)
{
	return *text ? text : strerror(-err);
}

PVAS_PUBLIC const char *pvas_error_get(void)
{
	return text;
}
