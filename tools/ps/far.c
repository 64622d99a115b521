// SPDX-License-Identifier: GPL-2.0-only
/* Far memory of a space, as its launcher tells each second: tasks could have changed it. */
#include "ps.h"

const char *ps_far_text(const struct ps_space *space, char buf[static 160])
{
	const struct pvas_far_seen *f = &space->far;
	char all[24], here[24], ram[24], in[24], out[24], hits[24] = "-";

	if (f->hits <= 1000)
		snprintf(hits, sizeof(hits), "%lu%%", f->hits / 10);
	snprintf(buf, 160, "far %s, of it local %s (budget %s), faults %lu/s, hits %s, in %s/s, out %s/s",
		 ps_size_text(f->allocated >> 10, all), ps_size_text(f->resident >> 10, here),
		 ps_size_text(f->ram >> 10, ram), f->faults_s, hits,
		 ps_size_text(f->in_s >> 10, in), ps_size_text(f->out_s >> 10, out));
	return buf;
}
