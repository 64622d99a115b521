// SPDX-License-Identifier: GPL-2.0-only
/* The command's root: the host's, and a tmpfs over it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"

#define HOSTNAME	"pvas-vm"
#define OUT_DIR		"/run/pvas-out"
#define NEW_ROOT	"/newroot"

/*
 * /tmp stays what it is on the host (in the overlay), so that a command can be
 * run from there. Only the first entries must work with any kernel.
 */
static const struct {
	const char *type;
	const char *dir;
	unsigned long flags;
	const char *data;
	bool optional;
} mounts[] = {
	{ "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", false },
	{ "sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", false },
	{ "devtmpfs", "/dev", MS_NOSUID, "mode=755", false },
	{ "devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC,
	  "gid=5,mode=620,ptmxmode=666", false },
	{ "tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777", false },
	{ "tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755", false },
	{ "tmpfs", "/run/lock", MS_NOSUID | MS_NODEV, "mode=1777", false },
	{ "cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "debugfs", "/sys/kernel/debug", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "tracefs", "/sys/kernel/tracing", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "securityfs", "/sys/kernel/security", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "mqueue", "/dev/mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, "", true },
	{ "hugetlbfs", "/dev/hugepages", MS_NOSUID | MS_NODEV, "mode=1777", true },
};

void mount_root(void)
{
	must_mount("root", "/lower", "9p", MS_RDONLY, P9_OPTIONS ",cache=loose");
	must_mount("tmpfs", "/rw", "tmpfs", 0, "mode=755,size=80%");
	mkdir("/rw/upper", 0755);
	mkdir("/rw/work", 0755);
	must_mount("overlay", NEW_ROOT, "overlay", 0,
		   "lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work");
}

void enter_root(void)
{
	if (chdir(NEW_ROOT) || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		die("enter the new root: %s", strerror(errno));
	umask(022);
}

void mount_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].dir, 0755);
		if (mount(mounts[i].type, mounts[i].dir, mounts[i].type,
			  mounts[i].flags, mounts[i].data) &&
		    !mounts[i].optional)
			die("mount %s: %s", mounts[i].dir, strerror(errno));
	}
	must_mount("out", OUT_DIR, "9p", MS_NOSUID | MS_NODEV, P9_OPTIONS);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

/* Of a kernel that is not installed on the host: modprobe finds what tests need. */
void link_modules(void)
{
	char path[300];

	if (!job.modules)
		return;
	snprintf(path, sizeof(path), "/lib/modules/%s", strrchr(job.modules, '/') + 1);
	if (symlink(job.modules, path) && errno != EEXIST)
		die("%s: %s", path, strerror(errno));
}

/* mpirun and others refuse a machine without a name or without lo. */
void name_host(void)
{
	static const char line[] = "127.0.1.1 " HOSTNAME "\n";
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd;

	sethostname(HOSTNAME, strlen(HOSTNAME));
	fd = open("/etc/hosts", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		klog("/etc/hosts: %s", strerror(errno));
	close(fd);

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		klog("lo: %s", strerror(errno));
	close(fd);
}
