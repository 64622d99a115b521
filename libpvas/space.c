// SPDX-License-Identifier: LGPL-2.1-or-later
/* A launcher's handle of a space: create it, query it, end it. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

/* By enum pvas_backend */
static const struct pvas_backend_ops *const backends[] = {
	[PVAS_BACKEND_KERNEL] = &pvas_kernel_ops,
	[PVAS_BACKEND_USER] = &pvas_user_ops,
};

void pvas_space_init(struct pvas_space *s, const struct pvas_create_attr *a, int backend)
{
	memset(s, 0, sizeof(*s));
	s->device = -1;
	s->flags = a->flags;
	s->shift = a->partition_size ? (unsigned int)__builtin_ctzll(a->partition_size)
				     : PVAS_SHIFT_DEFAULT;
	s->backend = backend;
	s->ops = backends[backend];
}

static int create_with(struct pvas_space *s, const struct pvas_create_attr *a, int backend)
{
	int err;

	pvas_space_init(s, a, backend);
	err = s->ops->create(s);
	if (err)
		pvas_debug("%s backend: no space: %s", s->ops->name, pvas_error_text(err));
	else
		pvas_debug("%s backend: made space %u, partitions of %llu GiB, for tasks %u to %u",
			   s->ops->name, s->id, 1ULL << (s->shift - 30), s->first, s->last);
	return err;
}

/* The kernel backend if there is a module that this user may use, else the user backend. */
static int create_auto(struct pvas_space *s, const struct pvas_create_attr *a)
{
	char first[160];
	int err;

	err = create_with(s, a, PVAS_BACKEND_KERNEL);
	if (err && err != -ENODEV && err != -EACCES)
		pvas_debug("the module is there but refuses: not trying the user backend");
	if (err != -ENODEV && err != -EACCES)
		return err;
	strncpy(first, pvas_error_get(), sizeof(first) - 1);
	first[sizeof(first) - 1] = 0;
	err = create_with(s, a, PVAS_BACKEND_USER);
	if (err) {
		char also[160];

		strncpy(also, pvas_error_get(), sizeof(also) - 1);
		also[sizeof(also) - 1] = 0;
		pvas_fail(err, "%s; %s", first, also);
	}
	return err;
}

PVAS_PUBLIC int pvas_space_create(struct pvas_space **space, const struct pvas_create_attr *attr)
{
	struct pvas_create_attr a;
	struct pvas_space *s;
	int cancel, err;

	pvas_clear_error();
	err = pvas_get_create_attr(&a, attr);
	if (err)
		return err;
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (a.backend == PVAS_BACKEND_AUTO)
		err = create_auto(s, &a);
	else
		err = create_with(s, &a, a.backend);
	pthread_setcancelstate(cancel, NULL);
	if (err) {
		free(s);
		return err;
	}
	*space = s;
	return 0;
}

PVAS_PUBLIC int pvas_space_destroy(struct pvas_space *space)
{
	int cancel;

	pvas_clear_error();
	if (!space)
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	space->ops->destroy(space);
	free(space);
	pthread_setcancelstate(cancel, NULL);
	return 0;
}

PVAS_PUBLIC int pvas_space_get_backend(const struct pvas_space *space)
{
	return space->backend;
}

PVAS_PUBLIC unsigned int pvas_version_get(void)
{
	return PVAS_VERSION_MAJOR << 16 | PVAS_VERSION_MINOR;
}
