// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Turn this process's address space into a space: unmap all but the ranges in @kept,
 * and hand it to the module. Runs in the blob, on the scratch stack, because the
 * caller's own text and stack are unmapped too.
 */
#include "convert_mm.h"

#include <errno.h>
#include "../../kmod/pvas_elf.h"
#include "../header.h"
#include "../rawsys.h"

#define USER_END	(PVAS_ELF_ADDR_MAX - PVAS_ELF_PAGE)
#define USER_END_LA57	((1UL << 56) - PVAS_ELF_PAGE)

void pvas_convert_main(struct pvas_convert_request *req);

static int unmap(unsigned long lo, unsigned long hi)
{
	return lo < hi ? pvas_raw2(__NR_munmap, lo, hi - lo) : 0;
}

static int unmap_all_but(const struct pvas_range *kept, unsigned int nr_kept)
{
	unsigned long at = 0;
	unsigned int i;
	int err = 0;

	for (i = 0; i < nr_kept && !err; i++) {
		err = unmap(at, kept[i].lo);
		at = kept[i].hi;
	}
	if (!err)
		err = unmap(at, USER_END);
	/* Mappings above exist only with 5-level paging, and if the program asked for them. */
	unmap(USER_END, USER_END_LA57);
	return err;
}

static void convert(struct pvas_convert_request *req)
{
	struct pvas_create *c = &req->result.create;
	long err;

	err = unmap_all_but(req->kept, req->nr_kept);
	if (err) {
		req->result.step = PVAS_CONVERT_UNMAP;
		req->result.err = err;
		return;
	}
	err = pvas_raw3(__NR_ioctl, req->device, PVAS_IOC_CREATE, c);
	if (err) {
		req->result.step = PVAS_CONVERT_IOCTL;
		req->result.err = err;
		return;
	}
	pvas_header_publish((struct pvas_header *)req->header, c->id, c->first, c->last);
}

void pvas_convert_main(struct pvas_convert_request *req)
{
	convert(req);
	while (pvas_raw3(__NR_write, req->pipe, &req->result, sizeof(req->result)) == -EINTR)
		;
	for (;;)
		pvas_raw1(__NR_exit_group, 0);
}
