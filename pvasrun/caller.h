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

/* Was the connection made by a process of our user, which still has it open? */
bool caller_is_ours(struct callers *callers, int fd);

/* Two ways to know whose the caller's end is: 0 or -errno */
struct ends {
	struct sockaddr_in caller;
	struct sockaddr_in ours;
};

int caller_look_up(struct callers *callers, const struct ends *ends, uid_t *uid);
int caller_search(const struct ends *ends, uid_t *uid);

#endif
