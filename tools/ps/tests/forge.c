// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that looks like a task, or the launcher, of another's space: reads
 * a line "ID PID..." from standard input, and has from then on a header in its memory with
 * that id and tasks of these pids, where a space of the user backend has it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/pvas.h>

#include "../../../libpvas/header.h"

#define BASE	(256UL << 20)
#define LEN	(4UL << 20)

int main(void)
{
	struct pvas_header *h;
	struct pvas_part *parts;
	char line[1024], *at = line;

	h = mmap((void *)BASE, LEN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (h == MAP_FAILED || !fgets(line, sizeof(line), stdin))
		return 1;
	h->id = strtoul(at, &at, 10);
	h->version = PVAS_HEADER_VERSION;
	h->shift = PVAS_SHIFT_MIN;
	h->table = BASE + PVAS_HEADER_TABLE;
	h->first = 1;
	parts = (struct pvas_part *)h->table;
	while (h->last < 64 && *at == ' ') {
		h->last++;
		parts[h->last].state = PVAS_PART_RUNNING;
		parts[h->last].pid = strtoul(at, &at, 10);
	}
	h->entries = h->last + 1;
	h->magic = PVAS_HEADER_MAGIC;
	printf("forged\n");
	fflush(stdout);
	pause();
	return 0;
}
