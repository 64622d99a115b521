/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All that depends on the architecture, beside the assembly in loader/start.S and user/entry.S.
 * The part for aarch64 compiles, and was never run: doc/aarch64.md.
 */
#ifndef PVAS_ARCH_H
#define PVAS_ARCH_H

#include <linux/types.h>

/**
 * struct pvas_beginning - how a program begins
 * @entry:	of the loader
 * @sp:		stack
 * @info, @mark, @interp:	arguments of the loader, see loader/start.S
 * @mask:	of signals
 */
struct pvas_beginning {
	__u64 entry, sp, info, mark, interp, mask;
};

#ifdef __aarch64__
#include "arch_aarch64.h"
#else
#include "arch_x86_64.h"
#endif

#endif /* PVAS_ARCH_H */
