// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task whose children make the launcher's workers busy. It measures its own mapping
 * calls while the children sleep, while they make other system calls, and while they make
 * calls that the filter sends to workers, in turns. Run by flood.c.
 *
 *	flood_task CALL CHILDREN idle|busy FACTOR
 *
 * Fails if mapping takes more than FACTOR times as long during the flood as while the
 * children are idle or busy.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "task_check.h"

#define TURNS	9
#define TURN_NS	60000000
#define PAGE	4096UL

enum { IDLE, BUSY, FLOOD, PHASES };

static volatile int *phase;

/* ---- the children ---- */

static void call_readlink(void)
{
	char to[256];

	syscall(SYS_readlink, "/proc/self/exe", to, sizeof(to));
}

static void call_brk(void)
{
	static uintptr_t at;

	if (!at)
		at = (uintptr_t)syscall(SYS_brk, 0);
	syscall(SYS_brk, ++at);
}

static void call_sigaction(void)
{
	struct {
		uint64_t handler, flags, restorer, mask;
	} act = { 1000, 0x04000000, 1000, 0 };

	syscall(SYS_rt_sigaction, SIGUSR1, &act, NULL, 8);
}

static void call_setfsuid(void)
{
	syscall(SYS_setfsuid, -1);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "readlink", call_readlink }, { "brk", call_brk }, { "sigaction", call_sigaction },
	{ "setfsuid", call_setfsuid },
};

static void __attribute__((noreturn)) flood(void (*call)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (*phase == FLOOD)
			call();
		else if (*phase == BUSY)
			syscall(SYS_getppid);
		else
			usleep(5000);
	}
}

/* ---- the task ---- */

/* Nanoseconds that a mapping takes */
static double measure(void)
{
	int64_t begin = now_ns(), end;
	long n = 0;
	void *p;

	do {
		p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED && !munmap(p, PAGE));
		n++;
		end = now_ns();
	} while (end - begin < TURN_NS);
	return (double)(end - begin) / (double)n;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *t)
{
	qsort(t, TURNS, sizeof(*t), compare);
	return t[TURNS / 2];
}

static void make_children(void (*call)(void), int n)
{
	pid_t pid;

	while (n-- > 0) {
		pid = fork();
		if (!pid)
			flood(call);
		CHECK(pid > 0);
	}
}

static void measure_all(double ns[PHASES][TURNS])
{
	size_t i;
	int how;

	for (i = 0; i < TURNS; i++) {
		for (how = 0; how < PHASES; how++) {
			*phase = how;
			ns[how][i] = measure();
		}
	}
	*phase = IDLE;
}

int main(int argc, char **argv)
{
	double ns[PHASES][TURNS], idle, busy, flooded, control;
	size_t i;

	if (argc < 5)
		return 2;
	phase = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(argv[1], calls[i].name))
			make_children(calls[i].call, atoi(argv[2]));
	measure_all(ns);
	idle = median(ns[IDLE]);
	busy = median(ns[BUSY]);
	flooded = median(ns[FLOOD]);
	control = strcmp(argv[3], "busy") ? idle : busy;
	printf("%s by %s: %.0f ns; children idle %.0f ns, busy %.0f ns\n", argv[1], argv[2],
	       flooded, idle, busy);
	CHECK(flooded < control * atof(argv[4]));
	return failures != 0;
}
