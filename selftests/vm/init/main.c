// SPDX-License-Identifier: GPL-2.0-only
/*
 * Process 1 of the test machine that selftests/vm/run boots.
 *
 * Built static and put into an initramfs with the few modules needed to reach
 * the host's files. It makes a root out of the host's root file system (9p,
 * read-only) and a tmpfs (overlayfs), inserts the module under test, runs one
 * command, removes the module, looks for leaks, reports and powers off.
 *
 * Ways to the host:
 *   /dev/kmsg	the kernel log, which the host records from ttyS0 and judges
 *   /dev/ttyS1	the report, one line each: "exit N", "timeout",
 *		"module TEXT", "fail TEXT", and at last "end"
 *   9p "io"	in: the file "job"; out: the files "stdout" and "stderr". The
 *		command can't see it
 *   9p "out"	/run/pvas-out, for the command's own use
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"

#define RACE_FILE	"/sys/kernel/debug/kcsan"

static int open_output(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

int main(void)
{
	struct stream out = { .name = "stdout" }, err = { .name = "stderr" };
	int module = -1, status;
	char path[300];

	mkdir("/dev", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	open_log();
	klog("init runs");
	mlockall(MCL_CURRENT | MCL_FUTURE);
	must_mount("proc", "/proc", "proc", 0, NULL);

	insert_boot_modules();
	must_mount("io", "/io", "9p", 0, P9_OPTIONS);
	read_job();
	out.to = open_output("/io/stdout");
	err.to = open_output("/io/stderr");
	if (job.module) {
		snprintf(path, sizeof(path), "/io/%s", job.module);
		module = open(path, O_RDONLY | O_CLOEXEC);
		if (module < 0)
			die("%s: %s", path, strerror(errno));
	}
	umount2("/io", MNT_DETACH);

	mount_root();
	enter_root();
	mount_all();
	link_modules();
	name_host();

	/* From here on the host takes a warning for a failure. */
	klog("judged from here");
	/* Not before: the kernel's own start is slow enough. */
	if (!access(RACE_FILE, W_OK) && write_file(RACE_FILE, "on"))
		klog("fail: kcsan: can't be switched on");
	insert_module(module);
	klog("command starts");
	status = run_command(&out, &err);
	klog("command ended with status %d", status);
	kill_all();
	if (job.module) {
		remove_module();
		find_leaks();
	}
	tell("exit %d", status);
	tell("end");
	klog("power off");
	power_off();
}
