/* SPDX-License-Identifier: GPL-2.0-only */
/* The only file of the plugin that depends on libpmix's version: what differs from 4.0 to 7.0. */
#ifndef PVASRUN_PMIX_COMPAT_H
#define PVASRUN_PMIX_COMPAT_H

#include <pmix_server.h>
#include <pmix_version.h>

#if PMIX_NUMERIC_VERSION < 0x00040200
static inline void PMIx_Info_load(pmix_info_t *info, const char *key, const void *value,
				  pmix_data_type_t type)
{
	PMIX_INFO_LOAD(info, key, value, type);
}
#define PMIx_Value_xfer(to, from) pmix_value_xfer(to, from)
#endif

/* Since 4.2: the file and the topic of a message, and whether one of each is enough */
#ifndef PMIX_LOG_AGG
#define PMIX_LOG_KEY "pmix.log.key"
#define PMIX_LOG_VAL "pmix.log.val"
#define PMIX_LOG_AGG "pmix.log.agg"
#endif

/* Else the info has the array itself, and frees it. */
#define PMIX_LOAD_COPIES_ARRAYS (PMIX_NUMERIC_VERSION >= 0x00040200)

/* Does it read a map of processes by itself, written without it? */
#define PMIX_READS_RANGES (PMIX_NUMERIC_VERSION < 0x00060000)

#endif /* PVASRUN_PMIX_COMPAT_H */
