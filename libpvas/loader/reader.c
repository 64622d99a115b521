// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a process that reads the memory of others, and looks at their files, for the
 * launcher.
 *
 * It begins as a copy of the launcher, in the blob and on a stack beside it. The owner of what
 * it reads can make it wait for ever, in a state in which the kernel doesn't let it end. So it
 * keeps nothing of the launcher's: neither memory nor descriptors, except its connection, and
 * /proc.
 */
#include "reader.h"

#include <linux/close_range.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <stddef.h>

#include "../../kmod/pvas_elf.h"
#include "../rawsys.h"

#define CONNECTION	0	/* its descriptors */
#define PROC		1
#define USER_END	(PVAS_ELF_ADDR_MAX - PVAS_ELF_PAGE)
#define NUMBERS_MAX	(1 << 20)
#define END_TRIES	100	/* milliseconds */

/* Of <signal.h> and <sys/socket.h>, which need libc */
#define KILL		9
#define TERM		15
#define CHILD		17
#define DEFAULT		0UL
#define IGNORE		1UL
#define UNBLOCK		1
#define NO_HANG		1
#define RIGHTS		1
#define LEVEL_SOCKET	1
#define NO_SIGNAL	0x4000
#define CMSG_CLOEXEC	0x40000000
#define SHARE_FILES	0x400	/* CLONE_FILES */

struct action {
	unsigned long handler, flags, restorer, mask;
};

struct part {
	void *data;
	unsigned long len;
};

struct message {
	void *name;
	int name_len;
	struct part *parts;
	unsigned long nr_parts;
	void *control;
	unsigned long control_len;
	int flags;
};

struct control {
	unsigned long len;
	int level;
	int type;
	int fd;
	int pad;
};

void pvas_reader_main(unsigned long lo, unsigned long hi, int connection, int proc);

static void __attribute__((noreturn)) end(void)
{
	for (;;)
		pvas_raw1(__NR_exit_group, 0);
}

/* Like the launcher's memory, this must not be kept by who hangs. */
static void unmap_all_but(unsigned long lo, unsigned long hi)
{
	pvas_raw2(__NR_munmap, 0, lo);
	pvas_raw2(__NR_munmap, hi, USER_END - hi);
}

/* ---- descriptors ---- */

static void close_one_by_one(int first)
{
	struct rlimit64 limit = { NUMBERS_MAX, NUMBERS_MAX };
	int fd;

	pvas_raw4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
	for (fd = first; fd < NUMBERS_MAX && (__u64)fd < limit.rlim_cur; fd++)
		pvas_raw1(__NR_close, fd);
}

/*
 * To close a file can take as long as its server doesn't answer. So the table is left to another
 * process, whose end closes it.
 */
static void leave_descriptors(int first)
{
	const struct __kernel_timespec long_enough = { .tv_sec = 1 };
	long pid = pvas_raw4(__NR_clone, SHARE_FILES | CHILD, 0, 0, 0);
	long err;

	if (!pid) {
		pvas_raw2(__NR_prctl, PR_SET_PDEATHSIG, KILL);
		/* In a sandbox the kill below may be forbidden. */
		pvas_raw2(__NR_nanosleep, (long)&long_enough, 0);
		end();
	}
	err = pvas_raw3(__NR_close_range, first, ~0U, CLOSE_RANGE_UNSHARE);
	if (pid > 0)
		pvas_raw2(__NR_kill, pid, KILL);
	if (err)
		close_one_by_one(first);
}

/* ---- messages ---- */

/* Returns the message's length. Stores the descriptor that came with it, or -1. */
static long receive(struct pvas_reader_request *r, int *fd)
{
	struct part part = { r, sizeof(*r) };
	struct control c = { .len = 0 };
	struct message m = {
		.parts = &part, .nr_parts = 1, .control = &c, .control_len = sizeof(c),
	};
	long n;

	do {
		n = pvas_raw3(__NR_recvmsg, CONNECTION, &m, CMSG_CLOEXEC);
	} while (n == -EINTR);
	*fd = n > 0 && m.control_len >= offsetof(struct control, pad) && c.type == RIGHTS &&
	      c.level == LEVEL_SOCKET ? c.fd : -1;
	return n;
}

static void answer(struct pvas_reader_answer *a, unsigned long len)
{
	struct __kernel_timespec t = { 0 };

	pvas_raw2(__NR_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &t);
	a->used = (__u64)t.tv_sec * 1000000000 + (__u64)t.tv_nsec;
	pvas_raw6(__NR_sendto, CONNECTION, (long)a,
		  (long)(offsetof(struct pvas_reader_answer, data) + len), NO_SIGNAL, 0, 0);
}

/* With a descriptor, if @fd is one */
static void pass(struct pvas_reader_answer *a, int fd)
{
	struct part part = { a, offsetof(struct pvas_reader_answer, data) };
	struct control c = {
		.len = offsetof(struct control, pad), .level = LEVEL_SOCKET, .type = RIGHTS,
		.fd = fd,
	};
	struct message m = { .parts = &part, .nr_parts = 1 };

	if (fd >= 0) {
		m.control = &c;
		m.control_len = sizeof(c);
	}
	pvas_raw3(__NR_sendmsg, CONNECTION, &m, NO_SIGNAL);
}

/* ---- requests ---- */

/* Returns in the new reader, too: 0. */
static long begin_another(int connection)
{
	const unsigned long term = 1UL << (TERM - 1);
	long pid = pvas_raw4(__NR_clone, CHILD, 0, 0, 0);

	if (!pid) {
		pvas_raw2(__NR_prctl, PR_SET_PDEATHSIG, KILL);
		pvas_raw4(__NR_rt_sigprocmask, UNBLOCK, &term, 0, sizeof(term));
		pvas_raw3(__NR_dup3, connection, CONNECTION, O_CLOEXEC);
	}
	if (connection >= 0)
		pvas_raw1(__NR_close, connection);
	return pid;
}

