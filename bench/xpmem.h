/* SPDX-License-Identifier: GPL-2.0-only */
/* XPMEM, by its own library, which is loaded if it is there. */
#ifndef XPMEM_H
#define XPMEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define XPMEM_READ_WRITE	2	/* XPMEM_RDWR */
#define XPMEM_BY_MODE		1	/* XPMEM_PERMIT_MODE */

struct xpmem_place {
	int64_t apid;
	off_t offset;
};

/* Its calls, without their prefix */
struct xpmem {
	int64_t (*make)(void *addr, size_t len, int permit, void *mode);
	int (*forget)(int64_t segid);
	int64_t (*get)(int64_t segid, int flags, int permit, void *mode);
	int (*release)(int64_t apid);
	void *(*attach)(struct xpmem_place place, size_t len, void *addr);
	int (*detach)(void *addr);
};

/**
 * xpmem_load - fill in @x
 *
 * RAW_XPMEM_LIB in the environment is the library's path. -errno: not on this machine.
 */
int xpmem_load(struct xpmem *x);

#endif /* XPMEM_H */
