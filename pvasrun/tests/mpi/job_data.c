// SPDX-License-Identifier: GPL-2.0-only
/*
 * The description of the job that libpmix has in each rank: job_data RANKS PER_NODE [leave]
 *
 * Checks it, and prints "RANK BYTES", the heap that PMIx_Init took. With "leave", rank 0 ends
 * first, and the others ask again.
 */
#include <malloc.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 33)
#define mallinfo2 mallinfo
#endif

static pmix_proc_t me;
static unsigned int ranks, per_node;

static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void fail(pmix_rank_t rank, const char *key, const char *why)
{
	printf("rank %u: %s of %u: %s\n", me.rank, key, rank, why);
	exit(1);
}

static uint32_t get(pmix_rank_t rank, const char *key)
{
	pmix_value_t *value = NULL;
	pmix_proc_t proc;
	pmix_status_t rc;
	uint32_t number;

	PMIX_LOAD_PROCID(&proc, me.nspace, rank);
	rc = PMIx_Get(&proc, key, NULL, 0, &value);
	if (rc != PMIX_SUCCESS)
		fail(rank, key, PMIx_Error_string(rc));
	PMIX_VALUE_GET_NUMBER(rc, value, number, uint32_t);
	if (rc != PMIX_SUCCESS)
		fail(rank, key, "no number");
	PMIX_VALUE_RELEASE(value);
	return number;
}

static void is(pmix_rank_t rank, const char *key, uint32_t wanted)
{
	if (get(rank, key) != wanted)
		fail(rank, key, "another value");
}

static void check_job(void)
{
	is(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, ranks);
	is(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE, ranks);
	is(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, per_node);
}

static void check_rank(pmix_rank_t rank)
{
	is(rank, PMIX_LOCAL_RANK, rank % per_node);
	is(rank, PMIX_NODE_RANK, rank % per_node);
}

/* Values that ranks publish are not part of it. */
static void check_modex(void)
{
	pmix_value_t value;

	value.type = PMIX_UINT32;
	value.data.uint32 = 7 * me.rank;
	PMIx_Put(PMIX_GLOBAL, "seven", &value);
	PMIx_Commit();
	PMIx_Fence(NULL, 0, NULL, 0);
	is((me.rank + 1) % per_node, "seven", 7 * ((me.rank + 1) % per_node));
}

int main(int argc, char **argv)
{
	size_t before = in_use(), after;
	unsigned int rank;

	if (argc < 3 || PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
		return 2;
	after = in_use();
	ranks = atoi(argv[1]);
	per_node = atoi(argv[2]);
	check_job();
	for (rank = 0; rank < ranks; rank += 1 + rank / 8)
		check_rank(rank);
	check_rank(ranks - 1);
	check_modex();
	printf("%u %zu\n", me.rank, after - before);
	if (argc > 3 && me.rank) {
		sleep(1);
		check_job();
		check_rank(me.rank);
	}
	PMIx_Finalize(NULL, 0);
	return 0;
}