static void copy(int memory, struct pvas_reader_request *r, struct pvas_reader_answer *a)
{
	unsigned long len = r->len < PVAS_READER_PAGE ? r->len : PVAS_READER_PAGE;

	if (r->op == PVAS_READER_READ)
		a->result = pvas_raw4(__NR_pread64, memory, a->data, len, r->at);
	else
		a->result = pvas_raw4(__NR_pwrite64, memory, r->data, len, r->at);
	answer(a, r->op == PVAS_READER_READ && a->result > 0 ? (unsigned long)a->result : 0);
}

/* The type of the file system of an open file, which is closed; or -errno */
static long close_and_tell(long fd)
{
	struct statfs fs;
	long err = fd < 0 ? fd : pvas_raw2(__NR_fstatfs, fd, (long)&fs);

	if (fd >= 0)
		pvas_raw1(__NR_close, fd);
	return err ? err : (long)fs.f_type;
}

/*
 * Links are not followed from the first path on: where they lead, this process may have rights
 * that the owner of what is there has not.
 */
static long type_of(const char *path, const char *below)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
	};
	long fd = pvas_raw4(__NR_openat, PROC, path, O_PATH | O_CLOEXEC, 0), root = fd;

	if (below && fd >= 0) {
		fd = pvas_raw4(__NR_openat2, root, below, &how, sizeof(how));
		pvas_raw1(__NR_close, root);
	}
	return close_and_tell(fd);
}

static void look_up(struct pvas_reader_request *r, struct pvas_reader_answer *a)
{
	r->data[PVAS_READER_PAGE - 1] = 0;
	a->result = type_of(r->data, r->at && r->at < PVAS_READER_PAGE ? r->data + r->at : 0);
	answer(a, 0);
}

static void __attribute__((noreturn)) open_and_end(struct pvas_reader_request *r,
						   struct pvas_reader_answer *a)
{
	long fd;

	r->data[PVAS_READER_PAGE - 1] = 0;
	fd = pvas_raw4(__NR_openat, PROC, r->data, r->len | O_CLOEXEC, 0);
	if (fd < 0 && r->at)
		fd = pvas_raw4(__NR_openat, PROC, r->data, r->at | O_CLOEXEC, 0);
	a->result = fd < 0 ? fd : 0;
	a->used = 0;
	pass(a, (int)fd);
	end();
}

/* Until the other end of the connection is closed. Returns whether this is the first reader. */
static int serve(struct pvas_reader_request *r, struct pvas_reader_answer *a)
{
	int fd, memory = -1, first = 1;

	while (receive(r, &fd) > 0) {
		if (r->op == PVAS_READER_NEW) {
			a->result = begin_another(fd);
			if (a->result)
				answer(a, 0);
			else
				first = 0;
			continue;
		}
		if (r->op == PVAS_READER_TYPE) {
			look_up(r, a);
			continue;
		}
		if (r->op == PVAS_READER_OPEN)
			open_and_end(r, a);
		/* Even if none has come, for want of a descriptor: not that of the one before */
		if (r->op & PVAS_READER_OTHER) {
			pvas_raw1(__NR_close, memory);
			memory = fd;
			r->op &= ~(__u32)PVAS_READER_OTHER;
		}
		copy(memory, r, a);
	}
	return first;
}

/*
 * The first one outlives the others, which would otherwise become children of a launcher that is
 * a subreaper. Those that can be ended are. In a sandbox that forbids them a group of their own
 * they have a moment to end with their connections; the kernel kills the rest with this one.
 */
static void end_others(int in_own_group)
{
	const struct __kernel_timespec ms = { .tv_nsec = 1000000 };
	int tries = END_TRIES;
	long pid;

	if (in_own_group)
		pvas_raw2(__NR_kill, 0, TERM);
	do {
		pid = pvas_raw4(__NR_wait4, -1, 0, in_own_group ? 0 : NO_HANG, 0);
		if (!pid)
			pvas_raw2(__NR_nanosleep, (long)&ms, 0);
	} while ((pid >= 0 || pid == -EINTR) && (pid || --tries));
}

/* All signals are blocked; these two matter. The kernel reaps the others that end. */
static void set_signals(void)
{
	const struct action ignore = { .handler = IGNORE }, end = { .handler = DEFAULT };

	pvas_raw4(__NR_rt_sigaction, CHILD, &ignore, 0, sizeof(ignore.mask));
	pvas_raw4(__NR_rt_sigaction, TERM, &end, 0, sizeof(end.mask));
}

/* [@lo, @hi) has the blob and the stack. */
void pvas_reader_main(unsigned long lo, unsigned long hi, int connection, int proc)
{
	struct pvas_reader_request r;
	struct pvas_reader_answer a;
	int in_own_group, has_proc;

	pvas_raw2(__NR_prctl, PR_SET_NAME, "pvas-reader");
	in_own_group = !pvas_raw2(__NR_setpgid, 0, 0);
	set_signals();
	unmap_all_but(lo, hi);
	if (connection != CONNECTION)
		pvas_raw3(__NR_dup3, connection, CONNECTION, O_CLOEXEC);
	has_proc = pvas_raw3(__NR_dup3, proc, PROC, O_CLOEXEC) == PROC;
	leave_descriptors(has_proc ? PROC + 1 : CONNECTION + 1);
	if (serve(&r, &a))
		end_others(in_own_group);
	end();
}
