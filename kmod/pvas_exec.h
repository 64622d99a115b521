/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of an exec into a space, in the order in which pvas_exec.c calls them. */
#ifndef PVAS_EXEC_H
#define PVAS_EXEC_H

#include <linux/elf.h>

#include "pvas.h"
#include "pvas_elf.h"

struct linux_binprm;

/**
 * struct pvas_exec - one exec in progress
 * @bprm:	the kernel's record of it
 * @part:	the partition to enter, with a reference
 * @stays:	the caller is a task of the space already: the member it becomes; else NULL
 * @image:	the needs of the program
 * @phnum:	the number of its program headers
 * @randomize:	choose random places in the partition
 * @buf:	the top of the new stack, built here and then copied
 * @buf_len:	bytes in @buf
 * @strings:	bytes of argv, envp and file name strings
 */
struct pvas_exec {
	struct linux_binprm *bprm;
	struct pvas_partition *part;
	struct pvas_member *stays;
	struct pvas_elf_image image;
	Elf64_Half phnum;
	bool randomize;
	char *buf;
	size_t buf_len;
	size_t strings;
};

/* pvas_program.c */
int pvas_program_read(struct file *file, Elf64_Ehdr *ehdr, struct pvas_elf_image *image);
int pvas_program_check_rights(struct linux_binprm *bprm);
bool pvas_program_is_locked(struct file *file);
int pvas_program_check_interp(struct linux_binprm *bprm, const struct pvas_elf_image *image,
			      bool *locked);

/* pvas_join.c */
int pvas_join(struct pvas_space *space);

/* pvas_signal.c */
void pvas_signals_hold(void);
void pvas_signals_release(void);

/* pvas_stack.c */
int pvas_stack_measure(struct pvas_exec *ex);
int pvas_stack_build(struct pvas_exec *ex, int fd, unsigned long *sp, unsigned long *start);
int pvas_stack_map(struct pvas_exec *ex, unsigned long sp);

#endif /* PVAS_EXEC_H */
