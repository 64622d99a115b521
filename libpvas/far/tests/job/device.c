// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Of the program that tests a job's far memory: something writes to memory while that is paged. It
 * is a FUSE file system, whose server answers a read when it is told to: the kernel has looked up
 * the pages then, and writes the answer there. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

enum { SIZE = 64 * 1024, FILE_NODE = 2 };

static int asked[2], told[2];	/* pipes: the server has a read; it shall answer */

struct answer {
	struct fuse_out_header head;
	char data[SIZE];
};

static void fill_attr(struct fuse_attr *attr, uint64_t node)
{
	attr->ino = node;
	attr->mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
	attr->nlink = 1;
	attr->size = SIZE;
	attr->blksize = PAGE;
}

/* Bytes of data, or -1: there is no such call */
static int answer_to(const struct fuse_in_header *in, void *data)
{
	struct fuse_init_out *init = data;
	struct fuse_entry_out *entry = data;
	struct fuse_attr_out *attr = data;
	char c = 0;

	switch (in->opcode) {
	case FUSE_INIT:
		*init = (struct fuse_init_out){
			.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = SIZE,
			.time_gran = 1,
		};
		return sizeof(*init);
	case FUSE_LOOKUP:
		entry->nodeid = FILE_NODE;
		fill_attr(&entry->attr, FILE_NODE);
		return sizeof(*entry);
	case FUSE_GETATTR:
		fill_attr(&attr->attr, in->nodeid);
		return sizeof(*attr);
	case FUSE_OPEN:
		((struct fuse_open_out *)data)->open_flags = FOPEN_DIRECT_IO;
		return sizeof(struct fuse_open_out);
	case FUSE_READ:
		check(write(asked[1], &c, 1) == 1 && read(told[0], &c, 1) == 1);
		memset(data, 'd', SIZE);
		return (int)((const struct fuse_read_in *)(in + 1))->size;
	default:
		return -1;
	}
}

static void __attribute__((noreturn)) serve(int fd)
{
	static union { struct fuse_in_header in; char all[256 << 10]; } ask;
	static struct answer answer;
	int len;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &ask, sizeof(ask)) > 0 || errno == EINTR || errno == ENOENT) {
		if (ask.in.opcode == FUSE_FORGET || ask.in.opcode == FUSE_INTERRUPT)
			continue;
		memset(&answer, 0, sizeof(answer));
		len = answer_to(&ask.in, answer.data);
		answer.head.unique = ask.in.unique;
		answer.head.error = len < 0 ? -ENOSYS : 0;
		answer.head.len = (uint32_t)(sizeof(answer.head) + (len < 0 ? 0 : (size_t)len));
		if (write(fd, &answer, answer.head.len) < 0 && errno != ENOENT)
			break;
	}
	_exit(0);
}

static pid_t start_server(const char *dir)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];
	pid_t pid;

	check(fd >= 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	check(!mount("fuse", dir, "fuse", MS_NOSUID | MS_NODEV, options));
	pid = fork();
	if (!pid)
		serve(fd);
	close(fd);
	return pid;
}

struct transfer {
	char *to;
	int file;
};

static void *transfer(void *arg)
{
	const struct transfer *t = arg;

	check(pread(t->file, t->to, SIZE, 0) == SIZE);
	return NULL;
}

static bool has_all(const char *p)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		if (p[i] != 'd')
			return false;
	return true;
}

static bool is_resident(char *p)
{
	unsigned char there[SIZE / PAGE];
	size_t i;

	check(!mincore(p, SIZE, there));
	for (i = 0; i < SIZE / PAGE; i++)
		if (there[i] & 1)
			return true;
	return false;
}

/* While the pages are in use other pages leave, and not these; afterwards they do. */
void test_device(void)
{
	char dir[] = "/tmp/pvas-far-XXXXXX", path[64], c = 0;
	struct transfer t = { .to = far_memory(4 * MIB) };
	pthread_t thread;
	pid_t server;

	memset(t.to, 'a', SIZE);
	check(!pipe(asked) && !pipe(told) && mkdtemp(dir));
	server = start_server(dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	t.file = open(path, O_RDONLY);
	check(t.file >= 0 && !pthread_create(&thread, NULL, transfer, &t));
	check(read(asked[0], &c, 1) == 1);
	evict();
	check(write(told[1], &c, 1) == 1 && !pthread_join(thread, NULL));
	evict();
	check(!is_resident(t.to));
	check(has_all(t.to));
	close(t.file);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	check(!umount2(dir, MNT_DETACH) && !rmdir(dir));
}
