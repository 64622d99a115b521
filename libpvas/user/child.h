/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The user backend: in a new process, which must make raw system calls only. */
#ifndef PVAS_USER_CHILD_H
#define PVAS_USER_CHILD_H

#include "user.h"

/* ---- program.c ---- */

#define USER_SCRIPT_DEPTH	5
#define USER_SCRIPT_HEAD	256

/**
 * struct user_program - the program to run, with the arguments that #! put before its own
 * @fd:		open for reading
 * @path:	as it was found, for AT_EXECFN
 * @exe:	the kernel's name for it
 * @image:	its layout
 * @interp:	the layout of its interpreter; all 0 if it has none
 * @phnum:	number of its program headers
 * @head:	arguments that come before argv[1], the last one first
 * @nr_head:	number of @head; 0: argv is unchanged
 * @lines:	the #! lines that @head points into
 * @depth:	number of @lines
 * @asks:	the kernel is asked about each file, and a locked one refused: an exec of a task
 */
struct user_program {
	int fd;
	const char *path;
	char exe[USER_EXE_LEN];
	struct pvas_elf_image image;
	struct pvas_elf_image interp;
	unsigned int phnum;
	const char *head[2 * USER_SCRIPT_DEPTH + 1];
	unsigned int nr_head;
	char lines[USER_SCRIPT_DEPTH][USER_SCRIPT_HEAD + 1];
	unsigned int depth;
	int asks;
};

int user_program_open(struct user_program *prog, const char *path);

/* Is there an executable file, as far as that can be told without a descriptor? 0 or -errno */
int user_program_look_at(int dir, const char *file);

/*
 * The same of an exec of a task: a file below a directory, or if @file is "" that of the
 * descriptor, whose name is @path.
 */
int user_program_open_at(struct user_program *prog, int dir, const char *file, const char *path);

/**
 * struct user_proc_dir - the directory /proc in a task's process
 * @fd:		a descriptor of it; or -errno
 * @opened:	it is to be closed; by its number it can't be told from the launcher's, which
 *		may have been closed before
 *
 * In a task of several threads only while the others wait, from the first descriptor that is opened
 * to the last that is closed: a fork of theirs would copy it, and its child could have left
 * the directories that it leads to.
 */
struct user_proc_dir {
	int fd;
	int opened;
};

/* @starts: the launcher's descriptors are still there */
struct user_proc_dir user_program_proc(int starts);
void user_program_close_proc(const struct user_proc_dir *proc);

/* ---- locked.c ---- */

struct stat;

/* Would it cost the process record locks to open this file and close it? */
int user_program_is_locked(const struct stat *st);

/* ---- stack.c ---- */

/* Map the stack and fill it. @info is the address of its struct pvas_start. 0 or -errno. */
int user_stack_make(const struct user_start *s, const struct user_program *prog,
		    uint64_t *sp, uint64_t *info);

/* Are there not too many arguments? 0 or -E2BIG. */
int user_stack_check(const struct user_start *s, const struct user_program *prog);

/* ---- child.c ---- */

/**
 * struct user_entry - how the loader is entered: see loader/start.S
 * @loader:	its address
 * @sp:		stack pointer
 * @info:	address of the struct pvas_start on the stack
 * @loading:	for the loader
 * @interp:	where it is to map the interpreter; 0: anywhere
 */
struct user_entry {
	uint64_t loader;
	uint64_t sp;
	uint64_t info;
	struct pvas_loading *loading;
	uint64_t interp;
};

/* As getdents64() fills it */
struct dirent64 {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/*
 * A list of the open descriptors for getdents64(), which is one of them, and not close-on-exec; or
 * -errno.
 */
int user_child_open_list(int starts);

/* The number of one, as it is there */
int user_child_number_of(const char *name);

/* The first function of the new process; @arg is a struct user_start. */
int user_child_main(void *arg);

/*
 * The steps of an execve(): close the descriptors that are close-on-exec, but @keep. @high: of a
 * new process, USER_HIGH numbers that the one before had; else NULL;
 */
void user_child_close_on_exec(int keep, int *high);

/* name the process after its program; */
void user_child_take_name(const char *path);

/* map the loader and the stack: 0 or -errno; */
int user_child_make_memory(const struct user_start *s, const struct user_program *prog,
			   struct user_entry *entry);

/* and start the loader, with this signal mask. @start: the futex, see START_DONE. */
void __attribute__((noreturn)) user_child_jump(const struct user_entry *entry, int *start,
					       uint64_t mask);

#endif /* PVAS_USER_CHILD_H */
