// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank whose server is busy when it leaves: the library gives up waiting for
 * an answer, and the rank has ended before anybody reads its farewell. Whoever
 * has started it must be continued.
 */
#include <pmix.h>
#include <signal.h>
#include <unistd.h>

int main(void)
{
	pmix_proc_t me;

	if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
		return 3;
	kill(getppid(), SIGSTOP);
	PMIx_Finalize(NULL, 0);
	return 0;
}
