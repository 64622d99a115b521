/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory of a job, measured by one of its members. */
#ifndef REPORT_H
#define REPORT_H

#include "team.h"

/**
 * report_team - measure a team at rest, and write the values to a file
 *
 * Lines of "name=value": tasks, same_mm (members whose mm is rank 0's, by
 * kcmp(2)), pss_kib, vmpte_kib (of all distinct mms), and system_pagetables_kib
 * and system_used_kib (anonymous, shared, kernel's own) from /proc/meminfo.
 * Return: 0 or -errno, after a line on standard error.
 */
int report_team(const struct team *team, const char *path);

/** report_seconds - append the duration of the work */
int report_seconds(const char *path, const char *name, double seconds);

#endif /* REPORT_H */
