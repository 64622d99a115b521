// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program below a task makes a call from an address in a partition, with an argument
 * that lies behind thousands of mappings: that must not cost the launcher a look at all
 * of them. Run by flood.c.
 *
 *	far_task PAGE		in a task: becomes such a program
 *	far_task PAGE CODE	compares how many of its calls are served
 *
 * PAGE is where a fork child of the task has its copy of the partition's page.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "syscall_stub.h"
#include "task_check.h"

#define PAGE	4096UL
#define RW	(PROT_READ | PROT_WRITE)
#define FIRST	0x400000000UL	/* below all else */
#define MANY	20000UL
#define TURNS	3
#define TURN_NS	500000000

struct action {
	uint64_t handler, flags, restorer, mask;
};

static char *map_at(uint64_t at, uint64_t len, int prot)
{
	char *p = mmap((void *)at, len, prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == (char *)at)
		return p;
	perror("far_task: mmap");
	exit(1);
}

static struct action *make_action(uint64_t at)
{
	struct action *act = (struct action *)map_at(at, PAGE, RW);

	*act = (struct action){ PAGE, 0x04000000, PAGE, 0 };	/* SA_RESTORER */
	return act;
}

static void make_many(uint64_t at)
{
	char *p = map_at(at, MANY * PAGE, PROT_READ);

	for (uint64_t i = 0; i < MANY; i += 2)
		CHECK(!mprotect(p + i * PAGE, PAGE, PROT_NONE));
}

static long count_served(syscall_stub call, const struct action *act)
{
	int64_t end = now_ns() + TURN_NS;
	long n = 0;

	do {
		CHECK(!call(SYS_rt_sigaction, SIGUSR1, (long)act, 0, 8));
		n++;
	} while (now_ns() < end);
	return n;
}

static int compare(uint64_t page, uint64_t code)
{
	syscall_stub call = make_syscall_stub(code);
	const struct action *near = make_action(FIRST);
	const struct action *far = make_action(FIRST + (MANY + 2) * PAGE);
	long n = 0, m = 0;

	if (!call)
		return 1;
	make_many(FIRST + PAGE);
	map_at(page & ~(PAGE - 1), PAGE, RW);
	for (int i = 0; i < TURNS; i++) {
		n += count_served(call, near);
		m += count_served(call, far);
	}
	printf("served: %ld with the near argument, %ld with the far one\n", n, m);
	CHECK(m > n / 10);
	return failures != 0;
}

int main(int argc, char **argv)
{
	char code[24], *again[] = { argv[0], argv[1], code, NULL };

	if (argc == 3)
		return compare(strtoul(argv[1], NULL, 0), strtoul(argv[2], NULL, 0));
	/* Nothing is mapped there in the program. */
	snprintf(code, sizeof(code), "%#lx", (unsigned long)&failures & ~((1UL << 32) - 1));
	setenv("PVAS_EXEC", "leave", 1);
	execv(argv[0], again);
	return 2;
}
