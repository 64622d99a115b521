/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How pages are exchanged with the stores: this pager's own way, or one of the three protocols of
 *
 *	H. Midorikawa, K. Kitagawa, H. Oura: An evaluation of page exchange protocols of a remote
 *	memory server for multi-threaded programs ("the paper")
 *
 * which are here to be compared with. Section 3 has all of them. In each of the three
 *
 *  - the thread that reads the userfaultfd puts a page that a thread of the program waits for in
 *    the *internal queue*, as the paper's SIGSEGV handler does: (1) and (2) of its figures 2 and 6;
 *  - one thread, and only one, exchanges: it puts a page in place, and one that is resident goes
 *    to the stores, into the place that the other has left (the paper's flat model);
 *  - the program's threads are suspended meanwhile, and those that wait are woken at the end;
 *  - nothing is read ahead, each page that goes out is transferred, and none comes back on its way.
 *
 * A page is busy from its entry in a queue to the end of its exchange, so it is in at most one
 * queue, by its place in @page_link, which else only resident pages use. Since a userfaultfd makes
 * a page visible in one step, no page depends on the suspension, which may therefore fail.
 */
#ifndef PVAS_FAR_PROTOCOL_H
#define PVAS_FAR_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct far_protocol - how pages are exchanged
 * @name:	as in --far-protocol
 * @fetch_slots: receive buffers, at most
 * @out_slots:	buffers for pages on their way out, at most
 * @late_copy:	a page is copied from its buffer; false: its buffer becomes the page
 * @communicate: a step of the communication thread: false if there was nothing to do. NULL: this
 *		is no protocol of the paper's
 * @receive:	the same of the receiver thread; NULL: there is none
 *
 * Steps are called with the lock held, and may release it meanwhile.
 */
struct far_protocol {
	const char *name;
	uint32_t fetch_slots, out_slots;
	bool late_copy;
	bool (*communicate)(void);
	bool (*receive)(void);
};

extern const struct far_protocol far_protocol_pvas, far_protocol_r3, far_protocol_r58,
	far_protocol_r77;

/* The times of one exchange: the paper's A1 to A6, figures 5 and 8 */
enum far_moment {
	FAR_FAULTED,	/* A1: in the internal queue */
	FAR_TAKEN,	/* A2: taken from it by the communication thread */
	FAR_RECEIVED,	/* A3: here, or of r77: the receiver turns to it */
	FAR_TO_PLACE,	/* A4: taken from the external queue */
	FAR_EXCHANGED,	/* A5: in place, and another one sent */
	FAR_WOKEN,	/* A6 */
	FAR_MOMENTS
};

/* NULL: there is none of that name. */
const struct far_protocol *far_protocol_find(const char *name);

/* ---- protocol.c: with the lock held ---- */

/* A page that is EMPTY, STORED or in a SLOT is wanted: now busy, and in the internal queue. */
void far_protocol_request(uint64_t page);

void far_protocol_stamp(uint64_t page, enum far_moment moment);

/* The pages that are wanted; that the stores have been asked for; that are here (r58) */
bool far_protocol_take_internal(uint64_t *page);
void far_protocol_ask(uint64_t page);
bool far_protocol_take_asked(uint64_t *page);
void far_protocol_add_external(uint64_t page);
bool far_protocol_take_external(uint64_t *page);

/* ---- exchange.c: with the lock held, which all but the first release meanwhile ---- */

/* Is the page in the stores, and nowhere else? */
bool far_exchange_is_away(uint64_t page);

/* Get it into a buffer, of which one is free. */
void far_exchange_get(uint64_t page);

/* Put it in place, send another one. Those who wait are not woken before far_exchange_end(). */
int far_exchange_place(uint64_t page);
void far_exchange_end(uint64_t page, int err);

/* ---- suspend.c ---- */

/* Is there a signal for it? 0 or a negative errno value */
int far_suspend_open(void);
void far_suspend_close(void);

/*
 * Stop the threads of the program that run: those of this process, and not of a job's tasks. With
 * the pager's lock held, so that no thread stops that has it. far_resume() lets them go on; if it
 * comes too late, they do so by themselves, as one of them may have a lock that a store needs.
 */
void far_suspend(void);
void far_resume(void);

#endif
