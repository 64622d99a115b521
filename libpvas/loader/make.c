// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Turn this process's address space into a space: unmap all but what @keep
 * says, and give the rest to the module. Runs from the blob, on the scratch
 * stack, for the caller's own text and stack are among what goes.
 */
#include "make.h"

#include <errno.h>
#include "../header.h"
#include "../rawsys.h"

#define USER_END	((1UL << 47) - 4096)
#define USER_END_LA57	((1UL << 56) - 4096)

void pvas_make_main(struct pvas_make *m);

static int unmap(unsigned long lo, unsigned long hi)
{
	return lo < hi ? pvas_raw2(__NR_munmap, lo, hi - lo) : 0;
}

static int unmap_all_but(const struct pvas_range *keep, unsigned int keeps)
{
	unsigned long at = 0;
	unsigned int i;
	int err = 0;

	for (i = 0; i < keeps && !err; i++) {
		err = unmap(at, keep[i].lo);
		at = keep[i].hi;
	}
	if (!err)
		err = unmap(at, USER_END);
	/* Above lies something only with 5-level paging and at the program's wish. */
	unmap(USER_END, USER_END_LA57);
	return err;
}

static void make(struct pvas_make *m)
{
	struct pvas_create *c = &m->made.create;
	long err;

	err = unmap_all_but(m->keep, m->keeps);
	if (err) {
		m->made.what = PVAS_MADE_UNMAP;
		m->made.err = err;
		return;
	}
	err = pvas_raw3(__NR_ioctl, m->device, PVAS_IOC_CREATE, c);
	if (err) {
		m->made.what = PVAS_MADE_IOCTL;
		m->made.err = err;
		return;
	}
	pvas_header_publish((struct pvas_header *)m->header, c->id, c->first, c->last);
}

void pvas_make_main(struct pvas_make *m)
{
	make(m);
	while (pvas_raw3(__NR_write, m->pipe, &m->made, sizeof(m->made)) == -EINTR)
		;
	for (;;)
		pvas_raw1(__NR_exit_group, 0);
}
