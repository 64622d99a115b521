/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The argument of the blob's second entry: see convert_mm.c. It lies in the scratch
 * area of the space header, because little else stays mapped.
 */
#ifndef PVAS_LOADER_CONVERT_MM_H
#define PVAS_LOADER_CONVERT_MM_H

#include <linux/pvas.h>

#define PVAS_CONVERT_KEPT	16

struct pvas_range {
	__u64 lo;
	__u64 hi;
};

/* Which step failed */
#define PVAS_CONVERT_MAP	1	/* map the header in partition 0 */
#define PVAS_CONVERT_UNMAP	2	/* empty the address space */
#define PVAS_CONVERT_IOCTL	3	/* PVAS_IOC_CREATE: the module refused */

/**
 * struct pvas_convert_result - reported over the pipe
 * @err:	0 or -errno
 * @step:	what failed: PVAS_CONVERT_*
 * @create:	first the request, then as the module returned it
 */
struct pvas_convert_result {
	__s32 err;
	__u32 step;
	struct pvas_create create;
};

/**
 * struct pvas_convert_request - what to convert, and into which space
 * @device:	the file of /dev/pvas
 * @pipe:	where the result goes
 * @header:	address of struct pvas_header
 * @kept:	ranges that stay mapped, in ascending order, without overlap
 * @nr_kept:	their number
 * @result:	see there
 * @key:	@result.create.key points to it, if there is one
 */
struct pvas_convert_request {
	__s32 device;
	__s32 pipe;
	__u64 header;
	struct pvas_range kept[PVAS_CONVERT_KEPT];
	__u32 nr_kept;
	struct pvas_convert_result result;
	char key[PVAS_KEY_MAX];
};

#endif /* PVAS_LOADER_CONVERT_MM_H */
