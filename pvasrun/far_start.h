/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory servers that pvasrun starts itself, for this job alone (--far-start). */
#ifndef PVASRUN_FAR_START_H
#define PVASRUN_FAR_START_H

#include <stdint.h>

#include "event.h"
#include "far_hosts.h"
#include "options.h"

/*
 * Start a server on each host, with @ram bytes, and wait until all listen. @line, with the
 * job's key, is what each of them reads. 0, or the exit status after a line on standard error.
 */
int far_start(const struct options *opt, uint64_t ram, const char *line);

/* Their names as stores: "10.0.0.7:7700,10.0.0.8:7700". 0 or -ENAMETOOLONG */
int far_start_stores(char *text, size_t size);

/* From now on read what they print. 0 or -errno */
int far_start_watch(struct loop *loop);

/* End them, and wait for that. */
void far_start_end(void);

#endif
