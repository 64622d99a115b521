/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that tests make, in the test's own directory, and run as tasks. */
#ifndef PVAS_TEST_PROGRAM_H
#define PVAS_TEST_PROGRAM_H

#include <elf.h>
#include <sys/stat.h>

#include "pvas_test.h"

/* A path in the test's own directory; good until the next call. */
const char *pt_tmp(const char *name);
/* A path beside this program; good until the next call. */
const char *pt_beside(const char *name);
/* A whole file; NULL if it can't be read. */
char *pt_slurp(const char *path, size_t *len);
/* Writes a file of the test's own directory: its path, as pt_tmp()'s, or NULL. */
const char *pt_put_file(const char *name, const void *data, size_t len, mode_t mode);
const char *pt_copy_file(const char *name, const char *from, mode_t mode);
/* The first program header of a type in an ELF file; NULL if there is none. */
Elf64_Phdr *pt_find_phdr(char *elf, uint32_t type);
/* This program as a file of the test's own directory, with another interpreter. */
const char *pt_with_interp(const char *name, const char *interp);
/* Where /proc/PID/exe leads to; 0 or -errno. */
int pt_exe_of(pid_t pid, char *buf, size_t len);
/* -errno of the exec, or what the program's wait status says: see pt_wait(). */
int pt_run_path(struct pvas_space *space, const char *path, const char *task);

#endif /* PVAS_TEST_PROGRAM_H */
