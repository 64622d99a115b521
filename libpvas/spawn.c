// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_task_spawn: start a task as posix_spawn() starts a process. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "backend.h"

/* The first published size: all up to @setup_arg. */
#define ATTR_SIZE_1 offsetof(struct pvas_spawn_attr, keep)

#define FLAGS (PVAS_SPAWN_NO_ASLR | PVAS_SPAWN_SAME_RIGHTS | PVAS_SPAWN_KEEP)

static int check_keep(const struct pvas_spawn_attr *a)
{
	size_t i;

	if (!(a->flags & PVAS_SPAWN_KEEP))
		return 0;
	if (a->size < sizeof(*a))
		return pvas_fail(-EINVAL, "PVAS_SPAWN_KEEP, and no list");
	for (i = 0; i < a->nr_keep; i++)
		if (a->keep[i] < 3 || (i && a->keep[i] <= a->keep[i - 1]))
			return pvas_fail(-EINVAL,
					 "the descriptors to be kept do not ascend from 3 on");
	return 0;
}

PVAS_PUBLIC int pvas_task_spawn(struct pvas_space *space, unsigned int index, const char *path,
				char *const argv[], char *const envp[],
				const struct pvas_spawn_attr *attr, pid_t *pid)
{
	struct pvas_spawn_call call = {
		.space = space,
		.index = index,
		.path = path,
		.argv = argv,
		.envp = envp,
	};
	int saved = errno;
	int cancel, err;

	pvas_clear_error();
	err = pvas_copy_attr(&call.attr, sizeof(call.attr), ATTR_SIZE_1, attr);
	if (err)
		return err;
	if (call.attr.flags & ~FLAGS)
		return pvas_fail(-EINVAL, "unknown flags %#x", call.attr.flags & ~FLAGS);
	err = check_keep(&call.attr);
	if (err)
		return err;
	if (index != PVAS_ANY && (index < space->first || index > space->last))
		return pvas_fail(-EINVAL, "index %u is not from %u to %u", index, space->first,
				 space->last);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = pvas_get_stack(space);
	if (!err)
		err = space->ops->spawn(&call);
	pthread_setcancelstate(cancel, NULL);
	if (err)
		pvas_debug("space %u: %s is no task: %s%s%s", space->id, path, strerror(-err),
			   *pvas_error_get() ? ": " : "", pvas_error_get());
	else
		pvas_debug("space %u: pid %d is task %u, at %#llx: %s", space->id, call.pid,
			   call.index, (unsigned long long)call.index << space->shift, path);
	errno = saved;
	if (err)
		return err;
	if (pid)
		*pid = call.pid;
	return (int)call.index;
}
