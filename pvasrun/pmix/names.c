// SPDX-License-Identifier: GPL-2.0-only
/*
 * PMIx_Publish and PMIx_Lookup. All functions run in libpmix's one thread, those of
 * timers included, so there is no lock. A lookup with PMIX_WAIT ends when enough names
 * are published, with its timeout, or with the job.
 */
#include "internal.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct name {
	struct name *next;
	pmix_pdata_t data;	/* who published it, the key and the value */
};

struct lookup {
	struct lookup *next;
	uintptr_t id;
	char **keys;
	size_t wanted;		/* how many of them are enough */
	pmix_lookup_cbfunc_t done;
	void *data;
};

static struct name *names;
static struct lookup *lookups;

/* For all ranks together; a name and port of MPI take less than 1 KiB. */
#define NAMES_MAX	4096
#define VALUE_MAX	(64 << 10)
#define LOOKUPS_MAX	4096

static unsigned int nr_names, nr_lookups;

static struct name **find(const char *key)
{
	struct name **n = &names;

	while (*n && strncmp((*n)->data.key, key, PMIX_MAX_KEYLEN))
		n = &(*n)->next;
	return n;
}

static void drop(struct name **at)
{
	struct name *n = *at;

	*at = n->next;
	nr_names--;
	PMIX_PDATA_DESTRUCT(&n->data);
	free(n);
}

/* An option of the call, not data to publish */
static bool is_directive(const char *key)
{
	static const char *const keys[] = {
		PMIX_RANGE, PMIX_PERSISTENCE, PMIX_USERID, PMIX_GRPID, PMIX_WAIT, PMIX_TIMEOUT,
		PMIX_REQUESTOR_IS_TOOL, PMIX_REQUESTOR_IS_CLIENT,
	};
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

/* Is @key in @info? *value is its number, 0 if it has none. */
static bool find_directive(const pmix_info_t info[], size_t nr, const char *key, int *value)
{
	pmix_status_t rc;
	size_t i;

	*value = 0;
	for (i = 0; i < nr; i++) {
		if (strcmp(info[i].key, key))
			continue;
		PMIX_VALUE_GET_NUMBER(rc, &info[i].value, *value, int);
		if (rc != PMIX_SUCCESS)
			*value = 0;
		return true;
	}
	return false;
}

static size_t count(char **keys, bool published_only)
{
	size_t nr = 0;

	for (; *keys; keys++)
		nr += !published_only || *find(*keys);
	return nr;
}

/* Answer with those of @keys that are published; @wanted are enough for success. */
static void reply(char **keys, size_t wanted, pmix_lookup_cbfunc_t done, void *data)
{
	size_t nr = count(keys, true), i = 0;
	pmix_pdata_t *found = NULL;

	if (!nr) {
		done(PMIX_ERR_NOT_FOUND, NULL, 0, data);
		return;
	}
	PMIX_PDATA_CREATE(found, nr);
	if (!found) {
		done(PMIX_ERR_NOMEM, NULL, 0, data);
		return;
	}
	for (; *keys; keys++) {
		struct name *n = *find(*keys);

		if (n) {
			PMIX_PDATA_XFER(&found[i], &n->data);
			i++;
		}
	}
	done(nr >= wanted ? PMIX_SUCCESS : PMIX_ERR_PARTIAL_SUCCESS, found, nr, data);
	PMIX_PDATA_FREE(found, nr);
}

static void free_keys(char **keys)
{
	char **k;

	for (k = keys; k && *k; k++)
		free(*k);
	free(keys);
}

static char **copy_keys(char **keys)
{
	size_t nr = count(keys, false), i;
	char **copy = calloc(nr + 1, sizeof(*copy));

	for (i = 0; copy && i < nr; i++) {
		copy[i] = strdup(keys[i]);
		if (!copy[i]) {
			free_keys(copy);
			return NULL;
		}
	}
	return copy;
}

static void end_lookup(struct lookup **at)
{
	struct lookup *l = *at;

	*at = l->next;
	nr_lookups--;
	free_keys(l->keys);
	free(l);
}

/* After a publication: answer the lookups that have waited for it. */
static void complete_lookups(void)
{
	struct lookup **at = &lookups, *l;

	while ((l = *at)) {
		if (count(l->keys, true) < l->wanted) {
			at = &l->next;
			continue;
		}
		reply(l->keys, l->wanted, l->done, l->data);
		end_lookup(at);
	}
}

/* After its timeout. If it has been answered, no lookup has this id. */
static void lookup_timeout(uintptr_t id)
{
	struct lookup **at = &lookups, *l;

	while ((l = *at) && l->id != id)
		at = &l->next;
	if (!l)
		return;
	l->done(PMIX_ERR_TIMEOUT, NULL, 0, l->data);
	end_lookup(at);
}

/* Arrays are refused: MPI publishes numbers, strings and byte objects. */
static size_t size_of(const pmix_value_t *value)
{
	if (value->type == PMIX_STRING)
		return value->data.string ? strlen(value->data.string) : 0;
	if (value->type == PMIX_BYTE_OBJECT)
		return value->data.bo.size;
	return value->type <= PMIX_STATUS ? sizeof(*value) : SIZE_MAX;
}

static pmix_status_t publish_one(const pmix_proc_t *proc, const pmix_info_t *info)
{
	struct name *n;

	if (*find(info->key))
		return PMIX_ERR_DUPLICATE_KEY;
	if (nr_names >= NAMES_MAX || size_of(&info->value) > VALUE_MAX)
		return PMIX_ERR_OUT_OF_RESOURCE;
	n = calloc(1, sizeof(*n));
	if (!n)
		return PMIX_ERR_NOMEM;
	nr_names++;
	n->data.proc = *proc;
	PMIX_LOAD_KEY(n->data.key, info->key);
	PMIx_Value_xfer(&n->data.value, &info->value);
	n->next = names;
	names = n;
	return PMIX_SUCCESS;
}

pmix_status_t pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t nr,
			   pmix_op_cbfunc_t done, void *data)
{
	pmix_status_t rc = PMIX_SUCCESS;
	size_t i;

	for (i = 0; i < nr && rc == PMIX_SUCCESS; i++)
		if (!is_directive(info[i].key))
			rc = publish_one(proc, &info[i]);
	done(rc, data);
	complete_lookups();
	return PMIX_SUCCESS;
}

