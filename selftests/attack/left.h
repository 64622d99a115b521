/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the attacks in C: random numbers that are the same everywhere, and what
 * may not be left at the end: a process, a space.
 */
#ifndef PVAS_ATTACK_LEFT_H
#define PVAS_ATTACK_LEFT_H

#define END_SECONDS 120	/* for what is left to end, on a slow machine */

/* Next number below @below of the generator whose state is @state. */
unsigned int rnd(unsigned long long *state, unsigned int below);

/* Seconds on a clock that only goes forward. */
double now(void);

/* Spaces in /proc/pvas; -1 without the module. */
int count_spaces(void);

/*
 * Waits for all children and adopted orphans to end, and for the spaces to
 * become as few as @spaces_before. If they don't: says what is left, returns 1.
 */
int check_end(int spaces_before);

#endif
