// SPDX-License-Identifier: GPL-2.0-only
/* The store of PMI-1: keys, values, and its limit */
#include <stdio.h>
#include <string.h>

#include "../pmi1.h"
#include "unit.h"

void test_pmi1(void)
{
	struct pmi1_store store = { .room = 10000 };
	char key[32], value[1001];
	unsigned int i, nr = 0;

	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	/* replacing a value takes no more room */
	for (i = 0; i < 1000; i++)
		check(pmi1_store(&store, "key", value));
	check(store.used < 2 * sizeof(value));
	for (i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "key-%u", i);
		nr += pmi1_store(&store, key, value);
	}
	check(nr > 4 && nr < 10 && store.used <= store.room);
	check(pmi1_find(&store, "key-3") && !pmi1_find(&store, "key-999"));
	/* deleting frees room */
	check(pmi1_delete(&store, "key-3") && !pmi1_delete(&store, "key-3"));
	check(pmi1_store(&store, "again", value));
	check_text(pmi1_find(&store, "again"), value, "again");
	pmi1_delete_all(&store);
	check(!store.used && !pmi1_find(&store, "key"));
}
