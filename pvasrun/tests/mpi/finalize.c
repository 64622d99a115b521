// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank that calls PMIx_Finalize() while its server is stopped: the library does not
 * wait for the answer, and the rank has exited before its request is read. The test must
 * continue the launcher.
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
