// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The network for UCX.
 *
 * Where two nodes have two networks in common, each side chooses from them by itself: UCX 1.13
 * may then fail to connect, or end a store because of its second connection. It also listens on
 * each network, whatever the address. So only the one that the server's address belongs to is
 * used, unless there are RDMA devices, which have names of their own, or the user names networks.
 */
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ucx_network.h"

#define RDMA_DEVICES	"/sys/class/infiniband"

static bool has_rdma(void)
{
	DIR *devices = opendir(RDMA_DEVICES);
	struct dirent *entry;
	bool any = false;

	while (devices && (entry = readdir(devices)))
		any = any || entry->d_name[0] != '.';
	if (devices)
		closedir(devices);
	return any;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (!a || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

bool far_network_of(const struct sockaddr *own, char name[FAR_NETWORK])
{
	struct ifaddrs *list, *i;
	bool found = false;

	if (getenv("UCX_NET_DEVICES") || has_rdma() || getifaddrs(&list))
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		found = same_address(i->ifa_addr, own);
		if (found)
			snprintf(name, FAR_NETWORK, "%s", i->ifa_name);
	}
	freeifaddrs(list);
	return found;
}

/* A name has one entry with an IPv4 address, or several. */
bool far_network_several(void)
{
	struct ifaddrs *list, *i;
	const char *first = NULL;
	bool several = false;

	if (getenv("UCX_NET_DEVICES") || has_rdma() || getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
		    i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_RUNNING))
			continue;
		several = several || (first && strcmp(first, i->ifa_name));
		first = i->ifa_name;
	}
	freeifaddrs(list);
	return several;
}

bool far_network_to(const struct sockaddr *server, socklen_t len, char name[FAR_NETWORK])
{
	/* Nothing is sent by this: the kernel only looks for the way. */
	int fd = socket(server->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage own;
	socklen_t own_len = sizeof(own);
	bool found;

	found = fd >= 0 && !connect(fd, server, len) &&
		!getsockname(fd, (struct sockaddr *)&own, &own_len) &&
		far_network_of((struct sockaddr *)&own, name);
	if (fd >= 0)
		close(fd);
	return found;
}
