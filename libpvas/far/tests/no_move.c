// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Between libpvasfar and the kernel: linked with --wrap=ioctl. A kernel before Linux 6.8, as far as
 * libpvasfar can see: UFFDIO_API's answer has no UFFD_FEATURE_MOVE. And a look at each call.
 */
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "no_move.h"

bool no_move;
void (*before_ioctl)(unsigned long request, void *arg);

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct uffdio_api *api;
	va_list ap;
	void *arg;
	int err;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (before_ioctl)
		before_ioctl(request, arg);
	err = __real_ioctl(fd, request, arg);
	if (!err && no_move && request == UFFDIO_API) {
		api = arg;
		api->features &= ~((__u64)1 << 16);
	}
	return err;
}
