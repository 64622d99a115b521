// SPDX-License-Identifier: GPL-2.0-only
/* Where a program lies in its partition: at random, unless that is not wanted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"
#include "program.h"

#define SYSCTL "/proc/sys/kernel/randomize_va_space"
#define RUNS 8

extern char __executable_start[];

/* Of one task. LOADER and MAPPING are below mmap_top, ARGUMENTS and FRAME are on the stack. */
enum { LOAD, HEAP, HEAP_GAP, LOADER, MAPPING, ARGUMENTS, FRAME, STACK_GAP, PLACES };

static const char *const names[] = {
	"load", "heap", "heap - load", "ELF interpreter", "mapping", "arguments", "stack pointer",
	"stack - mapping"
};

TASK(say_places)
{
	uintptr_t at[PLACES] = {
		[LOAD] = (uintptr_t)__executable_start,
		[HEAP] = raw_brk(0) & ~(PAGE - 1),
		[LOADER] = getauxval(AT_BASE),
		[MAPPING] = (uintptr_t)anon(PAGE),
		[ARGUMENTS] = (uintptr_t)getauxval(AT_EXECFN),
		[FRAME] = (uintptr_t)__builtin_frame_address(0),
	};
	int i;

	for (i = 0; i < PLACES; i++) {
		CHECK(!at[i] || pt_inside((void *)at[i], 1));
		at[i] -= at[i] ? pt_base() : 0;
	}
	at[HEAP_GAP] = at[HEAP] - at[LOAD];
	at[STACK_GAP] = at[ARGUMENTS] - at[MAPPING];
	CHECK_EQ(sizeof(at), write(atoi(pt_args[0]), at, sizeof(at)));
}

static int place_one(const struct pvas_spawn_attr *attr, uintptr_t at[PLACES])
{
	struct pvas_space *space;
	char fd[16];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"say_places", fd, NULL };
	int fds[2], ret;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	ret = pt_create(&space, 0, 0);
	if (!ret) {
		ret = pvas_task_spawn(space, 1, pt_self(), argv, environ, attr, &pid);
		ret = ret < 0 ? ret : pt_wait(pid);
		pvas_space_destroy(space);
	}
	if (!ret && read(fds[0], at, PLACES * sizeof(*at)) != PLACES * (ssize_t)sizeof(*at))
		ret = -EIO;
	close(fds[0]);
	close(fds[1]);
	return ret;
}

static int no_randomize(void *arg)
{
	(void)arg;
	return personality(personality(~0U) | ADDR_NO_RANDOMIZE) < 0 ? -errno : 0;
}

static int randomize(void *arg)
{
	(void)arg;
	return personality(personality(~0U) & ~ADDR_NO_RANDOMIZE) < 0 ? -errno : 0;
}

/* How many of the runs had another place than the first; 0 or what failed. */
static int count_moved(const struct pvas_spawn_attr *attr, int moved[PLACES])
{
	uintptr_t first[PLACES], at[PLACES];
	int i, what, ret;

	memset(moved, 0, PLACES * sizeof(*moved));
	ret = place_one(attr, first);
	for (i = 1; i < RUNS && !ret; i++) {
		ret = place_one(attr, at);
		for (what = 0; what < PLACES && !ret; what++)
			moved[what] += at[what] != first[what];
	}
	return ret;
}

/* Each place moved in @least to @most of the runs. */
static bool all_moved(const struct pvas_spawn_attr *attr, int least, int most)
{
	int moved[PLACES], what, ret = count_moved(attr, moved);
	bool good = !ret;

	if (ret)
		printf("# a task failed: %d\n", ret);
	for (what = 0; what < PLACES && !ret; what++) {
		if (moved[what] >= least && moved[what] <= most)
			continue;
		printf("# %s: moved %d times of %d\n", names[what], moved[what], RUNS - 1);
		good = false;
	}
	return good;
}

static bool is_fixed(const struct pvas_spawn_attr *attr)
{
	return all_moved(attr, 0, 0);
}

/* Few places have the heap above the program: 4 of 7 meet the first by chance once in 30000. */
static bool is_random(const struct pvas_spawn_attr *attr)
{
	return all_moved(attr, RUNS - 4, RUNS - 1);
}

static bool sysctl_is(char want)
{
	char now[16] = "";

	return !pt_read_file(SYSCTL, now, sizeof(now)) && now[0] == want;
}

#define NEED_RANDOM() do { \
	if (sysctl_is('0') || (personality(~0U) & ADDR_NO_RANDOMIZE)) \
		SKIP(return, "this machine does not randomize"); \
} while (0)

/* every run has its own places, one independent of the others */
PVAS_TEST(random_places)
{
	NEED_RANDOM();
	EXPECT_TRUE(is_random(NULL));
}

/* PVAS_SPAWN_NO_ASLR: the same places each time */
PVAS_TEST(flag)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .flags = PVAS_SPAWN_NO_ASLR };

	EXPECT_TRUE(is_fixed(&attr));
}

/* a personality that the caller's setup function sets: the same */
PVAS_TEST(setup_function)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = no_randomize };

	EXPECT_TRUE(is_fixed(&attr));
}

