// SPDX-License-Identifier: GPL-2.0-only
/* Waiting for file servers: see answers.h. */
#include "answers.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "job.h"
#include "precheck.h"
#include "report.h"

/* It changes its own memory only. pvasrun has no other thread yet, so it may use all of libc. */
static void look(const void *about)
{
	struct options opt = *(const struct options *)about;

	/* pvasrun itself gives the messages. */
	while (open("/dev/null", O_RDWR | O_CLOEXEC) == STDOUT_FILENO)
		;
	if (!precheck_programs(&opt))
		precheck_mpi(&opt);
	if (write(STDIN_FILENO, "", 1) < 0)
		return;
}

int answers_wait(const struct options *opt)
{
	int64_t patience = opt->timeout_at ? opt->timeout_at - now_ms() : INT_MAX;
	struct ask ask;
	char answer;

	if (patience > INT_MAX)
		patience = INT_MAX;
	if (ask_begin(&ask, look, opt))
		return 0;
	ask_read(&ask, &answer, 1, &patience);
	ask_end(&ask);
	if (!opt->timeout_at || now_ms() < opt->timeout_at)
		return 0;
	report_error("--timeout %s: the time is over, and a program's file server has not answered",
		     opt->timeout_text);
	return STATUS_TIMEOUT;
}
