/* SPDX-License-Identifier: GPL-2.0-only */
/* N workers that begin together: as tasks of one space, as plain processes or as threads. */
#ifndef CROWD_H
#define CROWD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CROWD_MAX 512

/* What all share: a page range whose descriptor all inherit. */
struct crowd_page {
	uint32_t ready;		/* workers that wait for the phase to begin */
	uint32_t phase;		/* futex: how many phases have begun */
	uint32_t stop;		/* the last phase is over */
	struct {
		uint64_t count;	/* what it has done so far */
		uint32_t turn;	/* futex of a pair: the lower one's is used */
		uint64_t peer;	/* what others need to find its buffer */
	} __attribute__((aligned(128))) worker[CROWD_MAX];
};

struct pvas_space;

struct crowd {
	struct crowd_page *page;
	struct pvas_space *space;	/* NULL: not tasks */
	pid_t pids[CROWD_MAX];
	unsigned int n, processes;
	int fd;
};

/* --- the driver's side --- */

/**
 * crowd_start - start @n workers and wait until all are ready
 * @system:	"plain", "threads" of one process, or any that begins with "pvas": tasks
 * @program:	is called with FD INDEX N THREADS WHAT; see crowd_open()
 */
void crowd_start(struct crowd *c, const char *system, unsigned int n, const char *program,
		 const char *what);
/** crowd_begin - let all begin the next phase */
void crowd_begin(struct crowd *c);
/** crowd_await - wait until all are ready for the next phase */
void crowd_await(struct crowd *c);
/** crowd_end - have all stop, and reap them */
void crowd_end(struct crowd *c);
/** crowd_count - the sum of what all have done */
uint64_t crowd_count(const struct crowd *c);

/* --- a worker's side; see crowd_worker.c --- */

/** crowd_open - the page, of a worker's first argument; exits if that is none */
struct crowd_page *crowd_open(const char *fd);
/** crowd_ready - say that this worker waits for phase @phase (from 1), and wait */
void crowd_ready(struct crowd_page *page, uint32_t phase);

static inline bool crowd_stopped(const struct crowd_page *page)
{
	return __atomic_load_n(&page->stop, __ATOMIC_RELAXED);
}

#endif /* CROWD_H */
