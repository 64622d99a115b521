/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A FUSE file system with a file of one page, whose server reads and opens, but never
 * answers a request that writes, unless the page begins with FUSE_ANSWERED.
 *
 * The kernel may write the page back after any store, and lets nobody store to it again
 * before the server has answered. So of several stores all but the last one put
 * FUSE_ANSWERED there.
 *
 * The file FUSE_NEVER_OPENS is never opened: the server stops, by SIGSTOP, so that its parent knows
 * of the attempt, and only lets a signal interrupt that.
 *
 * The file FUSE_HANGS can't be read: the first attempt fails, and at the second the server stops.
 * So a page fault that has dropped mmap_lock, failed, and taken it again, holds it for ever.
 *
 * The file FUSE_PROGRAM is the server's own program, of which only the first page can be read: at
 * the next one the server stops.
 *
 * The file FUSE_LINK is a link to the server's own program: when somebody follows it, the server
 * stops, and answers when it has been continued.
 */
#ifndef SILENT_FUSE_H
#define SILENT_FUSE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUSE_PAGE 4096UL
#define FUSE_ANSWERED 'a'
#define FUSE_NEVER_OPENS "never"
#define FUSE_HANGS "hangs"
#define FUSE_PROGRAM "program"
#define FUSE_LINK "link"
/* The path of the file: nobody but its task opens it, because closing it can wait, too. */
#define FUSE_FILE_ENV "SILENT_FILE"

enum { FILE_NODE = 2, NEVER_NODE, HANGS_NODE, PROGRAM_NODE, LINK_NODE };

struct answer {
	struct fuse_out_header head;
	char data[FUSE_PAGE];
};

static void fill_attr(struct fuse_attr *attr, uint64_t node)
{
	struct stat program;

	attr->ino = node;
	attr->mode = node == FUSE_ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0777;
	if (node == LINK_NODE)
		attr->mode = S_IFLNK | 0777;
	attr->nlink = 1;
	attr->size = FUSE_PAGE;
	if (node == PROGRAM_NODE && !stat("/proc/self/exe", &program))
		attr->size = program.st_size;
	attr->blksize = FUSE_PAGE;
}

static int first_page(void *data)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, data, FUSE_PAGE);

	close(fd);
	return (int)n;
}

static int fuse_answer(const struct fuse_in_header *in, void *data)
{
	struct fuse_init_out *init = data;
	struct fuse_entry_out *entry = data;
	struct fuse_attr_out *attr = data;

	switch (in->opcode) {
	case FUSE_INIT:
		init->major = FUSE_KERNEL_VERSION;
		init->minor = 31;
		init->max_write = 4096;
		init->flags = FUSE_WRITEBACK_CACHE;
		init->time_gran = 1;
		return sizeof(*init);
	case FUSE_LOOKUP:
		entry->nodeid = FILE_NODE;
		if (!strcmp((const char *)(in + 1), FUSE_NEVER_OPENS))
			entry->nodeid = NEVER_NODE;
		if (!strcmp((const char *)(in + 1), FUSE_HANGS))
			entry->nodeid = HANGS_NODE;
		if (!strcmp((const char *)(in + 1), FUSE_PROGRAM))
			entry->nodeid = PROGRAM_NODE;
		if (!strcmp((const char *)(in + 1), FUSE_LINK))
			entry->nodeid = LINK_NODE;
		entry->attr_valid = entry->entry_valid = 1000;
		fill_attr(&entry->attr, entry->nodeid);
		return sizeof(*entry);
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		attr->attr_valid = 1000;
		fill_attr(&attr->attr, in->nodeid);
		return sizeof(*attr);
	case FUSE_OPEN:
		return sizeof(struct fuse_open_out);
	case FUSE_READLINK:
		raise(SIGSTOP);
		return (int)readlink("/proc/self/exe", data, FUSE_PAGE);
	case FUSE_READ:
		return in->nodeid == PROGRAM_NODE ? first_page(data) : (int)FUSE_PAGE;
	case FUSE_WRITE:
		((struct fuse_write_out *)data)->size = FUSE_PAGE;
		return sizeof(struct fuse_write_out);
	default:
		return -1;
	}
}

