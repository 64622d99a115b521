// SPDX-License-Identifier: GPL-2.0-only
/* Keys and values in a tsearch(3) tree, with a limit of their size. */
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

static size_t size_of(const struct pair *pair)
{
	return sizeof(*pair) + strlen(pair->key) + (pair->value ? strlen(pair->value) : 0) + 2;
}

static void drop(void *pair)
{
	free(((struct pair *)pair)->value);
	free(pair);
}

static struct pair **find(const struct pmi1_store *store, const char *key)
{
	struct pair *like = make(key, NULL);
	struct pair **found = like ? tfind(like, &store->tree, compare) : NULL;

	free(like);
	return found;
}

bool pmi1_delete(struct pmi1_store *store, const char *key)
{
	struct pair **found = find(store, key), *pair;

	if (!found)
		return false;
	pair = *found;
	tdelete(pair, &store->tree, compare);
	store->used -= size_of(pair);
	drop(pair);
	return true;
}

/* Replaces the old value, if there is room for both. */
bool pmi1_store(struct pmi1_store *store, const char *key, const char *value)
{
	struct pair *pair = make(key, value);
	size_t size = pair ? size_of(pair) : 0;

	if (!pair)
		return false;
	if (size > store->room - store->used) {
		drop(pair);
		return false;
	}
	pmi1_delete(store, key);
	if (!tsearch(pair, &store->tree, compare)) {
		drop(pair);
		return false;
	}
	store->used += size;
	return true;
}

const char *pmi1_find(const struct pmi1_store *store, const char *key)
{
	struct pair **found = find(store, key);

	return found ? (*found)->value : NULL;
}

void pmi1_delete_all(struct pmi1_store *store)
{
	tdestroy(store->tree, drop);
	store->tree = NULL;
	store->used = 0;
}
