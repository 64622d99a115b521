/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The only file that depends on Open MPI's version: the names that changed after 4.1. */
#ifndef BTL_PVAS_OPEN_MPI_H
#define BTL_PVAS_OPEN_MPI_H

#include "opal_config.h"

#if OPAL_MAJOR_VERSION >= 5

#include "opal/mca/pmix/pmix-internal.h"
#define MCA_BTL_PVAS_MODEX_LOCAL PMIX_LOCAL
/* A peer that has published nothing is asked no second time: PMIx_Get would wait for it. */
#define MCA_BTL_PVAS_MODEX_RECV OPAL_MODEX_RECV_IMMEDIATE

#else

#include "opal/mca/pmix/pmix.h"
#define MCA_BTL_PVAS_MODEX_LOCAL OPAL_PMIX_LOCAL
#define MCA_BTL_PVAS_MODEX_RECV OPAL_MODEX_RECV

#endif

#endif /* BTL_PVAS_OPEN_MPI_H */
