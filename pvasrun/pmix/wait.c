// SPDX-License-Identifier: GPL-2.0-only
/* Wait for an operation that libpmix completes in its own thread. */
#include "internal.h"

#include <semaphore.h>

static struct {
	sem_t done;
	pmix_status_t status;
} waiter;

void pmix_wait_init(void)
{
	sem_init(&waiter.done, 0, 0);
}

void pmix_done(pmix_status_t status, void *data)
{
	(void)data;
	waiter.status = status;
	sem_post(&waiter.done);
}

pmix_status_t pmix_wait(pmix_status_t started)
{
	if (started == PMIX_OPERATION_SUCCEEDED)
		return PMIX_SUCCESS;
	if (started != PMIX_SUCCESS)
		return started;
	while (sem_wait(&waiter.done))
		;
	return waiter.status;
}
