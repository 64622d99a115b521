/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: the requests of callers that are not threads of a task, see queue.c. */
#ifndef PVAS_USER_QUEUE_H
#define PVAS_USER_QUEUE_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

struct user_request;

#define OUTSIDE_MAX	32	/* helpers that handle calls of processes outside */
#define STRANGERS_MAX	16	/* of these, for strangers' that can hang */
#define OWNER_MAX	4	/* of these, for one user's */

/* Requests in the order of their arrival */
struct user_list {
	struct user_request *first;
	struct user_request *last;
};

/**
 * struct user_meter - a helper that handles a call of a caller outside
 * @clock:	its processor time, 0 if there is no such helper
 * @begin:	what that was when the call began
 * @charged:	what has been charged for the call
 * @owner:	user_request.owner of a stranger's call that can hang, -1: it is none
 */
struct user_meter {
	clockid_t clock;
	int64_t begin;
	int64_t charged;
	int64_t owner;
};

/**
 * struct user_queue - requests for the helpers
 * @arrived:	callers to be identified
 * @deferred:	callers that are outside, or probably so if it can take long to find out
 * @strangers:	of these, strangers' that can hang, and for which there was no helper
 * @nr_deferred: how many requests have been deferred
 * @nr_waiting:	requests in all lists
 * @sweep_at:	that many, and those of callers that have been killed are freed
 * @nr_outside:	helpers that are handling calls of callers outside
 * @meters:	of these
 * @nr_strangers: of these, strangers' that can hang
 * @nr_taken:	how many requests were taken from the queue
 * @credit:	processor time in ns that may be spent on callers outside
 * @refilled:	when @credit was increased
 * @paused:	@credit was used up, and is to become more before it is used again
 * @nr_paused:	helpers that wait for credit
 * @added:	a request has arrived
 */
struct user_queue {
	struct user_list arrived;
	struct user_list deferred;
	struct user_list strangers;
	unsigned int nr_deferred;
	unsigned int nr_waiting;
	unsigned int sweep_at;
	unsigned int nr_outside;
	struct user_meter meters[OUTSIDE_MAX];
	unsigned int nr_strangers;
	unsigned int nr_taken;
	int64_t credit;
	int64_t refilled;
	int paused;
	unsigned int nr_paused;
	pthread_cond_t added;
};

#endif /* PVAS_USER_QUEUE_H */
