/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child that reads or writes a file whose server may never answer, a network's or one in user
 * space: pvasrun itself must handle signals and --timeout meanwhile.
 */
#ifndef PVASRUN_FILE_CHILD_H
#define PVASRUN_FILE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct file_child {
	int end;	/* of a SOCK_SEQPACKET pair, to be watched; -1: none */
	pid_t pid;
};

#define FILE_CHILD_NONE		{ .end = -1 }

/* Is @fd a regular file that is on no block device, so perhaps on a server? */
bool file_child_wanted(int fd);

/* Are they the same such file, on which no two children should write? */
bool file_child_same(int a, int b);

/*
 * Runs run(end, fd) in a child, which may use calls of the kernel only and has nothing else
 * open: pvasrun's readers and pipes don't wait for it. It ignores all signals but SIGKILL and
 * SIGSTOP. @fd can be -1. Returns 0 or -errno.
 */
int file_child_begin(struct file_child *child, int fd, void (*run)(int end, int fd));

/* Ends the child if it has not ended, and does not wait for it if it can't end. */
void file_child_close(struct file_child *child);

#endif
