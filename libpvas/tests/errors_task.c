// SPDX-License-Identifier: LGPL-2.1-or-later
/* errors --task: the errors of the calls that a task makes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "pvas.h"

static void try_names(void)
{
	char name[16], *long_name = long_path;
	int i = 0;
	void *p;

	memset(long_path, 'x', PVAS_NAME_MAX + 1);
	FAILS(EINVAL, pvas_name_export("", &i));
	FAILS(EINVAL, pvas_name_export(long_name, &i));
	FAILS(EINVAL, pvas_name_unexport(""));
	FAILS(EINVAL, pvas_name_import(0, "a", &p));
	FAILS(EINVAL, pvas_name_import_wait(0, "a", 0, &p));
	FAILS(ENOENT, pvas_name_unexport("a"));
	FAILS(ENOENT, pvas_name_import(PVAS_ANY, "a", &p));
	FAILS(ETIMEDOUT, pvas_name_import_wait(PVAS_ANY, "a", 10, &p));
	FAILS(EOWNERDEAD, pvas_name_import_wait(2, "a", 60000, &p));
	for (i = 0; i < PVAS_EXPORT_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		failed += pvas_name_export(name, &i) != 0;
	}
	FAILS(EEXIST, pvas_name_export("0", &i));
	FAILS(ENOSPC, pvas_name_export("a", &i));
}

int errors_as_task(void)
{
	struct pvas_task_info info;
	size_t length;
	void *base;

	try_names();
	FAILS(EINVAL, pvas_partition_get(1 << 30, &base, &length));
	FAILS(EINVAL, pvas_task_get(1 << 30, &info));
	failed += pvas_partition_get(1, &base, &length) != 0;
	FAILS(ENOENT, pvas_task_find((char *)base + length));
	FAILS(ENOENT, pvas_task_find(NULL));
	return failed;
}
