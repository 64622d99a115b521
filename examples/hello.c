// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shortest program that uses the space: each task prints its index, and reads a
 * string on its neighbour's stack through a pointer.
 *
 *	pvasrun -n 4 hello
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pvas.h"

#define WAIT_MS 60000

/* The data that a task exports. It is on the stack: any memory can be read by peers. */
struct card {
	char text[64];
	int read;
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "hello: %s: %s\n", what, strerror(-err));
	return 1;
}

static int export_card(int rank, struct card *card)
{
	char name[PVAS_NAME_MAX + 1];

	snprintf(name, sizeof(name), "card.%d", rank);
	return pvas_name_export(name, card);
}

static int import_card(int rank, struct card **card)
{
	char name[PVAS_NAME_MAX + 1];
	void *p = NULL;
	int ret;

	snprintf(name, sizeof(name), "card.%d", rank);
	ret = pvas_name_import_wait(PVAS_ANY, name, WAIT_MS, &p);
	*card = p;
	return ret;
}

int main(void)
{
	const char *rank_text = getenv("PVAS_RANK"), *size_text = getenv("PVAS_SIZE");
	struct card mine = { .read = 0 }, *theirs;
	int rank, size, index, err;

	if (pvas_task_get_index() < 0 || !rank_text || !size_text) {
		fprintf(stderr, "hello: not a task (start it with: pvasrun -n 4 hello)\n");
		return 1;
	}
	rank = atoi(rank_text);
	size = atoi(size_text);
	snprintf(mine.text, sizeof(mine.text), "greetings from process %d", getpid());
	err = export_card(rank, &mine);
	if (err)
		return fail("cannot export the card", err);
	index = import_card((rank + 1) % size, &theirs);
	if (index < 0)
		return fail("cannot import the neighbour's card", index);
	printf("rank %d of %d, partition %d: at %p partition %d says \"%s\"\n", rank, size,
	       pvas_task_get_index(), (void *)theirs, index, theirs->text);
	__atomic_store_n(&theirs->read, 1, __ATOMIC_RELEASE);
	/* A task's stack must not go while another task reads it. */
	while (!__atomic_load_n(&mine.read, __ATOMIC_ACQUIRE))
		usleep(1000);
	return 0;
}
