// SPDX-License-Identifier: LGPL-2.1-or-later
/* The entry of the library pvasfar-host.so: see plugin.h */
#include <stdarg.h>
#include <stdio.h>
#include "host.h"
#include "plugin.h"

far_plugin_fn pvasfar_host_start;

static far_fail_fn *caller_fail;

/* The caller's text: our own far_error() would be another. */
int far_fail(int err, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return caller_fail(err, "%s", text);
}

__attribute__((visibility("default")))
const struct far_store_ops *pvasfar_host_start(unsigned int version, far_fail_fn *fail)
{
	if (version != FAR_PLUGIN_VERSION)
		return NULL;
	caller_fail = fail;
	return &far_store_ucx;
}
