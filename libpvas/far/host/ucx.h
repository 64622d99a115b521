/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* UCX as stores and memory servers use it */
#ifndef PVAS_FAR_UCX_H
#define PVAS_FAR_UCX_H

#include <stdbool.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

/**
 * far_ucx_quiet - UCX's messages about errors are not printed while this is above 0
 *
 * Per thread, because the program may use UCX for itself.
 */
extern _Thread_local int far_ucx_quiet;

/** far_ucx_quiet_all - none of UCX's messages is printed in this process */
void far_ucx_quiet_all(void);

/**
 * far_ucx_open - a context with our settings, where the user's environment has none
 * @network:	only this one, as from far_network_of(); NULL: all
 */
ucs_status_t far_ucx_open(ucp_context_h *context, const char *network);

/**
 * far_ucx_worker - a worker, and the descriptor that becomes readable with its events
 * @token:	is sent with each connection, if it isn't 0
 */
ucs_status_t far_ucx_worker(ucp_context_h context, uint64_t token, ucp_worker_h *worker, int *efd);

/** far_ucx_handler - call this function for active messages */
ucs_status_t far_ucx_handler(ucp_worker_h worker, ucp_am_recv_callback_t cb, void *arg);

/** far_ucx_fetch - receive a message's data that UCX has announced (rendezvous) */
ucs_status_ptr_t far_ucx_fetch(ucp_worker_h worker, void *announced, void *to, size_t bytes,
			       ucp_am_recv_data_nbx_callback_t done, void *arg);

/**
 * struct far_spin - whether it is worth while to look for events for a time before sleeping
 * @skip:	waits without, after one that was in vain; doubles with each
 * @skipped:	those since
 */
struct far_spin {
	unsigned int skip, skipped;
};

/** far_spin - look for events of a worker for a time. Return: was there one? */
bool far_spin(struct far_spin *spin, ucp_worker_h worker);

/** far_now - seconds since some time */
double far_now(void);

#endif
