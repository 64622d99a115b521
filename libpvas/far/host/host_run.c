// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lets UCX work for a store's connection, in the threads that wait for it */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "host.h"

/* An error of the connection, which ends the store: who waits is told, later operations fail. */
void host_break(struct host *host, int err, const char *why)
{
	if (host->err)
		return;
	host->err = err;
	snprintf(host->why, sizeof(host->why), "%s", why);
}

void host_lost(struct host *host, ucs_status_t status)
{
	bool never = host->expected == FAR_OP_CHALLENGE;
	char why[160];

	snprintf(why, sizeof(why), "%s: %s", never ? "no connection (is pvas-memd running there?)" :
		 "the connection was lost", ucs_status_string(status));
	host_break(host, never ? -ECONNREFUSED : -EIO, why);
}

/* The descriptor is readable at once if something happened since the last progress. */
static void sleep_until(struct host *host, double until)
{
	struct pollfd event = { .fd = host->efd, .events = POLLIN };
	double left = until - far_now();

	if (left <= 0 || ucp_worker_arm(host->worker) != UCS_OK)
		return;
	host->asleep = true;
	pthread_mutex_unlock(&host->lock);
	if (left > 1)
		left = 1;
	poll(&event, 1, left * 1000 + 1);
	pthread_mutex_lock(&host->lock);
	host->asleep = false;
}

static void check_patience(struct host *host)
{
	char why[64];

	if (host->free_count == FAR_SLOTS) {
		host->heard = far_now();
	} else if (far_now() - host->heard > HOST_PATIENCE_S) {
		snprintf(why, sizeof(why), "no answer for %d seconds", HOST_PATIENCE_S);
		host_break(host, -ETIMEDOUT, why);
	}
}

static bool progress(struct host *host, double until)
{
	bool any;

	far_ucx_quiet++;
	any = ucp_worker_progress(host->worker) ||
	      (until > far_now() && far_spin(&host->spin, host->worker));
	while (any) {
		host_pump(host);
		if (!ucp_worker_progress(host->worker))
			break;
	}
	far_ucx_quiet--;
	return any;
}

static void wait_for_driver(struct host *host, double until)
{
	double now = far_now();
	struct timespec time;

	if (until > now + 1)
		until = now + 1;
	time.tv_sec = until;
	time.tv_nsec = (until - time.tv_sec) * 1e9;
	pthread_cond_timedwait(&host->changed, &host->lock, &time);
}

/*
 * One round: works or sleeps until something may have changed or the time is over. Another
 * thread that is at it does the same for this one.
 */
void host_drive(struct host *host, double until)
{
	if (host->driven) {
		wait_for_driver(host, until);
		return;
	}
	host->driven = true;
	if (!progress(host, until))
		sleep_until(host, until);
	check_patience(host);
	if (host->err)
		host_abandon(host);
	host->driven = false;
	pthread_cond_broadcast(&host->changed);
}

/* The thread that sleeps in host_drive() is to look again: something was sent. */
void host_wake(struct host *host)
{
	if (host->asleep)
		ucp_worker_signal(host->worker);
}
