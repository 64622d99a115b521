// SPDX-License-Identifier: LGPL-2.1-or-later
/* DLM's names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlm.h"
#include "far.h"

FAR_PUBLIC void dlm_startup(int *argc, char ***argv)
{
	int err = pvas_far_open(NULL);

	(void)argc;
	(void)argv;
	if (!err)
		return;
	fprintf(stderr, "dlm_startup: %s\n", *pvas_far_error() ? pvas_far_error() : strerror(-err));
	exit(1);
}

FAR_PUBLIC void *dlm_alloc(size_t size)
{
	void *addr;
	int err = pvas_far_alloc(&addr, size);

	if (!err)
		return addr;
	errno = -err;
	return NULL;
}

FAR_PUBLIC void dlm_shutdown(void)
{
	pvas_far_close();
}
