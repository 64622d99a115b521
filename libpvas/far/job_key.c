// SPDX-License-Identifier: LGPL-2.1-or-later
/* The job's key on memory servers, if the launcher starts them: they must all have the same. */
#include <errno.h>
#include <string.h>

#include "job.h"
#include "job_key.h"
#include "key.h"

_Static_assert(PVAS_FAR_KEY_TEXT == FAR_KEY_TEXT, "a key's line");

static uint8_t key[FAR_KEY_BYTES];
static int chosen;

const uint8_t *far_key_of_job(void)
{
	return chosen ? key : NULL;
}

int far_job_key(const char *file, char *line)
{
	char why[160];
	int err;

	if (!line) {
		far_wipe(key, sizeof(key));
		chosen = 0;
		return 0;
	}
	if (file) {
		err = far_key_read(file, key, why, sizeof(why));
		if (err)
			return far_fail(err, "key %s: %s", file, why);
	} else {
		err = far_random(key, sizeof(key));
		if (err)
			return far_fail(err, "getrandom: %s", strerror(-err));
	}
	far_key_text(key, line);
	chosen = 1;
	return 0;
}
