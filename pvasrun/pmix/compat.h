/* SPDX-License-Identifier: GPL-2.0-only */
/* The only file of the plugin that depends on libpmix's version: functions since 4.2. */
#ifndef PVASRUN_PMIX_COMPAT_H
#define PVASRUN_PMIX_COMPAT_H

#include <pmix_server.h>
#include <pmix_version.h>

#if PMIX_NUMERIC_VERSION < 0x00040200
#define PMIx_Info_load(info, key, value, type) PMIX_INFO_LOAD(info, key, value, type)
#define PMIx_Value_xfer(to, from) pmix_value_xfer(to, from)
#endif

#endif /* PVASRUN_PMIX_COMPAT_H */
