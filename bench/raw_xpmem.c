// SPDX-License-Identifier: GPL-2.0
/*
 * XPMEM, by its own library, which is loaded if it is there (RAW_XPMEM_LIB has its
 * path): see raw.h.
 */
#include "raw.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define READ_WRITE	2	/* XPMEM_RDWR */
#define BY_MODE		1	/* XPMEM_PERMIT_MODE */

struct place {
	int64_t apid;
	off_t offset;
};

static int64_t (*make)(void *addr, size_t len, int permit, void *mode);
static int (*forget)(int64_t segid);
static int64_t (*get)(int64_t segid, int flags, int permit, void *mode);
static int (*release)(int64_t apid);
static void *(*attach)(struct place place, size_t len, void *addr);
static int (*detach)(void *addr);

static int xpmem_open(struct raw_pair *pair)
{
	const char *path = getenv("RAW_XPMEM_LIB");
	void *lib;

	(void)pair;
	if (access("/dev/xpmem", R_OK | W_OK))
		return -errno;
	lib = dlopen(path ? path : "libxpmem.so.0", RTLD_NOW);
	if (!lib)
		return -ELIBACC;
	make = dlsym(lib, "xpmem_make");
	forget = dlsym(lib, "xpmem_remove");
	get = dlsym(lib, "xpmem_get");
	release = dlsym(lib, "xpmem_release");
	attach = dlsym(lib, "xpmem_attach");
	detach = dlsym(lib, "xpmem_detach");
	return make && forget && get && release && attach && detach ? 0 : -ELIBBAD;
}

static size_t whole_pages(size_t len)
{
	return (len + 4095) & ~(size_t)4095;
}

static char *attach_peer(struct raw_side *me, size_t at, size_t len)
{
	char *p = attach((struct place){ me->apid, at }, whole_pages(len), NULL);

	if (p == (char *)-1)
		bench_die("xpmem_attach", -errno);
	return p;
}

static void xpmem_begin(struct raw_side *me, size_t all)
{
	int64_t segid = make(me->buf, all & ~(size_t)4095, BY_MODE, (void *)0600);

	if (segid == -1)
		bench_die("xpmem_make", -errno);
	me->pair->segid[me->side] = segid;
}

static void xpmem_join(struct raw_side *me)
{
	me->apid = get(me->pair->segid[!me->side], READ_WRITE, BY_MODE, NULL);
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
	if (!me->attached && detach(p))
		bench_die("xpmem_detach", -errno);
}

static void xpmem_leave(struct raw_side *me)
{
	if (me->attached)
		detach(me->attached);
	release(me->apid);
}

static void xpmem_end(struct raw_side *me)
{
	forget(me->pair->segid[me->side]);
}

const struct raw_way raw_xpmem = {
	.name = "xpmem", .open = xpmem_open, .begin = xpmem_begin, .join = xpmem_join,
	.send = raw_tell, .receive = xpmem_receive, .leave = xpmem_leave, .end = xpmem_end,
};
