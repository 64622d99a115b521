// SPDX-License-Identifier: GPL-2.0-only
/*
 * The accounting of time that slow processes take: reader.c with a clock of the test's,
 * and owner.c with its own /etc/subuid.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

static int64_t fake_us = 1000000;
static char subuid[64] = "/tmp/pvasps-subuid.XXXXXX";

static int64_t fake_now_us(void)
{
	return fake_us;
}

static FILE *open_subuid(const char *path, const char *mode)
{
	return fopen(strcmp(path, "/etc/subuid") ? path : subuid, mode);
}

static int fake_poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	int n = poll(fds, nr, timeout_ms < 1000 ? timeout_ms : 1000);

	fake_us += n ? 0 : (int64_t)timeout_ms * 1000;
	return n;
}

/* Instead of files of the process HUNG it is a FIFO that nobody writes to. */
#define HUNG 1

static char fifo[64];

static const char *or_fifo(const char *path)
{
	char hung[32];

	snprintf(hung, sizeof(hung), "/proc/%d/", HUNG);
	return strncmp(path, hung, strlen(hung)) ? path : fifo;
}

static int open_or_hang(const char *path, int flags)
{
	return open(or_fifo(path), flags);
}

#define now_us fake_now_us
#define poll(fds, nr, timeout_ms) fake_poll(fds, nr, timeout_ms)
#define open(path, flags) open_or_hang(path, flags)
#include "../reader.c"
#undef open
#undef poll
#undef now_us
#define fopen open_subuid
#include "../owner.c"
#undef fopen
#include "../proc.c"
#include "../snapshot.c"

static unsigned int passed, failed;

#define check(condition) do { \
	if (condition) { \
		passed++; \
	} else { \
		failed++; \
		printf("FAIL line %d: %s\n", __LINE__, #condition); \
	} \
} while (0)

#define ALICE	200000		/* the first of 65536 uids of a container */
#define BOB	65501

