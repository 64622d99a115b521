// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring buffer alone, with writers and a reader at once, in memory full of garbage:
 * every record that is read is whole and in order.
 *
 *	records single	one writer, as of a fast box
 *	records many	four writers, as of the queue
 *	records kill	a writer that ends at any instruction leaves no broken record
 */
#include "../ring.c"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define RECORDS 60000
#define MAX_WRITERS 4
#define MEMORY 16384
#define VICTIM_RECORDS 6

static struct mca_btl_pvas_ring *ring;
static int single;

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Each size of a small ring's records, most of them short */
static uint32_t length(uint32_t *seed)
{
	uint32_t most = mca_btl_pvas_ring_max_record(ring) - 8, r = next_random(seed);

	return r % 4 ? r % 64 : r / 4 % (most + 1);
}

/* A record's bytes tell its writer, number and place, and are never 0. */
static unsigned char byte(int writer, uint32_t nr, uint32_t i)
{
	return (writer * 89 + nr * 7 + i * 3) | 1;
}

static union mca_btl_pvas_record_hdr *reserve_record(uint32_t len)
{
	return single ? mca_btl_pvas_ring_reserve_single(ring, len) :
			mca_btl_pvas_ring_reserve(ring, len);
}

static bool write_record(int writer, uint32_t nr, uint32_t len)
{
	union mca_btl_pvas_record_hdr *head = reserve_record(len);
	union mca_btl_pvas_record_hdr value = {
		.len = len, .from = writer, .type = MCA_BTL_PVAS_RECORD_DATA, .tag = nr,
	};
	unsigned char *body;
	uint32_t i;

	if (!head)
		return false;
	body = mca_btl_pvas_record_body(head);
	for (i = 0; i < len; i++)
		body[i] = byte(writer, nr, i);
	if (single)
		mca_btl_pvas_ring_commit_single(ring, head, value);
	else
		mca_btl_pvas_ring_commit(head, value);
	return true;
}

static void *writer_main(void *arg)
{
	int writer = (int)(intptr_t)arg;
	uint32_t seed = writer + 1, nr, len;

	for (nr = 0; nr < RECORDS; nr++) {
		len = length(&seed);
		while (!write_record(writer, nr, len))
			sched_yield();
	}
	return NULL;
}

/* 0, or 1 and a line if the record is not the next of its writer */
static int check_record(union mca_btl_pvas_record_hdr *head, uint32_t *seeds, uint32_t *nrs)
{
	const unsigned char *body = mca_btl_pvas_record_body(head);
	uint32_t i, len, nr;

	if (head->type != MCA_BTL_PVAS_RECORD_DATA || head->from >= MAX_WRITERS) {
		printf("garbage as a header: %llx\n", (unsigned long long)head->word);
		return 1;
	}
	len = length(&seeds[head->from]);
	nr = nrs[head->from]++;
	if (head->len != len || head->tag != (uint8_t)nr) {
		printf("writer %u: record %u of %u bytes instead of %u of %u\n", head->from,
		       head->tag, head->len, nr, len);
		return 1;
	}
	for (i = 0; i < len; i++)
		if (body[i] != byte(head->from, nr, i)) {
			printf("writer %u: record %u: byte %u\n", head->from, nr, i);
			return 1;
		}
	return 0;
}

/* Reads up to a random number of records at a time, as the progress function does. */
static int read_all(int writers)
{
	uint32_t seeds[MAX_WRITERS] = { 1, 2, 3, 4 }, nrs[MAX_WRITERS] = { 0 }, seed = 99;
	union mca_btl_pvas_record_hdr *head = NULL;
	uint32_t left = writers * RECORDS;
	uint64_t pos;
	int batch;

	while (left) {
		pos = ring->head;
		for (batch = next_random(&seed) % 16 + 1; batch > 0 && left; batch--) {
			head = mca_btl_pvas_ring_peek(ring, &pos);
			if (!head)
				break;
			if (check_record(head, seeds, nrs))
				return 1;
			pos = mca_btl_pvas_ring_next(ring, pos, head);
			left--;
		}
		mca_btl_pvas_ring_release(ring, pos);
		if (!head)
			sched_yield();
	}
	return mca_btl_pvas_ring_peek(ring, &pos) != NULL;
}

/* Memory that was used before */
static void make_ring(size_t bytes)
{
	static _Alignas(64) struct mca_btl_pvas_ring *memory;

	if (!memory)
		memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			      -1, 0);
	memset(memory, 0xff, MEMORY);
	ring = memory;
	mca_btl_pvas_ring_init(ring, (char *)(memory + 1), bytes);
}

static int stress(int writers, size_t bytes)
{
	pthread_t threads[MAX_WRITERS];
	int i, bad;

	make_ring(bytes);
	for (i = 0; i < writers; i++)
		pthread_create(&threads[i], NULL, writer_main, (void *)(intptr_t)i);
	bad = read_all(writers);
	for (i = 0; i < writers && !bad; i++)
		pthread_join(threads[i], NULL);
	if (bad)
		printf("ring of %zu bytes, %d writers: failed\n", bytes, writers);
	return bad;
}

/* ---- kill ---- */

/* Stopped at first, then at each instruction */
static void victim_main(void)
{
	uint32_t nr, seed = 1;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (nr = 0; nr < VICTIM_RECORDS; nr++)
		write_record(0, nr, length(&seed));
	_exit(0);
}

/* All records that are there are whole. -1: one is not */
static int count_whole(void)
{
	uint32_t seeds[MAX_WRITERS] = { 1 }, nrs[MAX_WRITERS] = { 0 };
	union mca_btl_pvas_record_hdr *head;
	uint64_t pos = ring->head;
	int count = 0;

	while ((head = mca_btl_pvas_ring_peek(ring, &pos))) {
		if (check_record(head, seeds, nrs))
			return -1;
		pos = mca_btl_pvas_ring_next(ring, pos, head);
		count++;
	}
	return count;
}

/* The memory is as if the victim had been killed after the instruction. */
static int look_at_each_step(void)
{
	int status, steps, count, before = 0;
	pid_t pid;

	make_ring(1024);
	pid = fork();
	if (!pid)
		victim_main();
	waitpid(pid, &status, 0);
	for (steps = 0; !WIFEXITED(status); steps++) {
		count = count_whole();
		if (count < before) {
			printf("%d records after %d steps, %d before\n", count, steps, before);
			kill(pid, SIGKILL);
			return 1;
		}
		before = count;
		ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
		waitpid(pid, &status, 0);
	}
	printf("%d records, %d steps\n", before, steps);
	return before != VICTIM_RECORDS;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	alarm(100);
	single = strcmp(how, "many");
	if (!strcmp(how, "kill")) {
		single = 0;
		if (look_at_each_step())
			return 1;
		single = 1;
		return look_at_each_step();
	}
	return stress(single ? 1 : MAX_WRITERS, 256) || stress(single ? 1 : MAX_WRITERS, 832) ||
	       stress(single ? 1 : MAX_WRITERS, 7936);
}
