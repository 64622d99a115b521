// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz - random ioctls on /dev/pvas
 *
 *	fuzz [-t seconds | -n rounds] [-s seed] [-j workers] [-v]
 *
 * Each round is a process with its own seed (-v prints it; `fuzz -n 1 -j 1 -s`
 * that seed does the same calls again). It opens the device, perhaps makes a good
 * space, and then does some dozens of calls: every command, known or not, with
 * structs that are nearly right, random or at an address that can't be read;
 * from threads and forked children that may exec while armed; with closes,
 * duplicates and maps of the file in between. In the end nothing may be left.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/pvas.h>
#include <pvas.h>

#include "left.h"

#define PAGE	4096

static const unsigned long commands[] = {
	PVAS_IOC_INFO, PVAS_IOC_CREATE, PVAS_IOC_SPAWN, PVAS_IOC_DESTROY, PVAS_IOC_QUERY,
	PVAS_IOC_ATTACH, PVAS_IOC_REFS,
};

static const uint32_t sizes[] = {
	sizeof(struct pvas_info), sizeof(struct pvas_create), sizeof(struct pvas_spawn),
	sizeof(struct pvas_destroy), sizeof(struct pvas_query), sizeof(struct pvas_attach),
	sizeof(struct pvas_refs),
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* The state of one round. Its threads share it without locks: races are wanted. */
struct round {
	unsigned long long state;
	int fds[4];
	uint32_t id;		/* of a good space, or 0 */
	char *area;		/* three pages: writable, read-only, none */
};

static uint64_t interesting(struct round *r)
{
	switch (rnd(&r->state, 10)) {
	case 0: return 0;
	case 1: return ~0ULL;
	case 2: return 1ULL << rnd(&r->state, 64);
	case 3: return (uintptr_t)r->area + rnd(&r->state, 3 * PAGE);
	case 4: return 0xffffffff81000000ULL;
	case 5: return 0x7ffffffff000ULL;
	case 6: return r->id;
	case 7: return 0x10000000ULL + rnd(&r->state, 1 << 24) * 16ULL;
	default: return rnd(&r->state, 300);
	}
}

/* A struct for @which: of its size, zero, then a few fields changed. */
static void fill(struct round *r, unsigned char *s, unsigned int which)
{
	unsigned int i, n = rnd(&r->state, 5);
	uint64_t v;

	memset(s, 0, 256);
	*(uint32_t *)s = rnd(&r->state, 8) ? sizes[which] : (uint32_t)interesting(r);
	if (r->id && rnd(&r->state, 2))
		((uint32_t *)s)[commands[which] == PVAS_IOC_SPAWN ? 2 : 3] = r->id;
	for (i = 0; i < n; i++) {
		v = interesting(r);
		if (rnd(&r->state, 2))
			memcpy(s + 4 * (1 + rnd(&r->state, 30)), &v, 4);
		else
			memcpy(s + 8 * (1 + rnd(&r->state, 15)), &v, 8);
	}
}

static void *argument(struct round *r, unsigned char *s)
{
	switch (rnd(&r->state, 12)) {
	case 0: return NULL;
	case 1: return r->area + PAGE;			/* can't be written */
	case 2: return r->area + 2 * PAGE - 8;		/* ends in nothing */
	case 3: return r->area + 2 * PAGE;
	case 4: return (void *)0xffff888000000000UL;
	case 5: return s + 1;				/* not aligned */
	default: return s;
	}
}

static void one_ioctl(struct round *r)
{
	unsigned char s[512];
	unsigned int which = rnd(&r->state, N_COMMANDS);
	unsigned long command = commands[which];

	fill(r, s, which);
	if (!rnd(&r->state, 10))
		command ^= 1UL << rnd(&r->state, 32);
	ioctl(r->fds[rnd(&r->state, 4)], command, argument(r, s));
}

/* An armed child that execs something, or dies armed. */
static void one_child(struct round *r)
{
	static const char *const programs[] = { "/bin/true", "/bin/sh", "/nonexistent", "/etc/passwd" };
	struct pvas_spawn spawn = { .size = sizeof(spawn), .flags = PVAS_SPAWN_ANY, .id = r->id };
	const char *program = programs[rnd(&r->state, 4)];
	int die = !rnd(&r->state, 4), again = !rnd(&r->state, 4), fd = r->fds[rnd(&r->state, 4)];
	pid_t pid = fork();

	if (pid)
		return;
	signal(SIGALRM, SIG_DFL);
	alarm(20);
	ioctl(fd, PVAS_IOC_SPAWN, &spawn);
	if (again)
		ioctl(fd, PVAS_IOC_SPAWN, &spawn);
	if (!die)
		execl(program, program, "-c", "exit 0", NULL);
	_exit(0);
}

static void one_step(struct round *r)
{
	int *fd = &r->fds[rnd(&r->state, 4)];
	char c;

	switch (rnd(&r->state, 40)) {
	case 0:
		close(*fd);
		*fd = open("/dev/pvas", O_RDWR | O_CLOEXEC);
		break;
	case 1:
		close(*fd);
		*fd = dup(r->fds[rnd(&r->state, 4)]);
		break;
	case 2:
		munmap(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, *fd, 0), PAGE);
		break;
	case 3:
		if (read(*fd, &c, 1) > 0 || write(*fd, "x", 1) > 0)
			fprintf(stderr, "fuzz: the device can be read or written\n");
		break;
	case 4:
	case 5:
		one_child(r);
		break;
	default:
		one_ioctl(r);
	}
}

