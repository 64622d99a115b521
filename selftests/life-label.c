// SPDX-License-Identifier: GPL-2.0-only
/*
 * The label of a security module, AppArmor's here: a task can't change its own, and is told
 * so; but it follows when the security policy is loaded again, as every process does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define CURRENT		"/proc/thread-self/attr/current"
#define NEXT		"/proc/thread-self/attr/exec"
#define BEFORE		"pvas-test-before"
#define OTHER		"pvas-test-other"
/* Each takes a reference too many of the label if it is not renewed. */
#define OPENS		3000
#ifndef SYS_lsm_set_self_attr
#define SYS_lsm_set_self_attr 460
#endif

static const char profile[] =
	"profile %s flags=(attach_disconnected) {\n"
	"  file,\n  capability,\n  signal,\n  ptrace,\n  unix,\n  network,\n  mount,\n"
	"  change_profile -> **,\n  %s\n}\n";

/* Loads the profile, or puts it in the place of the one with that name; with one more rule. */
static bool load(const char *name, const char *rule)
{
	char path[256], command[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/profile", pt_tmpdir());
	f = fopen(path, "w");
	if (!f)
		return false;
	fprintf(f, profile, name, rule);
	fclose(f);
	snprintf(command, sizeof(command), "/usr/sbin/apparmor_parser -K -r %s >/dev/null 2>&1",
		 path);
	return !system(command);
}

static const char *why_not(void)
{
	char text[8] = "";

	if (pt_backend() != PVAS_BACKEND_KERNEL)
		return "the user backend does not keep labels";
	if (pt_read_file("/sys/module/apparmor/parameters/enabled", text, sizeof(text)) ||
	    text[0] != 'Y')
		return "AppArmor is not enabled";
	if (access("/usr/sbin/apparmor_parser", X_OK))
		return "no apparmor_parser (install package apparmor)";
	if (access("/sys/kernel/security/lsm", F_OK))
		mount("none", "/sys/kernel/security", "securityfs", 0, NULL);
	return load(BEFORE, "") && load(OTHER, "") ? NULL : "apparmor_parser loads no profile";
}

static bool label_is(const char *name)
{
	char label[128] = "";

	return !pt_read_file(CURRENT, label, sizeof(label)) &&
	       !strncmp(label, name, strlen(name));
}

/* ---- by itself ---- */

TASK(confine_itself)
{
	char label[128] = "";
	long ret;
	pid_t pid;

	CHECK_EQ(0, pt_read_file(CURRENT, label, sizeof(label)));
	CHECK_EQ(-EPERM, pt_write_file(CURRENT, "changeprofile " OTHER));
	CHECK_EQ(-EPERM, pt_write_file(CURRENT, "stack " OTHER));
	CHECK_EQ(-EPERM, pt_write_file(CURRENT, "changehat 0123456789abcdef^hat"));
	CHECK_EQ(-EPERM, pt_write_file(NEXT, "exec " OTHER));
	ret = syscall(SYS_lsm_set_self_attr, 100, NULL, 0, 0);
	CHECK(ret == -1 && (errno == EPERM || errno == ENOSYS));
	CHECK(label_is(label));
	/* A child with memory of its own may. */
	pid = fork();
	if (!pid)
		_exit(pt_write_file(CURRENT, "changeprofile " OTHER) || !label_is(OTHER));
	CHECK_EQ(0, pt_wait(pid));
}

/* an error, and not success without effect */
PVAS_TEST(label_refused)
{
	const char *why = why_not();

	if (why)
		SKIP(return, "%s", why);
	EXPECT_EQ(0, pt_run_task("confine_itself"));
	pt_remove_tmpdir();
}

/* ---- by a new policy ---- */

static void open_often(void)
{
	for (int i = 0; i < OPENS; i++)
		close(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

TASK(look_at_label)
{
	open_often();
	CHECK(label_is(BEFORE));
	CHECK_EQ(1, pvas_task_get_index());
}

TASK(open_and_exec)
{
	char go;

	pt_say(".");
	CHECK_EQ(1, read(atoi(pt_args[1]), &go, 1));
	/* New credentials have the new label, although nothing has renewed the old ones yet. */
	CHECK_EQ(0, prctl(PR_SET_SECUREBITS, prctl(PR_GET_SECUREBITS)));
	open_often();
	CHECK(label_is(BEFORE));
	/* It stays, although its label is another one than the space was made with. */
	pt_exec_as("look_at_label", NULL);
}

/* A space under a profile that is loaded again meanwhile; an exit status */
static int outlive_policy(void)
{
	struct pvas_space *space;
	int say[2], go[2];
	pid_t pid, late;

	if (pt_write_file(CURRENT, "changeprofile " BEFORE) || !label_is(BEFORE) || pipe(say) ||
	    pipe(go) || pt_create(&space, 0, 0))
		return 2;
	if (pt_start_task_fds(space, 1, "open_and_exec", say[1], go[0], &pid) < 0 ||
	    !pt_hear(say[0]))
		return 3;
	if (!load(BEFORE, "deny /etc/pvas-test-none r,"))
		return 4;
	if (write(go[1], ".", 1) != 1 || pt_wait(pid))
		return 5;
	/* The label of this process is renewed only when it asks for something. */
	open_often();
	late = pt_start_task(space, 1, "look_at_label");
	if (late < 0 || pt_wait(late))
		return 6;
	pvas_space_destroy(space);
	return 0;
}

/* the task, its next program and later tasks have the new label; nothing is freed too early */
PVAS_TEST(policy_loaded_again)
{
	const char *why = why_not();
	int log = pt_kmsg_mark("label");
	pid_t pid;

	if (why)
		SKIP(return, "%s", why);
	pid = fork();
	if (!pid)
		_exit(outlive_policy());
	EXPECT_EQ(0, pt_wait(pid));
	EXPECT_TRUE(load(BEFORE, "")) TH_LOG("the profile can't be loaded any more");
	EXPECT_EQ(0, pt_kmsg_complaints(log));
	close(log);
	pt_remove_tmpdir();
}

PT_MAIN()
