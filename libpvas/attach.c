// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_space_join, pvas_task_exec: for processes that another launcher starts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backend.h"
#include "rawsys.h"

#define TRIES	100	/* to attach to a space that ends before */

_Static_assert(PVAS_JOIN_KEY_MAX == PVAS_KEY_MAX, "the limit is the ABI's");

static int check_key(const char *key)
{
	size_t len = strlen(key);

	if (len < 1 || len > PVAS_KEY_MAX)
		return pvas_fail(-EINVAL, "a key of %zu bytes: it must have 1 to %d", len,
				 PVAS_KEY_MAX);
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

static int create(struct pvas_space *s, const char *key)
{
	struct pvas_create arg = {
		.size = sizeof(arg),
		.flags = PVAS_CREATE_KEY,
		.shift = s->shift,
		.key = (uint64_t)key,
		.key_len = strlen(key),
	};

	return pvas_kernel_create(s, &arg);
}

/* Between the two calls another process can make the space, or its last task can end. */
static int attach_or_create(struct pvas_space *s, const char *key)
{
	int tries = TRIES;
	int err;

	do {
		err = attach(s, key);
		if (err != -ENOENT)
			break;
		err = create(s, key);
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
		return pvas_fail(-EAGAIN, "the space kept ending before it could be entered");
	default:
		return pvas_fail(err, "can't attach to the job's space: %s", strerror(-err));
	}
}

static int join(struct pvas_space *s, const char *key)
{
	int err;

	s->device = pvas_open_device(s->shift);
	if (s->device < 0)
		return s->device;
	err = attach_or_create(s, key);
	if (err)
		close(s->device);
	return err;
}

PVAS_PUBLIC int pvas_space_join(struct pvas_space **space, const char *key,
				const struct pvas_create_attr *attr)
{
	struct pvas_create_attr a;
	struct pvas_space *s;
	int err, shown;

	pvas_clear_error();
	err = check_key(key);
	if (!err)
		err = pvas_get_create_attr(&a, attr);
	if (!err && a.backend == PVAS_BACKEND_USER)
		err = pvas_fail(-ENOSYS, "only the kernel backend finds a space by its key");
	if (err)
		return err;
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	pvas_space_init(s, &a, PVAS_BACKEND_KERNEL);
	s->flags |= PVAS_KEEP_ON_CLOSE;
	/* A key of pvasexec's is the job's name, and after it a secret. */
	shown = (int)strcspn(key, "#");
	err = join(s, key);
	if (err) {
		pvas_debug("key '%.*s': no space: %s", shown, key, pvas_error_text(err));
		free(s);
		return err;
	}
	pvas_debug("key '%.*s': space %u, partitions of %llu GiB, for tasks %u to %u", shown, key,
		   s->id, 1ULL << (s->shift - 30), s->first, s->last);
	*space = s;
	return 0;
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
	err = pvas_kernel_arm(space, &index);
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
	pvas_kernel_disarm(space);
	return err;
}
