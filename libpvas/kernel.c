// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel backend: spaces of the module, through /dev/pvas. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backend.h"
#include "rawsys.h"

#define DEVICE "/dev/pvas"

static int device_ioctl(int fd, unsigned long cmd, void *arg)
{
	return pvas_raw3(__NR_ioctl, fd, cmd, arg);
}

/* Never 0, 1 or 2: a child replaces those before it uses the device. */
static int open_device(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	int err;

	if (fd < 0) {
		err = -errno;
		if (err == -ENOENT || err == -ENXIO || err == -ENODEV)
			return pvas_fail(-ENODEV, "no " DEVICE ": is the module pvas loaded?");
		return pvas_fail(err, "can't open " DEVICE ": %s", strerror(-err));
	}
	fd = pvas_fd_above_standard(fd);
	return fd < 0 ? pvas_fail(fd, "can't open " DEVICE ": %s", strerror(-fd)) : fd;
}

static int check_module(int fd, unsigned int shift)
{
	struct pvas_info info = { .size = sizeof(info) };
	int err = device_ioctl(fd, PVAS_IOC_INFO, &info);

	if (err == -ENOTTY)
		return pvas_fail(-EPROTO, DEVICE " is not the device of the pvas module");
	if (err)
		return pvas_fail(err, "the pvas module does not say what it is: %s",
				 strerror(-err));
	if (info.abi_major != PVAS_ABI_MAJOR)
		return pvas_fail(-EPROTO,
				 "the pvas module speaks ABI %u, this libpvas ABI %u: install matching versions",
				 info.abi_major, PVAS_ABI_MAJOR);
	if (shift < info.shift_min || shift > info.shift_max)
		return pvas_fail(-EINVAL, "partition size 2^%u is not from 2^%u to 2^%u", shift,
				 info.shift_min, info.shift_max);
	return 0;
}

int pvas_open_device(unsigned int shift)
{
	int fd = open_device();
	int err;

	if (fd < 0)
		return fd;
	err = check_module(fd, shift);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int pvas_kernel_create(struct pvas_space *s, struct pvas_create *create)
{
	int err = pvas_create_mm(s->device, create);

	if (err)
		return err;
	s->id = create->id;
	s->first = create->first;
	s->last = create->last;
	return 0;
}

static int kernel_create(struct pvas_space *s)
{
	struct pvas_create create = {
		.size = sizeof(create),
		.flags = s->flags & PVAS_KEEP_ON_CLOSE ? 0 : PVAS_CREATE_KILL_ON_CLOSE,
		.shift = s->shift,
	};
	int err;

	s->device = pvas_open_device(s->shift);
	if (s->device < 0)
		return s->device;
	err = pvas_kernel_create(s, &create);
	if (err)
		close(s->device);
	return err;
}

static void kernel_destroy(struct pvas_space *s)
{
	struct pvas_destroy destroy = {
		.size = sizeof(destroy),
		.flags = PVAS_DESTROY_KILL,
	};

	/* Closing the file is not enough if a child has inherited it. */
	if (!(s->flags & PVAS_KEEP_ON_CLOSE))
		device_ioctl(s->device, PVAS_IOC_DESTROY, &destroy);
	close(s->device);
	pvas_free_stack(s);
}

int pvas_kernel_arm(const struct pvas_space *space, unsigned int *index)
{
	struct pvas_spawn spawn = {
		.size = sizeof(spawn),
		.flags = *index == PVAS_ANY ? PVAS_SPAWN_ANY : 0,
		.index = *index == PVAS_ANY ? 0 : *index,
	};
	int err = device_ioctl(space->device, PVAS_IOC_SPAWN, &spawn);

	if (!err)
		*index = spawn.index;
	return err;
}

void pvas_kernel_disarm(const struct pvas_space *space)
{
	struct pvas_spawn spawn = { .size = sizeof(spawn), .flags = PVAS_SPAWN_CANCEL };

	device_ioctl(space->device, PVAS_IOC_SPAWN, &spawn);
}

/* In the vfork child, before its execve() */
static int enter(struct pvas_spawn_call *call)
{
	return pvas_kernel_arm(call->space, &call->index);
}

static int kernel_spawn(struct pvas_spawn_call *call)
{
	return pvas_vfork_exec(call, enter);
}

static void to_info(struct pvas_task_info *info, const struct pvas_task *t, unsigned int shift)
{
	info->index = t->index;
	info->pid = t->pid;
	info->state = (int)t->state;
	info->gen = t->gen;
	info->base = (void *)((uint64_t)t->index << shift);
	info->length = 1UL << shift;
}

static int kernel_tasks(const struct pvas_space *s, struct pvas_task_info *tasks, size_t room)
{
	uint32_t most = room < PVAS_MAX_TASKS ? (uint32_t)room : PVAS_MAX_TASKS;
	struct pvas_query query = { .size = sizeof(query), .count = most };
	struct pvas_task *t = NULL;
	uint32_t i;
	int err;

	if (most) {
		t = calloc(most, sizeof(*t));
		if (!t)
			return -ENOMEM;
	}
	query.tasks = (uint64_t)t;
	err = device_ioctl(s->device, PVAS_IOC_QUERY, &query);
	for (i = 0; !err && i < query.count && i < most; i++)
		to_info(&tasks[i], &t[i], s->shift);
	free(t);
	return err ? err : (int)query.count;
}

const struct pvas_backend_ops pvas_kernel_ops = {
	.name = "kernel",
	.create = kernel_create,
	.destroy = kernel_destroy,
	.spawn = kernel_spawn,
	.tasks = kernel_tasks,
};
