// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many spaces a user can have, and a container. Without libpvas.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "shares.h"

static int as_container(void *arg)
{
	return enter_container(*(uid_t *)arg) ? take_and_count() : -ENOTSUP;
}

/* A user of a container that makes user namespaces, too */
static int as_user_in_container(void *arg)
{
	if (!enter_container(*(uid_t *)arg) || setresuid(1000, 1000, 1000) ||
	    unshare(CLONE_NEWUSER))
		return -ENOTSUP;
	return take_and_count();
}

static int as_weak_root(void *arg)
{
	(void)arg;
	return enter_weak_container() ?: take_and_count();
}

/* a user has a share, and others theirs at the same time; root is not held to it */
PVAS_TEST(share_of_a_user)
{
	struct limits limits;
	uid_t user = 12345;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, spaces_for(as_user, user));
	/* A quarter of all is the most. Spaces count until all of them is freed. */
	ASSERT_EQ(0, pt_write_file(PARAM "max_spaces", "12"));
	ASSERT_EQ(0, pt_raw_spaces_left(limits.fd));
	EXPECT_EQ(3, spaces_for(as_user, user));
	ASSERT_EQ(0, pt_raw_spaces_left(limits.fd));
	EXPECT_EQ(3, spaces_for(as_user_in_namespace, user));
	ASSERT_EQ(0, pt_raw_spaces_left(limits.fd));
	EXPECT_EQ(0, one_as(user + 1));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* so has a container of root's: it keeps neither other containers' nor the capless root's */
PVAS_TEST(share_of_a_container)
{
	uid_t first = 100000, other = 200000;
	struct greedy greedy = { 0 };
	struct limits limits;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_container, first));
	EXPECT_EQ(5, spaces_for(as_container, other));
	/* So has each of its users, who make them in namespaces of their own. */
	EXPECT_EQ(5, spaces_for(as_user_in_container, other));
	/* Containers often have the same ids. */
	EXPECT_EQ(5, spaces_for(as_container, first));
	EXPECT_EQ(5, spaces_for(as_user_in_container, first));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* and one without a user namespace, whose root has few rights */
PVAS_TEST(share_of_a_weak_root)
{
	struct greedy greedy = { 0 };
	struct limits limits;
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	/* Whole root's count for nobody else. */
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(10, greedy_add(&greedy, as_weak_root, 0));
	EXPECT_EQ(10, spaces_for(as_weak_root, 0));
	EXPECT_EQ(0, greedy_end(&greedy));
	pt_raw_close(&raw);
	EXPECT_EQ(0, limits_restore(&limits));
}

/* Root of a container, which takes all that it can, and then with the ids of several users */
static int take_as_each(const uid_t *users, unsigned int n)
{
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < n; i++) {
		int fds[2];
		uid_t user = users[i];

		if (pipe(fds))
			return -errno;
		pid = fork();
		if (!pid) {
			status = !user ? take_and_count() :
				 user < CONTAINER_IDS ? as_user(&user) : as_container(&user);
			_exit(write(fds[1], &status, sizeof(status)) != sizeof(status) || pause());
		}
		if (read(fds[0], &status, sizeof(status)) != sizeof(status) || status != -ENOSPC)
			return -EIO;
	}
	return 0;
}

/* With the ids of several users, and in user namespaces to which it gives ids */
static int as_many_users(void *arg)
{
	static const uid_t users[] = { 6001, 6002, 6003, 400000, 500000 };

	(void)arg;
	return enter_weak_container() ?: take_as_each(users, sizeof(users) / sizeof(*users));
}

/* The same after its own */
static int as_root_and_users(void *arg)
{
	static const uid_t users[] = { 0, 6001 };

	(void)arg;
	return enter_weak_container() ?: take_as_each(users, 2);
}

/* All ids that a container's root can take have its share together, with what is left to it. */
PVAS_TEST(share_of_ids_of_a_container)
{
	struct limits limits;
	uid_t outside = 7777;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(0, pt_in_child(as_many_users, NULL));
	EXPECT_EQ(8, *made);
	EXPECT_EQ(0, one_as(outside));
	ASSERT_EQ(0, pt_raw_spaces_left(limits.fd));
	*made = 0;
	EXPECT_EQ(0, pt_in_child(as_root_and_users, NULL));
	EXPECT_EQ(10, *made);
	EXPECT_EQ(0, limits_restore(&limits));
}

static int as_itself(void *arg)
{
	(void)arg;
	return take_and_count();
}

/* One user after another of the caller's container, and its root last */
static int take_in_turn(int to)
{
	static const uid_t users[] = { 1001, 1002, 1003, 0 };
	struct greedy greedy = { 0 };
	int got[4], i;

	for (i = 0; i < 4; i++)
		got[i] = greedy_add(&greedy, users[i] ? as_user : as_itself, users[i]);
	return write(to, got, sizeof(got)) == sizeof(got) ? greedy_end(&greedy) : -EIO;
}

static int as_users(void *arg)
{
	return enter_weak_container() ?: take_in_turn(*(int *)arg);
}

/* In a user namespace */
static int as_mapped_users(void *arg)
{
	return enter_container(300000) ? take_in_turn(*(int *)arg) : -ENOTSUP;
}

struct shares {
	const char *each;
	int got[4];
};

static void share_between(struct __test_metadata *_metadata, int (*as)(void *arg))
{
	static const struct shares shares[] = {
		{ "8", { 8, 6, 0, 2 } }, { "3", { 3, 2, 0, 1 } }, { "1", { 1, 0, 0, 1 } },
	};
	unsigned int i;

	for (i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		struct limits limits;
		int got[4], to[2];

		ASSERT_EQ(0, limits_set(&limits, NULL, shares[i].each));
		ASSERT_EQ(0, pipe(to));
		EXPECT_EQ(0, pt_in_child(as, &to[1]));
		close(to[1]);
		ASSERT_EQ(sizeof(got), read(to[0], got, sizeof(got)));
		close(to[0]);
		EXPECT_EQ(0, memcmp(shares[i].got, got, sizeof(got))) {
			TH_LOG("of %s each: %d %d %d %d", shares[i].each, got[0], got[1], got[2],
			       got[3]);
		}
		EXPECT_EQ(0, limits_restore(&limits));
	}
}

/* none of a container's users has all of it, and many of them leave something to its root */
PVAS_TEST(share_of_users_of_a_container)
{
	PT_NEED_ROOT();
	share_between(_metadata, as_users);
}

/* the same with a user namespace */
PVAS_TEST(share_of_users_of_mapped_ids)
{
	PT_NEED_ROOT();
	share_between(_metadata, as_mapped_users);
}

/* No limit is a limit, too. */
PVAS_TEST(share_without_a_limit)
{
	struct limits limits;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, "4294967295", "5"));
	EXPECT_EQ(5, spaces_for(as_user, 12345));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* Many users at once leave something to root. */
PVAS_TEST(reserve_of_root)
{
	struct greedy greedy = { 0 };
	struct limits limits;
	struct pt_raw raw;
	uid_t user;
	int n = 0;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, "16", NULL));
	for (user = 20001; user <= 20005; user++) {
		int got = greedy_add(&greedy, as_user, user);

		EXPECT_LE(0, got);
		n += got;
	}
	EXPECT_EQ(14, n);
	EXPECT_EQ(0, pt_raw_make(&raw));
	pt_raw_close(&raw);
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

PT_MAIN()
