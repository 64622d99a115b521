// SPDX-License-Identifier: LGPL-2.1-or-later
/* A task that is a launcher, too: it creates a space and runs "task" in it. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pvas.h"

extern char **environ;

int main(int argc, char **argv)
{
	char path[4200] = "";
	char *args[] = { "task", NULL };
	struct pvas_space *s;
	uint32_t id = pvas_space_get_id(NULL);
	int status = -1, ret;
	pid_t pid;

	(void)argc;
	snprintf(path, sizeof(path) - 16, "%s", argv[0]);
	strcpy(strrchr(path, '/') + 1, "task");
	ret = pvas_space_create(&s, NULL);
	if (ret) {
		printf("create: %d %s\n", ret, pvas_error_get());
		return 1;
	}
	if (!id || pvas_space_get_id(s) == id || pvas_space_get_id(NULL) != id)
		return 2;
	ret = pvas_task_spawn(s, PVAS_ANY, path, args, environ, NULL, &pid);
	if (ret < 0) {
		printf("spawn: %d %s\n", ret, pvas_error_get());
		return 3;
	}
	waitpid(pid, &status, 0);
	pvas_space_destroy(s);
	return pvas_task_get_index() > 0 ? status >> 8 | (status & 127) : 4;
}
