/* SPDX-License-Identifier: GPL-2.0-only */
/* The versions of libpmix that a job's ranks have: a line if they differ, or are not known. */
#ifndef PVASRUN_PMIX_VERSIONS_H
#define PVASRUN_PMIX_VERSIONS_H

#include <stdbool.h>

#include "handshake.h"

/**
 * struct pmix_versions - what is known of them
 * @first:	the first rank whose handshake was right
 * @mixed:	reported: another one has another version
 * @unknown:	reported: one has a version that is not known
 */
struct pmix_versions {
	struct handshake_rank first;
	bool mixed, unknown;
};

/* Of a rank whose handshake was right, or in formats that are not known */
void pmix_versions_compare(struct pmix_versions *versions, const struct handshake_rank *rank);
void pmix_versions_unknown(struct pmix_versions *versions, const struct handshake_rank *rank);

#endif
