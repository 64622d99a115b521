// SPDX-License-Identifier: LGPL-2.1-or-later
/* A task that has kept what execve() would have left, run by rights.c. */
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "task_check.h"

int main(void)
{
	int sig = 0;

	/* It dies with the launcher. */
	CHECK(!prctl(PR_GET_PDEATHSIG, &sig) && sig == SIGKILL);
	CHECK(prctl(PR_GET_KEEPCAPS) == 0);
	CHECK(getuid() == geteuid() && getgid() == getegid());
	return failures != 0;
}
