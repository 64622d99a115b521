/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the second entry of the blob is handed: see make.c. It lies in the
 * scratch of the space header, for nothing else will be mapped any more.
 */
#ifndef PVAS_LOADER_MAKE_H
#define PVAS_LOADER_MAKE_H

#include <linux/pvas.h>

#define PVAS_MAKE_KEEP	16

struct pvas_range {
	__u64 lo;
	__u64 hi;
};

/**
 * struct pvas_made - what the maker reports over the pipe
 * @err:	0 or -errno
 * @what:	what failed: PVAS_MADE_*
 * @create:	as the module returned it
 */
struct pvas_made {
	__s32 err;
	__u32 what;
	struct pvas_create create;
};

#define PVAS_MADE_MAP		1	/* no place for the header in partition 0 */
#define PVAS_MADE_UNMAP		2	/* could not empty the address space */
#define PVAS_MADE_IOCTL		3	/* the module refused */

/**
 * struct pvas_make - what to do
 * @device:	the file of /dev/pvas
 * @pipe:	where the result goes
 * @header:	address of struct pvas_header
 * @keep:	what stays mapped, in ascending order, not overlapping
 * @keeps:	how many
 * @made:	@made.create is the request
 * @key:	what @made.create.key shall point to, if it has one
 */
struct pvas_make {
	__s32 device;
	__s32 pipe;
	__u64 header;
	struct pvas_range keep[PVAS_MAKE_KEEP];
	__u32 keeps;
	struct pvas_made made;
	char key[PVAS_KEY_MAX];
};

#endif /* PVAS_LOADER_MAKE_H */
