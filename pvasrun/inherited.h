/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks inherit the descriptors that pvasrun itself inherited, and no others. A library that
 * pvasrun uses may open some without O_CLOEXEC: those of UCX are connections to memory servers,
 * through which programs of other users, which tasks start, could read the job's memory.
 */
#ifndef PVASRUN_INHERITED_H
#define PVASRUN_INHERITED_H

#include <sys/types.h>

/* Called first: all that is open now was inherited. 0 or -errno */
int inherited_note(void);

/* These and @more, one that is not among them, or -1: how many, ascending; or -errno */
ssize_t inherited_list(int more, const int **fds);

/* Before each task: all others are closed by execve(2). */
void inherited_only(void);

/*
 * When all is open but what each task needs: numbers above are of the tasks'. A task closes those
 * of its peers by a few calls, before execve(2) or the library would look at each.
 */
void inherited_mark(void);

/* In the new process: close what has been opened for its peers. */
void inherited_close_peers(void);

#endif
