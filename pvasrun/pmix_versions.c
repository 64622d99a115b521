// SPDX-License-Identifier: GPL-2.0-only
/* The versions of libpmix that a job's ranks have. */
#include "pmix_versions.h"

#include <stdio.h>
#include <string.h>

#include "report.h"

/* Major and minor number */
static size_t series_length(const char *version)
{
	const char *dot = strchr(version, '.');

	return dot ? (size_t)(dot + 1 - version) + strcspn(dot + 1, ".") : strlen(version);
}

static bool is_alike(const char *a, const char *b)
{
	const size_t len = series_length(a);

	return len == series_length(b) && !strncmp(a, b, len);
}

/* Ranks of two series of Open MPI, for one, can't send each other messages. */
void pmix_versions_compare(struct pmix_versions *versions, const struct handshake_rank *rank)
{
	const struct handshake_rank *first = &versions->first;

	if (!*first->version) {
		versions->first = *rank;
		return;
	}
	if (versions->mixed || is_alike(first->version, rank->version))
		return;
	versions->mixed = true;
	report_warning("rank %u has libpmix %s, rank %u has %s: the ranks of a job need the same MPI",
		       first->rank, first->version, rank->rank, rank->version);
}

#define FIRST_KNOWN 2
#define LAST_KNOWN 7

/* Else the version is not the reason: a process that is no libpmix has sent it. */
static bool is_other(const char *version)
{
	unsigned int major;

	return sscanf(version, "%3u.", &major) == 1 && (major < FIRST_KNOWN || major > LAST_KNOWN);
}

/* A rank tries more than once. */
void pmix_versions_unknown(struct pmix_versions *versions, const struct handshake_rank *rank)
{
	if (versions->unknown || !is_other(rank->version))
		return;
	versions->unknown = true;
	report_error("rank %u has libpmix %s, whose messages pvasrun does not know (%d.0 to %d.0 are known)",
		     rank->rank, rank->version, FIRST_KNOWN, LAST_KNOWN);
}
