/* SPDX-License-Identifier: GPL-2.0-only */
/* pvasrun's messages: on standard error, one write() per line. */
#ifndef PVASRUN_REPORT_H
#define PVASRUN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

void report_setup(bool verbose, bool quiet);

/* "pvasrun: ...": always; unless --quiet; only with --verbose */
__attribute__((format(printf, 1, 2))) void report_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void report_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void report_note(const char *format, ...);

/* "rank 3 (pid 1234, ./app) died from signal 11 (Segmentation fault), core dumped" */
void report_failure(unsigned int rank, pid_t pid, const char *program, int wait_status);

/*
 * None of these blocks: messages may be queued. Try to write them; true if some remain.
 * report_flush() repeats that for a limited time.
 */
bool report_waits(void);
void report_flush(void);

/* In a child that may hang: from now on messages go there, for report_text() in pvasrun. */
struct report_kept {
	size_t room, used;
	char text[];
};

void report_keep(struct report_kept *to);

/* Several lines at once, unchanged */
void report_text(const char *text, size_t len);

/* A size in the format of --partition-size: "64G" */
const char *size_text(uint64_t bytes, char buf[static 24]);

/* On a terminal, if the start takes more than a second */
void progress_begin(void);
void progress_update(unsigned int started, unsigned int total);
void progress_end(void);

/* In their place: a line of the caller's, which the next one replaces. Only with --verbose */
void progress_line(const char *text);

#endif
