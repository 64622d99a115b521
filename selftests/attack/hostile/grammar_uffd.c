// SPDX-License-Identifier: GPL-2.0-only
/* userfaultfd: its ioctls name addresses, too, and who monitors can hold others up. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "hostile.h"

static void uffd_open(struct actor *a)
{
	struct uffdio_api api = { .api = UFFD_API };
	static const uint64_t features[] = {
		0, UFFD_FEATURE_EVENT_UNMAP, UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
		UFFD_FEATURE_EVENT_REMOVE, UFFD_FEATURE_EVENT_REMOVE,
	};
	long fd = CALL(a, SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0)
		return;
	/* A fork event would hold up our own forks; the others hold up who unmaps. */
	api.features = features[pick(a, ARRAY(features))];
	CALL(a, SYS_ioctl, fd, UFFDIO_API, &api);
	note(a, N_UFFD, api.features);
	a->uffd = fd;
	keep_fd(a, fd);
}

static void uffd_register(struct actor *a)
{
	struct uffdio_register reg = {
		.range = { any_addr(a) & ~(PAGE - 1), (1 + pick(a, 2)) * PAGE },
		.mode = 1 + pick(a, 3),
	};

	note(a, N_UFFD, reg.range.start);
	CALL(a, SYS_ioctl, a->uffd, UFFDIO_REGISTER, &reg);
}

/* COPY, ZEROPAGE, WRITEPROTECT, CONTINUE, MOVE: at a peer's, where nothing is yet, or is. */
static void uffd_resolve(struct actor *a)
{
	uint64_t arg[6] = { any_addr(a) & ~(PAGE - 1), 0, PAGE, 0, 0, 0 };

	note(a, N_UFFD, arg[0]);
	switch (pick(a, 5)) {
	case 0:
		arg[1] = (uintptr_t)a->scratch;
		CALL(a, SYS_ioctl, a->uffd, UFFDIO_COPY, arg);
		break;
	case 1:
		arg[1] = PAGE;
		arg[2] = 0;
		CALL(a, SYS_ioctl, a->uffd, UFFDIO_ZEROPAGE, arg);
		break;
	case 2:
		arg[1] = PAGE;
		arg[2] = pick(a, 4);
		CALL(a, SYS_ioctl, a->uffd, UFFDIO_WRITEPROTECT, arg);
		break;
	case 3:		/* UFFDIO_MOVE, from 6.8 on: the source's page goes */
		arg[1] = arg[0];
		arg[0] = (uintptr_t)a->arena + pick(a, ARENA_PAGES) * PAGE;
		arg[3] = 2;
		CALL(a, SYS_ioctl, a->uffd, _IOWR(UFFDIO, 0x05, uint64_t[5]), arg);
		break;
	default:
		arg[1] = PAGE;
		CALL(a, SYS_ioctl, a->uffd, UFFDIO_UNREGISTER, arg);
	}
}

void op_uffd(struct actor *a)
{
	if (a->uffd < 0)
		uffd_open(a);
	if (a->uffd < 0)
		return;
	if (pick(a, 2))
		uffd_register(a);
	else
		uffd_resolve(a);
}
