// SPDX-License-Identifier: GPL-2.0-only
/*
 * The accounting of time that slow processes take: reader.c with a clock of the test's,
 * and owner.c with its own /etc/subuid.
 */
#include <stdio.h>
#include <string.h>
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

#define now_us fake_now_us
#include "../reader.c"
#undef now_us
#define fopen open_subuid
#include "../owner.c"
#undef fopen

static unsigned int passed, failed;

#define check(condition) do { \
	if (condition) { \
		passed++; \
	} else { \
		failed++; \
		printf("FAIL line %d: %s\n", __LINE__, #condition); \
	} \
} while (0)

#define ALICE	65500		/* has 200000 to 265535; an uid, so that no user need exist */
#define BOB	65501

static void write_subuid(void)
{
	static const char text[] =
		"65500:200000:65536\n"
		"nonsense\n"
		"no-such-user-of-pvasps:300000:10\n"
		"65501:400000:1\n"
		"65501:500000:2";
	int fd = mkstemp(subuid);

	check(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	close(fd);
}

static void test_owners(void)
{
	static const struct { uid_t uid, owner; } cases[] = {
		{ 0, 0 }, { ALICE, ALICE }, { 199999, 199999 }, { 200000, ALICE },
		{ 265535, ALICE }, { 265536, 265536 }, { 300003, 300000 }, { 300009, 300000 },
		{ 300010, 300010 }, { 400000, BOB }, { 400001, 400001 }, { 500001, BOB },
		{ (uid_t)-2, (uid_t)-2 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(ps_owner_of(cases[i].uid) == cases[i].owner);
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
	check(read_one(400000, 0));
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
	check(!read_one(400000, 0));
	check(read_one(0, 0));
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
	turn.uid = ps_owner_of(200005);
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
	test_owners();
	test_uids_share();
	test_free_time();
	test_many_users();
	test_stuck();
	unlink(subuid);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