/* For ever, because an answered write is no reason to answer the times that follow it. */
static bool is_silent(const struct fuse_in_header *in)
{
	const char *page = (const char *)(in + 1) + sizeof(struct fuse_write_in);

	if (in->opcode == FUSE_OPEN && in->nodeid == NEVER_NODE)
		return raise(SIGSTOP) == 0;
	if (in->opcode == FUSE_READ && in->nodeid == PROGRAM_NODE &&
	    ((const struct fuse_read_in *)(in + 1))->offset)
		return raise(SIGSTOP) == 0;
	return in->opcode == FUSE_SETATTR || (in->opcode == FUSE_WRITE && *page != FUSE_ANSWERED);
}

/* A read of FUSE_HANGS */
static bool fuse_hangs(int fd, const struct fuse_in_header *in)
{
	struct fuse_out_header head = {
		.len = sizeof(head), .error = -EIO, .unique = in->unique,
	};
	static int reads;

	if (in->opcode != FUSE_READ || in->nodeid != HANGS_NODE)
		return false;
	if (reads++)
		raise(SIGSTOP);
	else if (write(fd, &head, sizeof(head)) < 0)
		perror("silent_fuse.h");
	return true;
}

/* A signal interrupts the open that is not answered, and nothing else. */
static void fuse_interrupt(int fd, const struct fuse_in_header *in)
{
	static struct fuse_out_header head = { .len = sizeof(head), .error = -EINTR };

	if (in->opcode == FUSE_OPEN && in->nodeid == NEVER_NODE)
		head.unique = in->unique;
	else if (in->opcode == FUSE_INTERRUPT &&
		 ((const struct fuse_interrupt_in *)(in + 1))->unique == head.unique &&
		 write(fd, &head, sizeof(head)) < 0)
		perror("silent_fuse.h");
}

/* An answer with @len bytes of data, or -1: there is no such call. False: the mount is gone */
static bool fuse_send(int fd, const struct fuse_in_header *in, struct answer *answer, int len)
{
	answer->head.unique = in->unique;
	answer->head.error = len < 0 ? -ENOSYS : 0;
	answer->head.len = sizeof(answer->head) + (len < 0 ? 0 : len);
	return write(fd, answer, answer->head.len) >= 0 || errno == ENOENT;
}

static void fuse_serve(int fd)
{
	static union { struct fuse_in_header in; char all[256 << 10]; } ask;
	struct answer answer;
	int len;

	while (read(fd, &ask, sizeof(ask)) > 0 || errno == EINTR || errno == ENOENT) {
		fuse_interrupt(fd, &ask.in);
		if (fuse_hangs(fd, &ask.in) || is_silent(&ask.in) || ask.in.opcode == FUSE_FORGET ||
		    ask.in.opcode == FUSE_INTERRUPT)
			continue;
		memset(&answer, 0, sizeof(answer));
		len = fuse_answer(&ask.in, answer.data);
		if (!fuse_send(fd, &ask.in, &answer, len))
			break;
	}
	_exit(0);
}

/* The server's pid; the mount is below @dir. */
static pid_t fuse_up(const char *dir)
{
	char options[128];
	pid_t pid;
	int fd;

	if (system("modprobe fuse 2>/dev/null")) {
		/* It may be part of the kernel. */
	}
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("fuse", dir, "fuse", MS_NOSUID | MS_NODEV, options))
		return -errno;
	pid = fork();
	if (!pid)
		fuse_serve(fd);
	close(fd);
	return pid;
}

/* The same in a mount namespace of the caller's own, with the file's path in the environment */
static inline pid_t fuse_begin(const char *dir, const char *file)
{
	char path[256];
	pid_t pid;

	if (unshare(CLONE_NEWNS))
		return -errno;
	pid = fuse_up(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return pid > 0 && setenv(FUSE_FILE_ENV, path, 1) ? -errno : pid;
}

/* Waits until the server stops: somebody waits for its answer. */
static inline bool fuse_has_stopped(pid_t server)
{
	int status;

	return waitpid(server, &status, WUNTRACED) == server && WIFSTOPPED(status);
}

static inline void fuse_end(pid_t server, const char *dir)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	umount2(dir, MNT_DETACH);
}

#endif /* SILENT_FUSE_H */