static pmix_status_t wait_for(char **keys, size_t wanted, int seconds, pmix_lookup_cbfunc_t done,
			      void *data)
{
	static uintptr_t last_id;
	struct lookup *l = nr_lookups < LOOKUPS_MAX ? calloc(1, sizeof(*l)) : NULL;

	if (l)
		l->keys = copy_keys(keys);
	if (!l || !l->keys ||
	    (seconds > 0 && pmix_defer_for(seconds, lookup_timeout, last_id + 1))) {
		if (l)
			free_keys(l->keys);
		free(l);
		return PMIX_ERR_NOMEM;
	}
	l->id = ++last_id;
	l->wanted = wanted;
	l->done = done;
	l->data = data;
	l->next = lookups;
	lookups = l;
	nr_lookups++;
	return PMIX_SUCCESS;
}

pmix_status_t pmix_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
			  size_t nr, pmix_lookup_cbfunc_t done, void *data)
{
	int enough, seconds;
	bool may_wait = find_directive(info, nr, PMIX_WAIT, &enough);
	size_t wanted;

	(void)proc;
	/* a rank may send an empty list, which libpmix passes on as NULL */
	if (!keys || !*keys)
		return PMIX_ERR_BAD_PARAM;
	wanted = count(keys, false);
	find_directive(info, nr, PMIX_TIMEOUT, &seconds);
	if (enough > 0 && (size_t)enough < wanted)
		wanted = enough;
	if (may_wait && count(keys, true) < wanted)
		return wait_for(keys, wanted, seconds, done, data);
	reply(keys, wanted, done, data);
	return PMIX_SUCCESS;
}

/* Only the rank that has published a name can remove it; without keys, all of its names. */
pmix_status_t pmix_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
			     size_t nr, pmix_op_cbfunc_t done, void *data)
{
	struct name **at = &names;

	(void)info;
	(void)nr;
	while (*at) {
		bool mine = (*at)->data.proc.rank == proc->rank, wanted = !keys;
		char **k;

		for (k = keys; k && *k; k++)
			wanted |= !strncmp(*k, (*at)->data.key, PMIX_MAX_KEYLEN);
		if (mine && wanted)
			drop(at);
		else
			at = &(*at)->next;
	}
	done(PMIX_SUCCESS, data);
	return PMIX_SUCCESS;
}
