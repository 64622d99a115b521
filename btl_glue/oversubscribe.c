// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * More ranks than processors. In MPI_Init, ranks wait for the last one, and Open MPI
 * polls every 0.1 ms: many waiting ranks take the processors from those they wait for.
 * A larger timer slack, see prctl(2), makes a rank poll less often until add_procs.
 */
#include "btl_pvas.h"

#include <sys/prctl.h>
#include <unistd.h>

/* Per rank that shares a processor; equal to Linux's default slack */
#define SLACK_NS 50000

/* The thread's previous slack, which is never 0 */
static __thread int slack;

void mca_btl_pvas_raise_timer_slack(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	long ranks = opal_process_info.num_local_peers + 1;

	if (slack || processors < 1 || ranks <= processors)
		return;
	slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	if (slack > 0 && slack < SLACK_NS * (ranks / processors))
		prctl(PR_SET_TIMERSLACK, SLACK_NS * (ranks / processors), 0, 0, 0);
}

void mca_btl_pvas_restore_timer_slack(void)
{
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
	slack = 0;
}
