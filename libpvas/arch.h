/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All that depends on the architecture, beside the assembly in loader/start.S and user/entry.S.
 * The part for aarch64 compiles, and was never run: doc/aarch64.md.
 */
#ifndef PVAS_ARCH_H
#define PVAS_ARCH_H

#ifdef __aarch64__
#include "arch_aarch64.h"
#else
#include "arch_x86_64.h"
#endif

#endif /* PVAS_ARCH_H */
