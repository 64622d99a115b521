// SPDX-License-Identifier: GPL-2.0-only
/*
 * member N: waits until its space has N tasks, says which space and partition
 * it is in, and ends when all others have said so, too. "plain": it is no task.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pvas.h"

#define WAIT_MS	120000
#define POLL_US	10000

static struct pvas_task_info tasks[4096];	/* as many as a space has */

static int wait_for(int wanted)
{
	int left = WAIT_MS * 1000 / POLL_US;
	int n = pvas_task_list(NULL, NULL, 0);

	while (n < wanted && left--) {
		usleep(POLL_US);
		n = pvas_task_list(NULL, NULL, 0);
	}
	return n;
}

/* Each task exports "seen" when it has seen all others: wait for that of each. */
static void wait_for_others(void)
{
	int n = pvas_task_list(NULL, tasks, sizeof(tasks) / sizeof(tasks[0]));
	void *p;
	int i;

	for (i = 0; i < n; i++)
		if (tasks[i].index != (unsigned int)pvas_task_get_index())
			pvas_name_import_wait(tasks[i].index, "seen", WAIT_MS, &p);
}

int main(int argc, char **argv)
{
	int wanted = argc > 1 ? atoi(argv[1]) : 1;
	int n;

	if (pvas_task_get_index() < 0) {
		puts("plain");
		return 0;
	}
	n = wait_for(wanted);
	printf("space %u index %d tasks %d\n", pvas_space_get_id(NULL), pvas_task_get_index(), n);
	fflush(stdout);
	pvas_name_export("seen", NULL);
	wait_for_others();
	return n != wanted;
}
