/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * System calls without libc.
 *
 * The loader has no libc. The library uses them where libc's functions would change
 * errno: in a vfork child, where it is the parent's, and in functions that promise
 * not to change it. They return -errno, as the kernel does.
 */
#ifndef PVAS_RAWSYS_H
#define PVAS_RAWSYS_H

#include <errno.h>

#include "arch.h"
#include "linux_names.h"

/* Older headers lack these. */
#define NR_MAP_SHADOW_STACK	453	/* of 6.6 */
#define NR_MSEAL		462	/* of 6.10 */
#define NR_LANDLOCK_RESTRICT_SELF 446	/* of 5.13 */
#define NR_SET_MEMPOLICY_HOME_NODE 450	/* of 5.17 */
#define NR_LSM_SET_SELF_ATTR	460	/* of 6.8 */
#define OPT_SET_VMA		0x53564d41	/* PR_SET_VMA, of 5.17 */
#define OPT_SET_MDWE		65	/* PR_SET_MDWE, of 6.3 */
#define OPT_GET_MDWE		66	/* PR_GET_MDWE */
#define OPT_NOEXEC_SEAL		8	/* MFD_NOEXEC_SEAL, of 6.3 */
#define OPT_SET_MEMORY_MERGE	67	/* PR_SET_MEMORY_MERGE, of 6.4 */
#define OPT_FUTEX_HASH		78	/* PR_FUTEX_HASH, of 6.16 */
#define OPT_FUTEX_HASH_SET	1

#define pvas_raw4(nr, a, b, c, d) \
	pvas_raw6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define pvas_raw3(nr, a, b, c)	pvas_raw4(nr, a, b, c, 0)
#define pvas_raw2(nr, a, b)	pvas_raw4(nr, a, b, 0, 0)
#define pvas_raw1(nr, a)	pvas_raw4(nr, a, 0, 0, 0)
#define pvas_raw0(nr)		pvas_raw4(nr, 0, 0, 0, 0)

/* A file system may return fewer bytes than it has, or be interrupted. */
static inline long pvas_raw_pread(int fd, void *buf, unsigned long len, unsigned long off)
{
	unsigned long done = 0;
	long n;

	while (done < len) {
		n = pvas_raw4(__NR_pread64, fd, (char *)buf + done, len - done, off + done);
		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += n;
	}
	return (long)done;
}

#endif /* PVAS_RAWSYS_H */
