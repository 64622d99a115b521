// SPDX-License-Identifier: GPL-2.0-only
/* Kernel modules: those that reach the host, and the one under test. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"

#define UNLOAD_SECONDS	10		/* for the last references to go */
#define LEAK_AGE	6		/* kmemleak trusts objects older than 5 s */
#define LEAK_FILE	"/sys/kernel/debug/kmemleak"

/* Inserts the modules named in /modules/list, in that order. */
void insert_boot_modules(void)
{
	char name[256], path[300];
	FILE *list;
	int fd;

	list = fopen("/modules/list", "re");
	if (!list)
		die("/modules/list: %s", strerror(errno));
	while (fscanf(list, "%255s", name) == 1) {
		snprintf(path, sizeof(path), "/modules/%s", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die("%s: %s", path, strerror(errno));
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			die("insert %s: %s", name, strerror(errno));
		close(fd);
	}
	fclose(list);
}

void insert_module(int fd)
{
	if (fd < 0 || !syscall(SYS_finit_module, fd, "", 0))
		return;
	tell("module %s can't be inserted: %s", job.module, strerror(errno));
	klog("insert %s: %s", job.module, strerror(errno));
	tell("end");
	power_off();
}

static void module_name(char *name, size_t size)
{
	char *p;

	snprintf(name, size, "%s", job.module);
	for (p = name; *p && *p != '.'; p++)
		if (*p == '-')
			*p = '_';
	*p = '\0';
}

/* The command may have removed it already. References may need a moment. */
void remove_module(void)
{
	char name[64], path[128], refs[32] = "?";
	long end = uptime() + UNLOAD_SECONDS;
	int fd, err;
	ssize_t n;

	module_name(name, sizeof(name));
	while (syscall(SYS_delete_module, name, O_NONBLOCK)) {
		err = errno;
		if (err == ENOENT)
			return;
		if (err == EAGAIN && uptime() < end) {
			usleep(50000);
			continue;
		}
		snprintf(path, sizeof(path), "/sys/module/%s/refcnt", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, refs, sizeof(refs) - 1);
		if (n > 0)
			refs[n - (refs[n - 1] == '\n')] = '\0';
		close(fd);
		klog("remove %s: %s, references: %s", name, strerror(err), refs);
		tell("module %s can't be removed: %s, references left: %s",
		     name, strerror(err), refs);
		return;
	}
	klog("module removed");
}

/* Puts what kmemleak knows into the kernel log, where the host finds it. */
void find_leaks(void)
{
	long old = uptime() + LEAK_AGE;
	char line[512];
	FILE *leaks;

	if (access(LEAK_FILE, W_OK))
		return;
	klog("kmemleak: scan");
	/* A leak is reported when a second scan finds it unchanged. */
	if (write_file(LEAK_FILE, "scan"))
		klog("fail: kmemleak: the first scan failed");
	while (uptime() < old)
		sleep(1);
	if (write_file(LEAK_FILE, "scan"))
		klog("fail: kmemleak: the second scan failed");
	leaks = fopen(LEAK_FILE, "re");
	while (leaks && fgets(line, sizeof(line), leaks)) {
		line[strcspn(line, "\n")] = '\0';
		klog("kmemleak: %s", line);
	}
	if (leaks)
		fclose(leaks);
}
