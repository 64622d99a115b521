// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rights of an exec into a space: programs that give more of them, or whose user
 * may not read them, are refused.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

static int nobody_runs(void *arg)
{
	struct pvas_space *space;
	int err;

	err = pt_dumpable() ?: pt_create(&space, 0, 0);
	if (err)
		return err == -EPERM ? -EIO : err;
	return pt_run_path(space, arg, "succeed");
}

/* a program, or interpreter, that its user may run but not read: EPERM */
PVAS_TEST(unreadable)
{
	char ip[64], path[64];

	PT_NEED_ROOT();
	EXPECT_EQ(0, pt_as_nobody(nobody_runs, (void *)pt_copy_file("r", pt_self(), 0755)));
	EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, (void *)pt_copy_file("x", pt_self(), 0711)));
	snprintf(ip, sizeof(ip), "%s/i", pt_tmpdir());
	ASSERT_NE(NULL, pt_copy_file("i", "/lib64/ld-linux-x86-64.so.2", 0711));
	strcpy(path, pt_with_interp("p", ip));
	EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, path));
	chmod(ip, 0755);
	EXPECT_EQ(0, pt_as_nobody(nobody_runs, path));
}

/* set-user-id and set-group-id programs: EPERM, even if they change nothing */
PVAS_TEST(set_uid_and_gid)
{
	struct pvas_space *space = PT_SPACE();
	const char *path = pt_copy_file("suid", pt_self(), 0755);

	ASSERT_NE(NULL, path);
	chmod(path, 04755);
	EXPECT_EQ(-EPERM, pt_run_path(space, path, "succeed"));
	chmod(path, 02755);
	EXPECT_EQ(-EPERM, pt_run_path(space, path, "succeed"));
	if (!geteuid()) {
		chmod(path, 04755);
		EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, (void *)path));
	}
	chmod(path, 0755);
	EXPECT_EQ(0, pt_run_path(space, path, "succeed"));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

/* pvas_program_check() and the exec agree of every set of mode bits */
PVAS_TEST(check_agrees)
{
	static const mode_t bits[] = { 0, S_ISUID, S_ISGID, S_ISUID | S_ISGID, S_ISVTX };
	struct pvas_space *space = PT_SPACE();
	const char *path = pt_copy_file("mode", pt_self(), 0755);
	unsigned int i, group;

	ASSERT_NE(NULL, path);
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		for (group = 0; group < 8; group++) {
			mode_t mode = bits[i] | 0705 | group << 3;

			ASSERT_EQ(0, chmod(path, mode));
			EXPECT_EQ(pvas_program_check(path, NULL, 0),
				  pt_run_path(space, path, "succeed")) {
				TH_LOG("mode %o", mode);
			}
		}
	}
	pvas_space_destroy(space);
}

/* a program with file capabilities: EPERM */
PVAS_TEST(file_capabilities)
{
	struct vfs_cap_data cap = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1 << CAP_NET_RAW,
	};
	const char *path = pt_copy_file("cap", pt_self(), 0755);
	struct pvas_space *space;

	PT_NEED_ROOT();
	if (setxattr(path, "security.capability", &cap, XATTR_CAPS_SZ_2, 0))
		SKIP(return, "file capabilities can't be set here");
	space = PT_SPACE();
	EXPECT_EQ(-EPERM, pt_run_path(space, path, "succeed"));
	EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, (void *)path));
	removexattr(path, "security.capability");
	EXPECT_EQ(0, pt_run_path(space, path, "succeed"));
	pvas_space_destroy(space);
}

static int arm_drop_exec(void *arg)
{
	const struct pt_raw *raw = arg;
	int err = pt_raw_arm(raw->fd, 0, 1, 0);

	if (err)
		return err;
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return -EIO;
	execl("/bin/true", "true", (char *)NULL);
	return -errno;
}

/* armed, then another user: the exec is refused, EPERM */
MODULE_TEST(credentials_change_after_arming, "the ABI of /dev/pvas")
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_drop_exec, &raw));
	pt_raw_close(&raw);
}

PT_MAIN()
