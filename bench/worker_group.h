/* SPDX-License-Identifier: GPL-2.0-only */
/* N workers that begin together: as tasks of one space, as plain processes or as threads. */
#ifndef GROUP_H
#define GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GROUP_MAX 512

/* The memory that all workers share: they inherit its descriptor. */
struct group_page {
	uint32_t ready;		/* workers that wait for the phase to begin */
	uint32_t phase;		/* futex: how many phases have begun */
	uint32_t stop;		/* the last phase is over */
	struct {
		uint64_t count;	/* what it has done so far */
		uint32_t turn;	/* futex of a pair: the lower one's is used */
		uint64_t peer;	/* what others need to find its buffer */
	} __attribute__((aligned(128))) worker[GROUP_MAX];
};

struct pvas_space;

struct worker_group {
	struct group_page *page;
	struct pvas_space *space;	/* NULL: not tasks */
	pid_t pids[GROUP_MAX];
	unsigned int n, processes;
	int fd;
};

/* --- the driver's side --- */

/**
 * group_start - start @n workers and wait until all are ready
 * @system:	"plain", "threads" of one process, or any that begins with "pvas": tasks
 * @program:	is called with FD INDEX N THREADS WHAT; see group_open()
 */
void group_start(struct worker_group *c, const char *system, unsigned int n, const char *program,
		 const char *what);
/** group_begin - let all begin the next phase */
void group_begin(struct worker_group *c);
/** group_await - wait until all are ready for the next phase */
void group_await(struct worker_group *c);
/** group_end - have all stop, and reap them */
void group_end(struct worker_group *c);
/** group_count - the sum of what all have done */
uint64_t group_count(const struct worker_group *c);

/* --- a worker's side; see group_worker.c --- */

/** group_open - map the page that a worker's first argument names, or exit */
struct group_page *group_open(const char *fd);
/** group_ready - say that this worker waits for phase @phase (from 1), and wait */
void group_ready(struct group_page *page, uint32_t phase);

static inline bool group_stopped(const struct group_page *page)
{
	return __atomic_load_n(&page->stop, __ATOMIC_RELAXED);
}

#endif /* GROUP_H */
