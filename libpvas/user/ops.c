// SPDX-License-Identifier: LGPL-2.1-or-later
/* User backend: the calls of the library, in which a signal handler of the application may fork. */
#include <signal.h>
#include <stdint.h>

#include "rawsys.h"
#include "user.h"

/*
 * A child that a handler makes is rid of the descriptors that are known. Here some are not yet, so
 * no handler runs; it takes milliseconds.
 */
static int create(struct pvas_space *s)
{
	const uint64_t all = ~0UL;
	uint64_t mask;
	int err;

	user_launcher_enter();
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(mask));
	err = user_create(s);
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
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
