/* SPDX-License-Identifier: GPL-2.0-only */
/* The libraries that a program is linked with, read from its ELF file. */
#ifndef PVASRUN_ELF_NEEDED_H
#define PVASRUN_ELF_NEEDED_H

#define ELF_NEEDS_MPI	1	/* DT_NEEDED names libmpi* */
#define ELF_HAS_RPATH	2	/* DT_RPATH or DT_RUNPATH: the program has its own search path */
#define ELF_IS_ELF	4	/* not a script */
#define ELF_NEEDS_MPICH	8	/* DT_NEEDED names libmpich*, or libmpi.so.12, which is its ABI */

#define ELF_IS_FIXED	16	/* ET_EXEC, linked at fixed addresses */

/* A set of the flags above; 0 as well if the file is not a readable ELF file. */
unsigned int elf_needed(const char *path);

#endif
