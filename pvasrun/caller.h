/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose is the other end of a TCP connection from this machine? */
#ifndef PVASRUN_CALLER_H
#define PVASRUN_CALLER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How the kernel is asked */
struct callers {
	int netlink;		/* -1: the kernel has no such module, so by the list */
	uint32_t seq;		/* of the last question */
	uid_t uid;		/* that may call */
};

/*
 * @listener: a socket of ours, to try it with. -errno; -EOVERFLOW: this user has
 * no number of its own here, as in a container that does not map it.
 */
int callers_open(struct callers *callers, int listener);
void callers_close(struct callers *callers);

#define CALLERS_AT_ONCE 256

/*
 * Was each of these connections made by a process of our user, which still has it
 * open? Of CALLERS_AT_ONCE at most.
 */
void callers_check(struct callers *callers, const int *fds, bool *ours, int nr);

/* Two ways to know whose the caller's end is */
struct ends {
	struct sockaddr_in caller;
	struct sockaddr_in ours;
};

/* 0 or -errno */
int caller_look_up(struct callers *callers, const struct ends *ends, uid_t *uid);
/* Sets @ours of those that are @uid's. */
void caller_search(const struct ends *ends, bool *ours, int nr, uid_t uid);

#endif
