// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs to which execve() gives more rights than their caller has. */
#include "privilege.h"

#include <stddef.h>

#include "rawsys.h"

const char *pvas_privilege_of(int fd, mode_t mode)
{
	if (mode & S_ISUID)
		return "set-uid";
	/* S_ISGID without S_IXGRP means mandatory locking, not set-gid. */
	if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return "set-gid";
	if (pvas_raw4(__NR_fgetxattr, fd, "security.capability", NULL, 0) > 0)
		return "carries file capabilities";
	return NULL;
}
