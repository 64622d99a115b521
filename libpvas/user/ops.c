// SPDX-License-Identifier: LGPL-2.1-or-later
/* User backend: the calls of the library, in which a signal handler of the application may fork. */
#include "user.h"

static int create(struct pvas_space *s)
{
	int err;

	user_launcher_enter();
	err = user_create(s);
	user_launcher_leave();
	return err;
}

static void destroy(struct pvas_space *s)
{
	user_launcher_enter();
	user_destroy(s);
	user_launcher_leave();
}

static int spawn(struct pvas_spawn_call *call)
{
	int err;

	user_launcher_enter();
	err = user_spawn(call);
	user_launcher_leave();
	return err;
}

static int tasks(const struct pvas_space *s, struct pvas_task_info *list, size_t room)
{
	int n;

	user_launcher_enter();
	n = user_tasks(s, list, room);
	user_launcher_leave();
	return n;
}

const struct pvas_backend_ops pvas_user_ops = {
	.name = "user", .create = create, .destroy = destroy, .spawn = spawn, .tasks = tasks,
};
