// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_space_join, pvas_task_exec: for processes that some other launcher starts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backend.h"
#include "rawsys.h"

#define TRIES	100	/* of a space that comes and goes */

/* The first published size: all up to @partition_size. */
#define ATTR_SIZE_1 sizeof(struct pvas_create_attr)

_Static_assert(PVAS_JOIN_KEY_MAX == PVAS_KEY_MAX, "the limit is the ABI's");

static int check(const char *key, const struct pvas_create_attr *a)
{
	size_t len = strlen(key);

	if (len < 1 || len > PVAS_KEY_MAX)
		return pvas_fail(-EINVAL, "a key of %zu bytes: it must have 1 to %d", len,
				 PVAS_KEY_MAX);
	if (a->backend == PVAS_BACKEND_USER)
		return pvas_fail(-ENOSYS, "only the kernel backend finds a space by its key");
	if (a->partition_size & (a->partition_size - 1))
		return pvas_fail(-EINVAL, "partition size %llu is not a power of two",
				 (unsigned long long)a->partition_size);
	return 0;
}

static int attach(struct pvas_space *s, const char *key)
{
	struct pvas_attach arg = {
		.size = sizeof(arg),
		.key = (uint64_t)key,
		.key_len = strlen(key),
	};
	int err = pvas_raw3(__NR_ioctl, s->device, PVAS_IOC_ATTACH, &arg);

	if (err)
		return err;
	s->id = arg.id;
	s->shift = arg.shift;
	s->first = arg.first;
	s->last = arg.last;
	return 0;
}

static int make(struct pvas_space *s, const char *key)
{
	struct pvas_create create = {
		.size = sizeof(create),
		.flags = PVAS_CREATE_KEY,
		.shift = s->shift,
		.key = (uint64_t)key,
		.key_len = strlen(key),
	};
	int err = pvas_make_space(s->device, &create);

	if (err)
		return err;
	s->id = create.id;
	s->first = create.first;
	s->last = create.last;
	return 0;
}

/* Between the two somebody else may have made it, or the last task have ended. */
static int attach_or_make(struct pvas_space *s, const char *key)
{
	int tries = TRIES;
	int err;

	do {
		err = attach(s, key);
		if (err != -ENOENT)
			break;
		err = make(s, key);
		if (err != -EEXIST)
			return err;
	} while (--tries);
	switch (err) {
	case 0:
		return 0;
	case -ENOTTY:
		return pvas_fail(-ENOSYS,
				 "the pvas module knows no keys: it is older than this libpvas");
	case -EEXIST:
		return pvas_fail(-EAGAIN, "the space kept coming and going");
	default:
		return pvas_fail(err, "can't attach to the job's space: %s", strerror(-err));
	}
}

PVAS_PUBLIC int pvas_space_join(struct pvas_space **space, const char *key,
				const struct pvas_create_attr *attr)
{
	struct pvas_create_attr a;
	struct pvas_space *s;
	int err, shown;

	pvas_clear_error();
	err = pvas_copy_attr(&a, sizeof(a), ATTR_SIZE_1, attr);
	if (!err)
		err = check(key, &a);
	if (err)
		return err;
	/* pvasexec's have the job's name, and after it a secret */
	shown = (int)strcspn(key, "#");
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->ops = &pvas_kernel_ops;
	s->backend = PVAS_BACKEND_KERNEL;
	s->flags = PVAS_KEEP_ON_CLOSE;
	s->shift = a.partition_size ? (unsigned int)__builtin_ctzll(a.partition_size)
				    : PVAS_SHIFT_DEFAULT;
	s->device = pvas_open_device();
	err = s->device < 0 ? s->device : attach_or_make(s, key);
	if (!err) {
		*space = s;
		pvas_debug("key '%.*s': space %u, partitions of %llu GiB, for tasks %u to %u",
			   shown,
			   key, s->id, 1ULL << (s->shift - 30), s->first, s->last);
		return 0;
	}
	pvas_debug("key '%.*s': no space: %s", shown, key,
		   *pvas_error_get() ? pvas_error_get() : strerror(-err));
	if (s->device >= 0)
		close(s->device);
	free(s);
	return err;
}

/* If it was PVAS_ANY, @index receives the index got. */
static int arm(const struct pvas_space *s, unsigned int *index)
{
	struct pvas_spawn spawn = {
		.size = sizeof(spawn),
		.flags = *index == PVAS_ANY ? PVAS_SPAWN_ANY : 0,
		.index = *index == PVAS_ANY ? 0 : *index,
	};
	int err = pvas_raw3(__NR_ioctl, s->device, PVAS_IOC_SPAWN, &spawn);

	if (!err)
		*index = spawn.index;
	return err;
}

static void disarm(const struct pvas_space *s)
{
	struct pvas_spawn spawn = { .size = sizeof(spawn), .flags = PVAS_SPAWN_CANCEL };

	pvas_raw3(__NR_ioctl, s->device, PVAS_IOC_SPAWN, &spawn);
}

PVAS_PUBLIC int pvas_task_exec(struct pvas_space *space, unsigned int index, const char *path,
			       char *const argv[], char *const envp[])
{
	int err;

	pvas_clear_error();
	if (space->backend != PVAS_BACKEND_KERNEL)
		return pvas_fail(-ENOSYS, "only the kernel backend can put a process into a space");
	if (index != PVAS_ANY && (index < space->first || index > space->last))
		return pvas_fail(-EINVAL, "index %u is not from %u to %u", index, space->first,
				 space->last);
	err = arm(space, &index);
	if (err == -EBUSY)
		return pvas_fail(err, "partition %u is taken", index);
	if (err == -ENOSPC)
		return pvas_fail(err, "all partitions are taken");
	if (err == -ENOENT)
		return pvas_fail(-ESRCH, "the space has ended");
	if (err)
		return pvas_fail(err, "can't enter the space: %s", strerror(-err));
	pvas_debug("space %u: pid %d enters as task %u: %s", space->id, getpid(), index, path);
	err = pvas_raw3(__NR_execve, path, argv, envp);
	disarm(space);
	return err;
}
