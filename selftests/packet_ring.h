/* SPDX-License-Identifier: GPL-2.0-only */
/* A mapping whose end the module does not know: its vm_ops->close() could take for ever. */
#ifndef PACKET_RING_H
#define PACKET_RING_H

#include <linux/if_packet.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PACKET_RING_LEN 4096

/* A socket with a ring, or -1: this kernel has none, or the caller has no right to it. */
static inline int packet_ring(void)
{
	const struct tpacket_req ring = {
		.tp_block_size = PACKET_RING_LEN, .tp_block_nr = 1,
		.tp_frame_size = PACKET_RING_LEN / 2, .tp_frame_nr = 2,
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring))) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline bool packet_ring_map(void)
{
	int fd = packet_ring();

	return fd >= 0 && mmap(NULL, PACKET_RING_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) !=
			  MAP_FAILED;
}

#endif /* PACKET_RING_H */
