// SPDX-License-Identifier: GPL-2.0-only
/* XPMEM's library: see xpmem.h. */
#include "xpmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int xpmem_load(struct xpmem *x)
{
	const char *path = getenv("RAW_XPMEM_LIB");
	void *lib;

	if (access("/dev/xpmem", R_OK | W_OK))
		return -errno;
	lib = dlopen(path ? path : "libxpmem.so.0", RTLD_NOW);
	if (!lib)
		return -ELIBACC;
	x->make = dlsym(lib, "xpmem_make");
	x->forget = dlsym(lib, "xpmem_remove");
	x->get = dlsym(lib, "xpmem_get");
	x->release = dlsym(lib, "xpmem_release");
	x->attach = dlsym(lib, "xpmem_attach");
	x->detach = dlsym(lib, "xpmem_detach");
	return x->make && x->forget && x->get && x->release && x->attach && x->detach ?
	       0 : -ELIBBAD;
}
