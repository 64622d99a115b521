/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The network that stores and memory servers use */
#ifndef PVAS_FAR_UCX_NETWORK_H
#define PVAS_FAR_UCX_NETWORK_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/socket.h>

#define FAR_NETWORK	IF_NAMESIZE

/**
 * far_network_of - the network of an address of this node
 *
 * Return: false if UCX is to choose: the address is none of a network's, there are RDMA
 * devices, or UCX_NET_DEVICES is set.
 */
bool far_network_of(const struct sockaddr *own, char name[FAR_NETWORK]);

/** far_network_several - are there several from which UCX would choose, beside the loopback? */
bool far_network_several(void);

/** far_network_to - the network by which an address is reached. Return: as far_network_of() */
bool far_network_to(const struct sockaddr *server, socklen_t len, char name[FAR_NETWORK]);

#endif
