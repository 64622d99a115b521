/* SPDX-License-Identifier: GPL-2.0-only */
/* The libraries that a program is linked with, and its interpreter, read from its ELF file. */
#ifndef PVASRUN_ELF_NEEDED_H
#define PVASRUN_ELF_NEEDED_H

#include <stdbool.h>
#include <stddef.h>

#define ELF_NEEDS_MPI	1	/* DT_NEEDED names libmpi* */
#define ELF_HAS_RPATH	2	/* DT_RPATH or DT_RUNPATH: the program has its own search path */
#define ELF_IS_ELF	4	/* not a script */
#define ELF_NEEDS_MPICH	8	/* DT_NEEDED names libmpich*, or libmpi.so.12, which is its ABI */

#define ELF_IS_FIXED	16	/* ET_EXEC, linked at fixed addresses */

/* A set of the flags above; 0 as well if the file is not a readable ELF file. */
unsigned int elf_needed(const char *path);

/* False if the file names none, as static programs don't, or can't be read. */
bool elf_interpreter(const char *path, char *name, size_t len);

#endif
