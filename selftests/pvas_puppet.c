// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks of a space without libpvas: puppets, which do the system calls that the test
 * writes into their slots (see pvas_raw.c), and the other requests of the ABI.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pvas_test.h"

static bool get(const struct pt_raw *raw, unsigned long at, void *buf, size_t len)
{
	return pread(raw->mem, buf, len, at) == (ssize_t)len;
}

static bool put(const struct pt_raw *raw, unsigned long at, const void *buf, size_t len)
{
	return pwrite(raw->mem, buf, len, at) == (ssize_t)len;
}

struct pvas_part pt_raw_part(const struct pt_raw *raw, unsigned int index)
{
	struct pvas_part part = { .state = -1U };

	get(raw, PT_TABLE_AT + index * sizeof(part), &part, sizeof(part));
	return part;
}

int pt_raw_arm(int fd, uint32_t id, uint32_t index, uint32_t flags)
{
	struct pvas_spawn spawn = {
		.size = sizeof(spawn), .id = id, .index = index, .flags = flags,
	};

	return pt_ioctl(fd, PVAS_IOC_SPAWN, &spawn);
}

pid_t pt_raw_spawn_by(struct pt_raw *raw, unsigned int index, int (*exec)(void *arg), void *arg)
{
	int fds[2], err = 0;
	pid_t pid;

	pt_raw_forget(raw, index);
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		err = pt_raw_arm(raw->fd, 0, index, 0);
		if (!err)
			err = exec(arg);
		_exit(write(fds[1], &err, sizeof(err)) != sizeof(err));
	}
	close(fds[1]);
	if (read(fds[0], &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(fds[0]);
	if (err)
		pt_wait(pid);
	return err ? err : pid;
}

static int exec_true(void __attribute__((unused)) *arg)
{
	execl("/bin/true", "puppet", (char *)NULL);
	return -errno;
}

pid_t pt_raw_spawn(struct pt_raw *raw, unsigned int index)
{
	return pt_raw_spawn_by(raw, index, exec_true, NULL);
}

/* A third of the test's time, so that it still can say what did not come. */
static long patience_end(void)
{
	return now_ms() + pt_timeout() * 1000L / 3;
}

static unsigned long slot_at(unsigned int index)
{
	return PT_SLOTS_AT + index * sizeof(struct pt_slot);
}

void pt_raw_forget(struct pt_raw *raw, unsigned int index)
{
	static const struct pt_slot idle;

	if (index < PT_SLOTS)
		put(raw, slot_at(index), &idle, sizeof(idle));
}

bool pt_raw_ask(struct pt_raw *raw, unsigned int index, long nr, const long args[6])
{
	struct pt_slot slot = { .nr = nr };
	uint32_t asked = 1;

	memcpy(slot.args, args, sizeof(slot.args));
	/* Last the state, for now the puppet looks at the rest. */
	return put(raw, PT_DATA_AT, raw->data, PT_DATA_LEN) &&
	       put(raw, slot_at(index), &slot, sizeof(slot)) &&
	       put(raw, slot_at(index), &asked, sizeof(asked));
}

bool pt_raw_answer(struct pt_raw *raw, unsigned int index, long *ret)
{
	struct pt_slot slot;

	if (!get(raw, slot_at(index), &slot, sizeof(slot)) || slot.state != 2)
		return false;
	*ret = slot.ret;
	return get(raw, PT_DATA_AT, raw->data, PT_DATA_LEN);
}

long pt_raw_call_args(struct pt_raw *raw, unsigned int index, long nr, const long args[6])
{
	long limit = patience_end(), ret;
	bool asked = false;

	while (!(asked = asked || pt_raw_ask(raw, index, nr, args)) ||
	       !pt_raw_answer(raw, index, &ret)) {
		if (now_ms() > limit)
			return -ETIMEDOUT;
		usleep(1000);
	}
	return ret;
}

long pt_raw_spawn_open(struct pt_raw *raw, unsigned int index, pid_t *pid)
{
	*pid = pt_raw_spawn(raw, index);
	if (*pid < 0)
		return *pid;
	strcpy(raw->data, "/dev/pvas");
	return pt_raw_call(raw, index, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDWR);
}

int pt_raw_count(int fd)
{
	struct pvas_query query = { .size = sizeof(query) };
	long err = pt_ioctl(fd, PVAS_IOC_QUERY, &query);

	return err ? (int)err : (int)query.count;
}

int pt_raw_spaces(int fd)
{
	struct pvas_info info = { .size = sizeof(info) };
	long err = pt_ioctl(fd, PVAS_IOC_INFO, &info);

	return err ? (int)err : (int)info.spaces;
}

int pt_raw_spaces_left(int fd)
{
	long limit = patience_end();

	while (pt_raw_spaces(fd) > 0 && now_ms() < limit)
		usleep(10000);
	return pt_raw_spaces(fd);
}

int pt_raw_query(void *arg)
{
	const struct pt_raw *raw = arg;
	struct pvas_query query = { .size = sizeof(query), .id = raw->create.id };

	return pt_ioctl(pt_open(), PVAS_IOC_QUERY, &query);
}
