// SPDX-License-Identifier: GPL-2.0
/* Texts by name, in a tree of libc's. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "pmi1.h"

struct pair {
	char *value;
	char key[];
};

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static struct pair *make(const char *key, const char *value)
{
	struct pair *pair = malloc(sizeof(*pair) + strlen(key) + 1);

	if (!pair)
		return NULL;
	strcpy(pair->key, key);
	pair->value = value ? strdup(value) : NULL;
	if (value && !pair->value) {
		free(pair);
		return NULL;
	}
	return pair;
}

static void drop(void *pair)
{
	free(((struct pair *)pair)->value);
	free(pair);
}

static struct pair **find(void *const *store, const char *key)
{
	struct pair *like = make(key, NULL);
	struct pair **found = like ? tfind(like, store, compare) : NULL;

	free(like);
	return found;
}

bool pmi1_store(void **store, const char *key, const char *value)
{
	struct pair *pair = make(key, value);
	struct pair **at = pair ? tsearch(pair, store, compare) : NULL;

	if (!at) {
		if (pair)
			drop(pair);
		return false;
	}
	if (*at != pair) {	/* it was there: the value is replaced */
		free((*at)->value);
		(*at)->value = pair->value;
		free(pair);
	}
	return true;
}

const char *pmi1_find(void *const *store, const char *key)
{
	struct pair **found = find(store, key);

	return found ? (*found)->value : NULL;
}

bool pmi1_delete(void **store, const char *key)
{
	struct pair **found = find(store, key), *pair;

	if (!found)
		return false;
	pair = *found;
	tdelete(pair, store, compare);
	drop(pair);
	return true;
}

void pmi1_delete_all(void **store)
{
	tdestroy(*store, drop);
	*store = NULL;
}
