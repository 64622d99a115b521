// SPDX-License-Identifier: GPL-2.0-only
/* XPMEM: see raw.h. */
#include "raw.h"

#include <errno.h>
#include <string.h>

#include "bench.h"
#include "xpmem.h"

static struct xpmem xpmem;

static int xpmem_open(struct raw_pair *pair)
{
	(void)pair;
	return xpmem_load(&xpmem);
}

static size_t whole_pages(size_t len)
{
	return (len + 4095) & ~(size_t)4095;
}

static char *attach_peer(struct raw_side *me, size_t at, size_t len)
{
	char *p = xpmem.attach((struct xpmem_place){ me->apid, at }, whole_pages(len), NULL);

	if (p == (char *)-1)
		bench_die("xpmem_attach", -errno);
	return p;
}

static void xpmem_begin(struct raw_side *me, size_t all)
{
	int64_t segid = xpmem.make(me->buf, all & ~(size_t)4095, XPMEM_BY_MODE, (void *)0600);

	if (segid == -1)
		bench_die("xpmem_make", -errno);
	me->pair->segid[me->side] = segid;
}

static void xpmem_join(struct raw_side *me)
{
	me->apid = xpmem.get(me->pair->segid[!me->side], XPMEM_READ_WRITE, XPMEM_BY_MODE, NULL);
	if (me->apid == -1)
		bench_die("xpmem_get", -errno);
	me->attached = me->fresh || !me->len ? NULL : attach_peer(me, 0, me->len);
}

static void xpmem_receive(struct raw_side *me)
{
	char *p;

	raw_await(me);
	if (!me->len)
		return;
	p = me->attached ? me->attached : attach_peer(me, me->at, me->len);
	memcpy(me->in + me->at, p, me->len);
	if (!me->attached && xpmem.detach(p))
		bench_die("xpmem_detach", -errno);
}

static void xpmem_leave(struct raw_side *me)
{
	if (me->attached)
		xpmem.detach(me->attached);
	xpmem.release(me->apid);
}

static void xpmem_end(struct raw_side *me)
{
	xpmem.forget(me->pair->segid[me->side]);
}

const struct raw_way raw_xpmem = {
	.name = "xpmem", .open = xpmem_open, .begin = xpmem_begin, .join = xpmem_join,
	.send = raw_tell, .receive = xpmem_receive, .leave = xpmem_leave, .end = xpmem_end,
};
