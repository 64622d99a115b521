/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PVASRUN_CALLER_H
#define PVASRUN_CALLER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

/* Was the TCP connection, from this machine, made by a process of our user? */
bool caller_is_ours(int fd);

/* Two ways to know whose the caller's end is: 0 or -errno */
struct ends {
	struct sockaddr_in caller;
	struct sockaddr_in ours;
};

int caller_look_up(const struct ends *ends, uid_t *uid);
int caller_search(const struct ends *ends, uid_t *uid);

#endif