TASK(has_personality)
{
	CHECK(personality(~0U) & ADDR_NO_RANDOMIZE);
}

/* the launcher's own, set when it has a space already, and taken back */
PVAS_TEST(inherited)
{
	struct pvas_spawn_attr on = { .size = sizeof(on), .setup = randomize };
	struct pvas_space *space = PT_SPACE();

	NEED_RANDOM();
	ASSERT_EQ(0, no_randomize(NULL));
	EXPECT_EQ(0, pt_wait(pt_start_task(space, PVAS_ANY, "has_personality")));
	pvas_space_destroy(space);
	EXPECT_TRUE(is_fixed(NULL));
	EXPECT_TRUE(is_random(&on));
	ASSERT_EQ(0, randomize(NULL));
	EXPECT_TRUE(is_random(NULL));
}

TASK(run_outside)
{
	unsigned int persona = 0;
	FILE *f = popen("cat /proc/self/personality", "r");

	CHECK(f && fscanf(f, "%x", &persona) == 1);
	CHECK_EQ(0, f ? pclose(f) : -1);
	CHECK(persona & ADDR_NO_RANDOMIZE);
}

/* the personality goes on to what a task runs outside of the space */
PVAS_TEST(children)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .flags = PVAS_SPAWN_NO_ASLR };
	struct pvas_space *space = PT_SPACE();
	pid_t pid;

	ASSERT_LT(0, pvas_task_spawn(space, PVAS_ANY, pt_self(), pt_task_argv("run_outside"),
				     environ,
				     &attr, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

/* ---- a fork child, and another task where its parent was ---- */

static volatile sig_atomic_t handled;
static uintptr_t task_brk;

static void handler(int sig)
{
	handled = sig;
}

/* Calls that the user backend emulates, and for which it must know the old addresses. */
static char try_old_places(void)
{
	struct sigaction act = { .sa_handler = handler };
	uintptr_t brk = raw_brk(0);
	char exe[4096] = "";

	if (brk != task_brk || raw_brk(brk + PAGE) != brk + PAGE)
		return 'b';
	*(char *)brk = 1;
	if (sigaction(SIGUSR1, &act, NULL) || raise(SIGUSR1) || handled != SIGUSR1)
		return 's';
	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0 || strcmp(exe, pt_self()))
		return 'e';
	return 'k';
}

TASK(leave_child)
{
	char c;

	task_brk = raw_brk(raw_brk(0) + PAGE);
	if (fork() == 0) {
		c = pt_hear(atoi(pt_args[0])) == 'g' ? try_old_places() : 'g';
		_exit(write(atoi(pt_args[1]), &c, 1) != 1);
	}
}

/* it goes on with its own break, handlers and name, wherever the next task's are */
PVAS_TEST(fork_child_outlives)
{
	struct pvas_space *space = PT_SPACE();
	int go[2], answer[2], i;
	pid_t pid;

	ASSERT_EQ(0, pipe(go) || pipe(answer));
	ASSERT_LT(0, pt_start_task_fds(space, 1, "leave_child", go[0], answer[1], &pid));
	EXPECT_EQ(0, pt_wait(pid));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, pt_wait(pt_start_task(space, 1, "succeed")));
	}
	close(answer[1]);
	ASSERT_EQ(1, write(go[1], "g", 1));
	EXPECT_EQ('k', pt_hear(answer[0]));
	pvas_space_destroy(space);
}

/* ---- the sysctl ---- */

/* Launchers, not tasks: the sysctl counts as it is when they start. */
TASK(launch_fixed)
{
	CHECK(is_fixed(NULL));
}

TASK(launch_random)
{
	CHECK(is_random(NULL));
}

static int launch(const char *name)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(pt_self(), pt_self(), "--task", name, NULL);
		_exit(127);
	}
	return pid < 0 ? -errno : pt_wait(pid);
}

/* The user backend reads it as a file: another file will do, that only we see. */
static int set_sysctl(const char *text)
{
	return pt_write_file(pt_backend() == PVAS_BACKEND_USER ? pt_tmp("sysctl") : SYSCTL, text);
}

static int hide_sysctl(void)
{
	close(creat(pt_tmp("sysctl"), 0600));
	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(pt_tmp("sysctl"), SYSCTL, NULL, MS_BIND, NULL))
		return -errno;
	return 0;
}

/* kernel.randomize_va_space: 0 is none; 1 and 2 are the same here */
PVAS_TEST(sysctl)
{
	char was[16] = "2";

	NEED_RANDOM();
	if (pt_backend() == PVAS_BACKEND_USER) {
		if (hide_sysctl())
			SKIP(return, "no mount namespace to be had");
	} else {
		PT_NEED_ROOT();
		pt_read_file(SYSCTL, was, sizeof(was));
	}
	ASSERT_EQ(0, set_sysctl("0"));
	EXPECT_EQ(0, launch("launch_fixed"));
	EXPECT_EQ(0, set_sysctl("1"));
	EXPECT_EQ(0, launch("launch_random"));
	EXPECT_EQ(0, set_sysctl(was));
}

PT_MAIN()
