/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The user backend: the execve() of a task that stays in its space.
 *
 * An execve() would leave the mm, so the task itself does what an execve() does. The
 * worker that gets the call copies the arguments, writes a jump behind the task's system
 * call instruction, and lets the call return. So the task's thread comes to
 * user_stay_main(), with a stack of the launcher's, in the launcher's code, where the filter
 * allows it everything. It restores the instructions, and checks the program. Then it
 * either becomes the program, in its partition, or makes the system call again, which
 * leaves the space or fails as it always would.
 *
 * Only the first thread can do that, which the process is left with. The others end by a
 * signal that the C library uses within, and that programs don't block.
 */
#ifndef PVAS_USER_STAY_H
#define PVAS_USER_STAY_H

#include "user.h"

/* Offsets for the assembler in stay_task.c */
#define STAY_STACK	104
#define STAY_AGAIN	112
#define STAY_NR		120

#define STAY_CODE_LEN	22	/* movabs $stay, %rcx; movabs $user_stay_entry, %rax; jmp *%rax */

/**
 * struct user_stay - an execve() of a task: the head of a mapping of the launcher's
 * @registers:	of the task's thread, as they were at the system call
 * @stack:	top of the stack to use
 * @again:	address of the system call instruction
 * @nr:		its number
 * @u:		the space
 * @part:	the partition
 * @size:	of the mapping
 * @code:	the instructions behind the system call that the jump has replaced
 * @armed:	they are replaced
 * @mask:	the signals that were blocked
 * @path:	copies of its arguments
 * @argv:
 * @envp:
 * @tls:	for the thread pointer, once the task's own is unmapped
 */
struct user_stay {
	uint64_t registers[13];
	uint64_t stack;
	uint64_t again;
	uint64_t nr;
	struct user_space *u;
	struct user_part *part;
	size_t size;
	unsigned char code[STAY_CODE_LEN];
	int armed;
	uint64_t mask;
	char *path;
	char **argv;
	char **envp;
	void *tls[16];
};

/*
 * In a worker, under user_part.lock: have the caller go on in user_stay_main(). Returns 0 if
 * it has to leave the space.
 */
int user_stay(struct user_request *r);

/* Restore the instructions, if they are replaced; @e may be NULL. Raw system calls only. */
void user_stay_disarm(struct user_stay *e);

void user_stay_free(struct user_stay *e);

/* ---- stay_threads.c: in the task ---- */

/* Can the others be ended? Waits for a moment. */
int user_stay_may_end_threads(void);

/* End all threads but the calling one. Returns 0 if there are some that don't end. */
int user_stay_end_threads(void);

/* ---- stay_task.c: in the task ---- */

/* The changed code jumps here, with the structure in %rcx. */
void user_stay_entry(void);

/* Becomes the program, or returns for the system call to be made again. */
void user_stay_main(struct user_stay *e);

#endif /* PVAS_USER_STAY_H */
