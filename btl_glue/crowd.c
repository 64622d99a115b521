// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * More ranks than processors: in MPI_Init the first wait for the last, and Open
 * MPI looks each 0.1 ms whether it has come. Many of them keep the processors
 * from just those they wait for. The thread's timer slack, prctl(2), makes them
 * look less often, as long as nobody has been told of our peers.
 */
#include "btl_pvas.h"

#include <sys/prctl.h>
#include <unistd.h>

/* For each rank that a processor has; the slack of one alone is as much. */
#define SLACK_NS 50000

/* What the thread had before, which is never 0 */
static __thread int slack;

void pvas_crowd_wait(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	long ranks = opal_process_info.num_local_peers + 1;

	if (slack || processors < 1 || ranks <= processors)
		return;
	slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	if (slack > 0 && slack < SLACK_NS * (ranks / processors))
		prctl(PR_SET_TIMERSLACK, SLACK_NS * (ranks / processors), 0, 0, 0);
}

void pvas_crowd_go_on(void)
{
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
	slack = 0;
}
