// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans with spaces made without libpvas, whose "loader" is a function of this program.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asm/prctl.h>
#include <linux/io_uring.h>
#include <linux/pvas.h>

#include "hostile.h"

#define TLS_ROOM	8192

/* For raw_entry(), in the creator's data: set before CREATE. */
static struct manager of_space;

static void check_vfork(unsigned int session)
{
	int status = 0;
	long pid = raw6(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);

	if (!pid)
		raw6(SYS_exit, 0, 0, 0, 0, 0, 0);
	if (pid > 0 && raw6(SYS_wait4, pid, (uintptr_t)&status, 0, 0, 0, 0) == pid &&
	    (status & 0x7f) == SIGKILL)
		found(F_VFORK_KILLED, session, status, 0, 0, NULL);
}

/* libc of the creator's has its own thread's memory; here is some for this one. */
static void __attribute__((noinline)) raw_main(struct pvas_start *start)
{
	static unsigned int next = 1000;
	struct actor a = { .raw = true, .task = true, .in_space = true };
	char tls[2 * TLS_ROOM] __attribute__((aligned(64)));
	uintptr_t fs = (uintptr_t)tls + TLS_ROOM;

	memset(tls, 0, sizeof(tls));
	((uintptr_t *)fs)[0] = ((uintptr_t *)fs)[2] = fs;
	raw6(SYS_arch_prctl, ARCH_SET_FS, fs, 0, 0, 0, 0);
	a.base = (uintptr_t)start->index << start->shift;
	a.end = a.base + (1UL << start->shift);
	a.bias = BIAS_MM;
	actor_init(&a, of_space.session, of_space.plan, __atomic_fetch_add(&next, 1, 5),
		   of_space.seed, of_space.round);
	if (!strcmp(plans[of_space.plan].name, "keyed")) {
		check_vfork(of_space.session);
	} else {
		op_scan(&a);
		actor_run(&a, 30);
	}
	raw6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

__asm__(".text\n.globl raw_entry\nraw_entry:\n\tand $-16, %rsp\n\tcall raw_enter\n\tud2\n");

void raw_enter(struct pvas_start *start);
void __attribute__((used)) raw_enter(struct pvas_start *start)
{
	raw_main(start);
}

int raw_task(int fd, int *err)
{
	struct pvas_spawn spawn = { .size = sizeof(spawn), .flags = PVAS_SPAWN_ANY };
	int status = -1, i;
	pid_t pid = fork();

	if (!pid) {
		if (raw6(SYS_ioctl, fd, PVAS_IOC_SPAWN, (uintptr_t)&spawn, 0, 0, 0))
			_exit(98);
		execl("/bin/true", "true", (char *)NULL);
		_exit(97);
	}
	for (i = 0; pid > 0 && i < 1000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		usleep(10000);
		if (i == 999)
			kill(pid, SIGKILL);
	}
	*err = 0;
	return status;
}

/* ---- the creator: odd things before and after CREATE ---- */

static void dirty(struct actor *a, size_t len)
{
	long at = CALL(a, SYS_mmap, 0, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	(void)at;
}

static void ring_with_device(struct actor *a, int fd)
{
	if (a->ring.fd < 0)
		ring_make(a, pick(a, 3) ? 0 : IORING_SETUP_SQPOLL);
	if (a->ring.fd >= 0)
		CALL(a, SYS_io_uring_register, a->ring.fd, IORING_REGISTER_FILES, &fd, 1);
}

static void odd_thing(struct actor *a, int fd)
{
	switch (pick(a, 9)) {
	case 0 ... 2: ring_with_device(a, fd); break;
	case 3: dirty(a, (size_t)(1 + pick(a, 24)) << 20); break;
	case 4: op_timens(a); break;
	case 5: op_uffd(a); break;
	case 6: op_mm(a); break;
	case 7: op_mm_sequence(a); break;
	default: op_proc(a);
	}
}

static void creator(struct manager *m, int fd)
{
	struct actor a = { .bias = BIAS_PVAS };
	unsigned int i;

	of_space = *m;
	actor_init(&a, m->session, m->plan, m->next, m->seed, m->round);
	dirty(&a, 8 << 20);
	for (i = pick(&a, 3); i; i--)
		odd_thing(&a, fd);
	raw_create(&a, fd, NULL, raw_entry, pick(&a, 12));
	_exit(0);
}

void plan_creator(struct manager *m)
{
	int fd, i, err;
	pid_t pid;

	for (;;) {
		fd = open("/dev/pvas", O_RDWR | O_CLOEXEC);
		m->next++;
		pid = fork();
		if (!pid)
			creator(m, fd);
		usleep(100000);
		for (i = 0; i < 3; i++)
			raw_task(fd, &err);
		close(fd);
		usleep(100000);
		if (pid > 0)
			kill(pid, SIGKILL);
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
	}
}

/* ---- keys: others' names, guessed; and two files of one space ---- */

static void guess(struct manager *m, struct actor *a, int fd)
{
	char key[8] = "job-0";

	(void)m;
	key[4] += pick(a, 4);
	if (!fork()) {
		raw_create(a, fd, key, NULL, pick(a, 3));
		_exit(0);
	}
}

static void two_files(struct manager *m, struct actor *a)
{
	char key[16] = "pair-0";
	struct pvas_attach attach = { .size = sizeof(attach), .key = (uintptr_t)key, .key_len = 6 };
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = pick(a, 2) };
	int one = open("/dev/pvas", O_RDWR | O_CLOEXEC), two, err, status;
	pid_t pid;

	key[5] += m->session;
	two = open("/dev/pvas", O_RDWR | O_CLOEXEC);
	pid = fork();
	if (!pid) {
		of_space = *m;
		raw_create(a, one, key, raw_entry, 0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (pick(a, 4))
		CALL(a, SYS_ioctl, two, PVAS_IOC_ATTACH, &attach);
	if (pick(a, 4))
		CALL(a, SYS_ioctl, one, PVAS_IOC_DESTROY, &destroy);
	raw_task(pick(a, 4) ? two : one, &err);
	close(one);
	close(two);
}

void plan_keyed(struct manager *m)
{
	struct actor a = { .bias = BIAS_PVAS };
	int i;

	actor_init(&a, m->session, m->plan, 1, m->seed, m->round);
	for (i = 0; i < 4; i++)
		guess(m, &a, open("/dev/pvas", O_RDWR | O_CLOEXEC));
	for (;;) {
		two_files(m, &a);
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
	}
}
