/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests, as root: a mount of this process' own whose file server doesn't answer. */
#ifndef PVAS_TEST_HUNG_SERVER_H
#define PVAS_TEST_HUNG_SERVER_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_ID		2
#define CHANGED_ID	3
#define BARE_ID		4
#define ONCE_ID		5
#define BARE_SIZE	80	/* of a message queue, as far as that can be seen */
#define FILE_SIZE	16384
#define CLOSE_HANGS	2	/* stored to *holds_close, if that was not 0, by a close */

/*
 * ---- a file system of four files: of one, "changed", changes are never accepted; of the others
 * the contents never come; one, "bare", has no blocks, and one, "once", is opened once. Their close
 * may never end. Whether there is a "proc", and of what type the file system is, is never
 * answered. ----
 */

static inline uint64_t id_of(const char *name)
{
	return !strcmp(name, "changed") ? CHANGED_ID : !strcmp(name, "bare") ? BARE_ID :
	       !strcmp(name, "once") ? ONCE_ID : FILE_ID;
}

static inline struct fuse_attr attr_of(uint64_t id)
{
	return (struct fuse_attr){
		.ino = id, .nlink = 1, .size = id == BARE_ID ? BARE_SIZE : FILE_SIZE,
		.blocks = id == BARE_ID ? 0 : FILE_SIZE / 512,
		.mode = id >= FILE_ID ? S_IFREG | 0644 : S_IFDIR | 0755,
	};
}

static inline void reply(int dev, uint64_t unique, int err, const void *data, size_t len)
{
	static char buf[sizeof(struct fuse_out_header) + FILE_SIZE];
	struct fuse_out_header out = { .unique = unique, .error = -err };

	out.len = (uint32_t)(sizeof(out) + (err ? 0 : len));
	memcpy(buf, &out, sizeof(out));
	if (!err && len)
		memcpy(buf + sizeof(out), data, len);
	if (write(dev, buf, out.len) < 0)
		_exit(1);
}

static inline void answer(int dev, const struct fuse_in_header *in, volatile int *holds_close)
{
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };
	struct fuse_attr_out attr = { .attr_valid = 1000, .attr = attr_of(in->nodeid) };
	const char *name = (const char *)(in + 1);
	uint64_t id = id_of(name);
	struct fuse_entry_out entry = {
		.nodeid = id, .attr_valid = 1000, .entry_valid = 1000, .attr = attr_of(id),
	};
	static const char zeroes[FILE_SIZE];
	static int opened;
	struct fuse_open_out file = { .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(dev, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		reply(dev, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_LOOKUP:
		if (strcmp(name, "proc"))
			reply(dev, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_OPEN:
		if (in->nodeid != ONCE_ID || !opened++)
			reply(dev, in->unique, 0, &file, sizeof(file));
		break;
	case FUSE_RELEASE:
		reply(dev, in->unique, 0, NULL, 0);
		break;
	case FUSE_READ:
		if (in->nodeid == CHANGED_ID)
			reply(dev, in->unique, 0, zeroes,
			      ((const struct fuse_read_in *)(in + 1))->size);
		break;
	case FUSE_STATFS:
	case FUSE_WRITE:
	case FUSE_IOCTL:	/* as of isatty(3) */
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		if (in->opcode == FUSE_FLUSH && *holds_close)
			*holds_close = CLOSE_HANGS;
		else
			reply(dev, in->unique, ENOSYS, NULL, 0);
	}
}

static inline void __attribute__((noreturn)) serve(int dev, volatile int *holds_close)
{
	static char buf[1 << 17] __attribute__((aligned(8)));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Even if the test hangs: meanwhile ps does, too. */
	alarm(60);
	while (read(dev, buf, sizeof(buf)) > 0)
		answer(dev, (const struct fuse_in_header *)buf, holds_close);
	_exit(0);
}

static inline int mount_over(const char *dir, int dev)
{
	char options[96];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", dev);
	return mount("hung", dir, "fuse", MS_NODEV | MS_NOSUID, options);
}

static inline int mount_it(const char *dir, int dev)
{
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount_over(dir, dev);
}

/* ---- a server in a process, and its files in a new directory ---- */

struct hung_server {
	char dir[32];
	char file[64];
	pid_t pid;
};

/* NULL, or why there can't be one here */
static inline const char *hung_server_start(struct hung_server *server, volatile int *holds_close)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	server->pid = 0;
	strcpy(server->dir, "/tmp/pvas-hung-XXXXXX");
	if (dev < 0 || getuid())
		return "needs root and /dev/fuse";
	if (!mkdtemp(server->dir))
		return "no directory in /tmp";
	if (mount_it(server->dir, dev)) {
		rmdir(server->dir);
		return "can't mount";
	}
	server->pid = fork();
	if (!server->pid)
		serve(dev, holds_close);
	close(dev);
	snprintf(server->file, sizeof(server->file), "%s/file", server->dir);
	return NULL;
}

/* With an own *@holds_close, which processes of the test can share */
static inline const char *hung_server_start_shared(struct hung_server *server,
						   volatile int **holds_close)
{
	*holds_close = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	return hung_server_start(server, *holds_close);
}

/* With the server its files fail, and who waits goes on. */
static inline void hung_server_stop(struct hung_server *server)
{
	if (server->pid <= 0)
		return;
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	umount2(server->dir, MNT_DETACH);
	rmdir(server->dir);
}

#endif /* PVAS_TEST_HUNG_SERVER_H */
