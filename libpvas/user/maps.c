// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the mappings of a process, from /proc/PID/maps.
 */
#include <inttypes.h>
#include <string.h>

#include "user.h"

int user_maps_next(FILE *maps, struct user_mapping *m)
{
	char line[512], prot[8];
	int found = 0;

	while (!found && fgets(line, sizeof(line), maps)) {
		found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &m->start, &m->end, prot) == 3;
		m->writable = found && prot[1] == 'w';
		/* The rest of a long file name could look like a mapping. */
		while (!strchr(line, '\n') && fgets(line, sizeof(line), maps))
			;
	}
	return found;
}
