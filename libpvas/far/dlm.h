/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of DLM, the Distributed Large Memory of H. Midorikawa and others, for programs
 * written for it: arrays larger than memory for a program of one process with threads. Each
 * is a call of pvas_far.h; PVAS_FAR, PVAS_FAR_RAM and the other variables of pvas-far(7) say
 * where pages are and how much is resident.
 */
#ifndef PVAS_FAR_DLM_H
#define PVAS_FAR_DLM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * dlm_startup - start the pager
 * @argc:	main()'s; not changed
 * @argv:	main()'s; not changed
 *
 * If that fails, the process ends with status 1 and a line on standard error.
 */
void dlm_startup(int *argc, char ***argv);

/**
 * dlm_alloc - allocate far memory, of zeros
 * @size:	in bytes
 *
 * Return: its address, or NULL, with errno set (ENOMEM).
 */
void *dlm_alloc(size_t size);

/** dlm_shutdown - free all of it and end the pager */
void dlm_shutdown(void);

#ifdef __cplusplus
}
#endif
#endif /* PVAS_FAR_DLM_H */
