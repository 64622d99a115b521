// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many spaces a login can have, in containers and out of them. Without libpvas.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "shares.h"

/* A user who logs in */
#define LOGIN 12345
#define LOGIN_TEXT "12345"

/* A user who has logged in, and has become another one */
static int as_login(void *arg)
{
	return pt_write_file("/proc/self/loginuid", LOGIN_TEXT) ? -ENOTSUP : as_user(arg);
}

/* The same, in a user namespace of that one's */
static int as_login_in_namespace(void *arg)
{
	return pt_write_file("/proc/self/loginuid", LOGIN_TEXT) ? -ENOTSUP : as_user_in_namespace(arg);
}

#define NEED_LOGINS() do { \
	if (access("/proc/self/loginuid", W_OK)) \
		SKIP(return, "the kernel has no logins (CONFIG_AUDIT)"); \
} while (0)

/*
 * Set-uid files give the ids of a user's own namespace outside of it: the login counts. But a
 * daemon's jobs, of several users, can have its administrator's: none of them takes it all.
 */
PVAS_TEST(share_of_a_login)
{
	struct greedy greedy = { 0 };
	struct limits limits;

	PT_NEED_ROOT();
	NEED_LOGINS();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_login, 100001));
	EXPECT_EQ(5, greedy_add(&greedy, as_login, 100002));
	EXPECT_EQ(0, spaces_for(as_login, 100003));
	EXPECT_EQ(0, spaces_for(as_login_in_namespace, 100003));
	EXPECT_EQ(0, one_as(100003));
	/* Anybody without a login can have chosen this one: its user has a share all the same. */
	EXPECT_EQ(5, spaces_for(as_login, LOGIN));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* A user who has logged in, in a container of root's */
static int as_login_in_container(void *arg)
{
	if (pt_write_file("/proc/self/loginuid", LOGIN_TEXT) || enter_weak_container())
		return -ENOTSUP;
	return as_user(arg);
}

/* The same in a user namespace of root's, in which it has kept its ids */
static int as_login_in_root_namespace(void *arg)
{
	if (pt_write_file("/proc/self/loginuid", LOGIN_TEXT) || !enter_container(0))
		return -ENOTSUP;
	return as_user(arg);
}

/*
 * Containers with one login, which have the same ids: none takes what all of them have. But they
 * may be one user's set-uid sandboxes, so that is no more than the login has elsewhere.
 */
PVAS_TEST(share_of_a_login_in_a_container)
{
	struct greedy greedy = { 0 };
	struct limits limits;
	uid_t uid = 100003;

	PT_NEED_ROOT();
	NEED_LOGINS();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, uid));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, uid));
	EXPECT_EQ(0, spaces_for(as_login_in_container, uid));
	EXPECT_EQ(0, one_as(uid));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

/*
 * The same with the ids of the user who has logged in, which root of a container can take, too:
 * that user's own share remains.
 */
PVAS_TEST(share_of_a_user_in_sandboxes)
{
	struct greedy greedy = { 0 };
	struct limits limits;

	PT_NEED_ROOT();
	NEED_LOGINS();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, LOGIN));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, LOGIN));
	EXPECT_EQ(0, spaces_for(as_login_in_container, LOGIN));
	EXPECT_EQ(0, spaces_for(as_login_in_root_namespace, LOGIN));
	EXPECT_EQ(5, spaces_for(as_login, LOGIN));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

PT_MAIN()
