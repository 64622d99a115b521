/* SPDX-License-Identifier: GPL-2.0-only */
/* The PMIx proxy's connections. */
#ifndef PVASRUN_PMIX_CONN_H
#define PVASRUN_PMIX_CONN_H

#include "pmix_proxy.h"

struct proxy_conn *proxy_conn_alloc(struct pmix_proxy *proxy);
void proxy_conn_close(struct proxy_conn *conn);

/* It is in the list of those whose handshake is awaited, oldest first; and no longer. */
void proxy_conn_wait(struct proxy_conn *conn);
void proxy_conn_waited(struct proxy_conn *conn);

/* May the server get @len bytes more of this rank? */
bool proxy_conn_has_room(struct proxy_conn *conn, size_t len);

/* Forward what its two ends say. */
int proxy_conn_begin(struct proxy_conn *conn);

/* The server's end closes with this process, as the server does. */
void proxy_conn_leave_open(struct proxy_conn *conn);

#endif
