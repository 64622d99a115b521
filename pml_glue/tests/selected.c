// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: selected [none]
 *
 * The component owns the world and self, and has sent something; or, with "none", at most self.
 */
#include "common.h"

int main(int argc, char **argv)
{
	struct counter owned, eager;
	int right, token = 42;

	begin(&argc, &argv);
	counters_begin();
	counter_find(&owned, "communicators");
	counter_find(&eager, "eager");
	right = (rank + 1) % size;
	MPI_Sendrecv_replace(&token, 1, MPI_INT, right, 0, (rank + size - 1) % size, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(token == 42, "the token is another one");
	if (argc > 1)
		check(counter_read(&owned) <= 1 && counter_read(&eager) <= 0,
		      "the component is used");
	else
		check(counter_read(&owned) == 2 && (size == 1 || counter_read(&eager) > 0),
		      "the component is not used");
	return finish();
}