static void write_subuid(void)
{
	static const char text[] =
		"65500:200000:65536\n"
		"nonsense\n"
		"no-such-user-of-pvasps:300000:10\n"
		"root:1000000:1000000000\n"
		"65501:500000:2";
	int fd = mkstemp(subuid);

	check(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	close(fd);
}

/* A user's own time is not taken by containers, nor one container's by another. */
static void test_accounts(void)
{
	static const struct { uid_t uid, account; } cases[] = {
		{ 0, 0 }, { 65500, 65500 }, { 199999, 199999 }, { 200000, ALICE },
		{ 265535, ALICE }, { 265536, 265536 }, { 300003, 300000 }, { 300009, 300000 },
		{ 300010, 300010 }, { 500001, 500000 }, { 1000000, 1000000 },
		{ 1000001, 1000000 }, { 1065535, 1000000 }, { 1065536, 1065536 },
		{ 1500000, 1458752 }, { (uid_t)-2, (uid_t)-2 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(ps_account_of(cases[i].uid) == cases[i].account);
}

/* One process of @uid, read for so long; false: it is passed over */
static bool read_one(uid_t uid, int64_t us)
{
	bool may = ps_reader_turn(uid, PS_FINDING);

	if (may)
		fake_us += us;
	return may;
}

/* All uids of a user have the user's time together, and another user has his own. */
static void test_uids_share(void)
{
	unsigned int i, n = 0;

	ps_reader_begin();
	for (i = 0; i < 70; i++)
		n += read_one(200000 + i, SECOND / 5);
	/* 0.18 s of each count, until that is 3 s */
	check(n >= 15 && n <= 18);
	check(!read_one(ALICE, 0));
	check(!read_one(265535, 0));
	check(read_one(BOB, 0));
	check(read_one(0, 0));
	/* the next snapshot begins anew */
	ps_reader_begin();
	check(read_one(200001, 0));
}

/* 20 ms of each process are free, and of all processes of a user 1 s. */
static void test_free_time(void)
{
	const struct slow_user *alice;
	unsigned int i, n = 0;

	ps_reader_begin();
	for (i = 0; i < 50; i++)
		check(read_one(200000 + i, FREE_US));
	check(read_one(BOB, 0));
	alice = user_of(ALICE, false);
	check(alice && alice->us[PS_FINDING] == 0);
	for (i = 0; i < 1000; i++)
		n += read_one(ALICE, FREE_US);
	check(n >= 150 && n <= 151);
	check(!read_one(200000, 0));
}

/* When many users are slow, each has little. */
static void test_many_users(void)
{
	unsigned int i;

	ps_reader_begin();
	for (i = 0; i < 4; i++)
		check(read_one(600000 + i, 3 * SECOND));
	check(read_one(BOB, SHORT_US + FREE_US));
	check(!read_one(BOB, 0));
	check(read_one(0, 0));
}

/* One user, or several, took too much: others have enough for what nobody has made slow. */
static void test_slow_others(void)
{
	unsigned int i;

	ps_reader_begin();
	for (i = 0; i < 5; i++)
		fake_us += ps_reader_turn(ALICE, PS_MEASURING) ? 6 * SECOND : 0;
	check(ps_reader_turn(BOB, PS_MEASURING));
	fake_us += SECOND / 2;
	check(ps_reader_turn(BOB, PS_MEASURING));
	fake_us += SECOND;
	check(!ps_reader_turn(BOB, PS_MEASURING));
}

/* ---- the parts of a snapshot that have no test here ---- */

void ps_kernel_find(struct ps_snapshot *s) { (void)s; }

void ps_user_find(struct ps_snapshot *s)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		s->spaces = ps_grow(s->spaces, s->nr, sizeof(*s->spaces));
		s->spaces[s->nr++] = (struct ps_space){ .id = i + 1, .launcher = 1, .detail = true,
							.uid = i ? ALICE : BOB };
	}
}

/* Each takes 40 s. */
bool ps_measure(struct ps_space *space, pid_t pid)
{
	(void)pid;
	if (!ps_reader_turn(space->uid, PS_MEASURING))
		return false;
	fake_us += 40 * SECOND;
	return true;
}

/* A space that is not measured, because its user's others took too long, is counted. */
static void test_not_measured(void)
{
	struct ps_snapshot s;

	ps_snapshot_take(&s, &(struct ps_choice){ .memory = true });
	check(s.nr == 3 && s.spaces[0].measured && s.spaces[1].measured && !s.spaces[2].measured);
	check(s.slow == 1);
	ps_snapshot_free(&s);
}

/* A task in an execve() that hangs costs its user's time, and nobody has to wait longer. */
static void test_hung_task(void)
{
	struct ps_task tasks[] = {
		{ .pid = getpid(), .state = "running" }, { .pid = HUNG, .state = "running" },
		{ .pid = getpid(), .state = "running" },
	};
	const struct ps_space space = { .uid = ALICE }, others = { .uid = BOB };

	snprintf(fifo, sizeof(fifo), "/tmp/pvasps-fifo.%d", getpid());
	check(!mkfifo(fifo, 0600));
	alarm(20);
	ps_reader_begin();
	check(read_task(&space, &tasks[0]) && !strcmp(tasks[0].name, "unit_reader"));
	check(tasks[0].threads == 1 && tasks[0].born);
	check(!read_task(&space, &tasks[1]) && !*tasks[1].name);
	check(!read_task(&space, &tasks[2]));
	check(read_task(&others, &tasks[2]) && *tasks[2].name);
	alarm(0);
	check(!unlink(fifo));
	while (nr_stuck)
		reap_stuck();
}

/* A helper that SIGKILL does not end: its user waits for it, by whatever uid. */
static void test_stuck(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	ps_reader_begin();
	check(read_one(200005, 0));
	turn.uid = ps_account_of(200005);
	stuck[nr_stuck++] = (struct stuck){ pid, turn.uid };
	ps_reader_begin();
	check(!read_one(200005, 0));
	check(!read_one(200006, 0));
	check(!read_one(ALICE, 0));
	check(read_one(BOB, 0));
	kill(pid, SIGKILL);
	waitid(P_PID, pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	ps_reader_begin();
	check(read_one(200006, 0));
	check(nr_stuck == 0);
}

int main(void)
{
	write_subuid();
	test_accounts();
	test_uids_share();
	test_free_time();
	test_many_users();
	test_slow_others();
	test_not_measured();
	test_hung_task();
	test_stuck();
	unlink(subuid);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
