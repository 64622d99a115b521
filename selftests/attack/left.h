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
 * Anonymous and shared memory, in KiB, that no process, file or System V segment has: the system's
 * sums less those of all processes and file systems. A little less or more than 0 on a quiet
 * system; what is open, but in no file system and not mapped, such as a memfd, counts.
 */
long memory_without_owner(void);

/* Says to standard error which sums these are, and what each process has. */
void show_memory(void);

/* The kernel's sums are of parts that each processor adds now and then. */
#define OWNER_SLACK_KIB	4096

/* As it was before an attack */
struct left {
	int spaces;		/* -1: no module */
	long unowned;		/* memory_without_owner() */
};

struct left left_before(void);

/*
 * Waits for all children and adopted orphans to end, for the spaces to become as few as @before,
 * and then for memory to have an owner. If not: says what is left, returns 1.
 */
int check_end(const struct left *before);

#endif
