/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: the parts of the seccomp filter, filter*.c */
#ifndef PVAS_USER_FILTER_H
#define PVAS_USER_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf.h"

struct user_far;

#define ARG(n)		((uint32_t)offsetof(struct seccomp_data, args[n]))
#define IP		((uint32_t)offsetof(struct seccomp_data, instruction_pointer))
#define HIGH(offset)	((offset) + 4)

/* Words of the filter's scratch memory */
#define M_INDEX		0
#define M_CARRY		1

/* Store the caller's partition index in M_INDEX. Go to @no if it is in no partition. */
void user_filter_check_caller(struct program *p, unsigned int no);

/* The accumulator has the system call's number, and has it again afterwards. */
void user_filter_far(struct program *p, const struct user_far *f);

/* The whole filter; @far may be NULL */
void user_filter_assemble(struct program *p, const struct user_far *far);

#endif /* PVAS_USER_FILTER_H */
