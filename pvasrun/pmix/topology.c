// SPDX-License-Identifier: GPL-2.0-only
/* The machine, for the ranks' hwloc */
#include "internal.h"

#include <hwloc.h>
#include <hwloc/export.h>
#include <stdlib.h>
#include <string.h>

#include "locality.h"

static char *describe_machine(hwloc_topology_t topology)
{
	char *xml, *copy;
	int len;

	if (hwloc_topology_export_xmlbuffer(topology, &xml, &len, 0))
		return NULL;
	copy = strdup(xml);
	hwloc_free_xmlbuffer(topology, xml);
	return copy;
}

/* Only of bound tasks, which do not move */
static char **describe_localities(const struct pmix_job *job, hwloc_topology_t topology)
{
	char **localities = calloc(job->tasks, sizeof(*localities));
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	unsigned int rank;

	for (rank = 0; localities && set && job->cpus && rank < job->tasks; rank++)
		if (job->cpus[rank] && !hwloc_bitmap_list_sscanf(set, job->cpus[rank]))
			localities[rank] = locality_of(topology, set);
	hwloc_bitmap_free(set);
	return localities;
}

void pmix_topology_read(struct pmix_topology *t, const struct pmix_job *job)
{
	hwloc_topology_t topology;

	*t = (struct pmix_topology){ 0 };
	if (hwloc_topology_init(&topology))
		return;
	if (!hwloc_topology_load(topology)) {
		t->xml = describe_machine(topology);
		t->localities = describe_localities(job, topology);
	}
	hwloc_topology_destroy(topology);
}

void pmix_topology_free(struct pmix_topology *t, const struct pmix_job *job)
{
	unsigned int rank;

	for (rank = 0; t->localities && rank < job->tasks; rank++)
		free(t->localities[rank]);
	free((void *)t->localities);
	free(t->xml);
}