static void *thread(void *arg)
{
	struct round mine = *(struct round *)arg;
	int i, n = 20 + rnd(&mine.state, 60);

	for (i = 0; i < n; i++)
		one_step(&mine);
	return NULL;
}

/* The library's handle hides its descriptor: find it by what it is. */
static int device_fd(void)
{
	char path[32], target[64];
	int fd;

	for (fd = 3; fd < 64; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && (target[n] = 0, !strcmp(target, "/dev/pvas")))
			return fd;
	}
	return -1;
}

static void run_round(unsigned long long seed)
{
	struct round r = { .state = seed }, other;
	struct rlimit limit = { 0, 0 };
	struct pvas_space *space = NULL;
	pthread_t second;
	int i, threads;

	setrlimit(RLIMIT_CORE, &limit);
	alarm(60);
	r.area = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(r.area + PAGE, PAGE, PROT_READ);
	munmap(r.area + 2 * PAGE, PAGE);
	if (rnd(&r.state, 2) && !pvas_space_create(&space, NULL))
		r.id = pvas_space_get_id(space);
	for (i = 0; i < 4; i++)
		r.fds[i] = space && i < 2 ? dup(device_fd())
					  : open("/dev/pvas", O_RDWR | O_CLOEXEC);
	threads = rnd(&r.state, 2);
	other = r;
	other.state += 12345;
	if (threads && pthread_create(&second, NULL, thread, &other))
		threads = 0;
	thread(&r);
	if (threads)
		pthread_join(second, NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned long long seed = 1, n = 0, rounds = ~0ULL;
	int c, workers = 2, running = 0, verbose = 0, failed;
	const struct left before = left_before();
	double end, seconds = 10;

	while ((c = getopt(argc, argv, "t:n:s:j:v")) != -1) {
		switch (c) {
		case 't': seconds = atof(optarg); break;
		case 'n': rounds = strtoull(optarg, NULL, 0); seconds = 1e9; break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'j': workers = atoi(optarg); break;
		case 'v': verbose = 1; break;
		default:
			fprintf(stderr, "usage: fuzz [-t seconds | -n rounds] [-s seed] "
				"[-j workers] [-v]\n");
			return 2;
		}
	}
	if (before.spaces < 0) {
		printf("fuzz: no /proc/pvas: is the module loaded?\n");
		return 4;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	end = now() + seconds;
	while (n < rounds && now() < end) {
		pid_t pid;

		/* A round's own children are reaped with it, at its pace. */
		while (running >= workers * 4 && wait(NULL) > 0)
			running--;
		pid = fork();
		if (!pid)
			run_round(seed + n);
		running += pid > 0;
		if (verbose)
			fprintf(stderr, "fuzz: seed %llu\n", seed + n);
		n += pid > 0;
	}
	failed = check_end(&before);
	printf("fuzz: %llu rounds, seed %llu: %s\n", n, seed, failed ? "FAILED" : "ok");
	return failed;
}
