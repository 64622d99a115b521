// SPDX-License-Identifier: GPL-2.0-only
/* pvasrun's messages. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "outlet.h"
#include "tagger.h"

#define PROGRESS_AFTER_MS 1000
#define PROGRESS_EVERY_MS 100

static bool verbose, quiet, debugging;
static bool progress_wanted, progress_shown;
static int64_t progress_next;

/*
 * If the reader is slow, messages are queued, so that signals are handled meanwhile: at
 * most WAITING_MAX bytes, and at the end of pvasrun for FLUSH_MS.
 */
#define WAITING_MAX	(1 << 20)
#define FLUSH_MS	2000

static struct outlet outlet = OUTLET_NONE(STDERR_FILENO);
static struct buffer waiting;

bool report_waits(void)
{
	ssize_t n;

	while (buffer_len(&waiting)) {
		n = outlet_write(&outlet, buffer_head(&waiting), buffer_len(&waiting));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		/* an error of standard error can not be reported */
		buffer_take(&waiting, n > 0 ? (size_t)n : buffer_len(&waiting));
	}
	return false;
}

static bool finished(void)
{
	static bool finishing;

	if (!finishing)
		outlet_finish(&outlet);
	finishing = true;
	return outlet_finished(&outlet) >= 0;
}

/* At the end of pvasrun. Continues as long as the reader makes progress. */
void report_flush(void)
{
	int64_t until = now_ms() + FLUSH_MS;
	size_t before;

	while (now_ms() < until) {
		before = buffer_len(&waiting);
		if (!report_waits() && finished())
			return;
		if (buffer_len(&waiting) < before)
			until = now_ms() + FLUSH_MS;
		usleep(10000);
	}
	buffer_free(&waiting);
	outlet_close(&outlet);
}

static struct report_kept *kept;

void report_keep(struct report_kept *to)
{
	kept = to;
}

static void put(const char *text, size_t len)
{
	if (kept && len <= kept->room - kept->used) {
		memcpy(kept->text + kept->used, text, len);
		kept->used += len;
	}
	if (kept)
		return;
	if (buffer_len(&waiting) + len > WAITING_MAX || buffer_add(&waiting, text, len))
		return;
	report_waits();
}

void report_setup(bool be_verbose, bool be_quiet)
{
	const char *debug = getenv("PVAS_DEBUG");	/* as libpvas/debug.c */

	debugging = debug && *debug && strcmp(debug, "0") != 0;
	verbose = be_verbose || debugging;
	quiet = be_quiet;
	outlet_open(&outlet, STDERR_FILENO, NULL);
}

static void progress_clear(void)
{
	static const char clear[] = "\r\033[K";

	if (progress_shown)
		put(clear, sizeof(clear) - 1);
	progress_shown = false;
}

/* One write(), so that output of tasks on the same terminal does not split the line. */
/*
 * A line can name what others have chosen, users too, and is printed on a terminal. Bytes above
 * ASCII remain, for names in UTF-8, but not those of its control characters.
 */
static void make_printable(char *text)
{
	unsigned char *c;

	for (c = (unsigned char *)text; *c; c++)
		if (*c < ' ' || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
			*c = '?';
}

static void print_line(const char *prefix, const char *format, va_list args)
{
	char line[1024] = "";
	size_t used = strlen(prefix);
	int n;

	strcpy(line, prefix);
	n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	if (n < 0)
		return;
	used += n;
	if (used > sizeof(line) - 2)
		used = sizeof(line) - 2;
	make_printable(line);
	line[used++] = '\n';
	progress_clear();
	put(line, used);
}

void report_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line("pvasrun: ", format, args);
	va_end(args);
}

void report_warning(const char *format, ...)
{
	va_list args;

	if (quiet)
		return;
	va_start(args, format);
	print_line("pvasrun: ", format, args);
	va_end(args);
}

void report_note(const char *format, ...)
{
	va_list args;

	if (!verbose)
		return;
	va_start(args, format);
	print_line(debugging ? "pvas: pvasrun: " : "pvasrun: ", format, args);
	va_end(args);
}

void report_failure(unsigned int rank, pid_t pid, const char *program, int wait_status)
{
	if (WIFSIGNALED(wait_status))
		report_error("rank %u (pid %d, %s) died from signal %d (%s)%s", rank, pid, program,
			     WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)),
			     WCOREDUMP(wait_status) ? ", core dumped" : "");
	else
		report_error("rank %u (pid %d, %s) exited with status %d", rank, pid, program,
			     WEXITSTATUS(wait_status));
}

void report_text(const char *text, size_t len)
{
	progress_clear();
	put(text, len);
}

const char *size_text(uint64_t bytes, char buf[static 24])
{
	static const char units[] = "\0KMGT";
	unsigned int unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < sizeof(units) - 2) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, 24, "%" PRIu64 "%.1s", bytes, units + unit);
	return buf;
}

void progress_begin(void)
{
	progress_wanted = !quiet && is_terminal(STDERR_FILENO);
	progress_next = now_ms() + PROGRESS_AFTER_MS;
}

void progress_update(unsigned int started, unsigned int total)
{
	char line[80];
	int64_t now;

	if (!progress_wanted)
		return;
	now = now_ms();
	if (now < progress_next || report_waits())
		return;
	progress_next = now + PROGRESS_EVERY_MS;
	snprintf(line, sizeof(line), "\r pvasrun: %u/%u tasks started", started, total);
	put(line, strlen(line));
	progress_shown = true;
}

void progress_line(const char *text)
{
	char line[160];

	if (!verbose || !is_terminal(STDERR_FILENO) || report_waits())
		return;
	snprintf(line, sizeof(line), "\r\033[K pvasrun: %s", text);
	put(line, strlen(line));
	progress_shown = true;
}

void progress_end(void)
{
	progress_clear();
	progress_wanted = false;
}
