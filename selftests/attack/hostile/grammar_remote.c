// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ways to an mm from outside, and from one task's number to its peers: by pid, by /proc, by
 * ptrace; and what a process confines itself by.
 */
#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hostile.h"

#define PIDS	400	/* those of a machine that has just booted */

#ifndef PAGEMAP_SCAN
#define PAGEMAP_SCAN 0xc0606610	/* Linux 6.7: _IOWR('f', 16, struct pm_scan_arg) */
#endif

static pid_t some_pid(struct actor *a)
{
	switch (pick(a, 4)) {
	case 0: return a->pid;
	case 1: return a->child > 0 ? a->child : a->pid;
	case 2: return raw6(SYS_getppid, 0, 0, 0, 0, 0, 0);
	default: return 2 + pick(a, PIDS);
	}
}

/* To store to a peer's memory is allowed, and would only end it: these stay with one's own. */
static uint64_t own_addr(struct actor *a)
{
	return pick(a, 3) ? (uintptr_t)a->arena + pick(a, ARENA_PAGES) * PAGE : any_addr(a);
}

static void by_vm(struct actor *a)
{
	struct iovec mine = { a->scratch, PAGE }, theirs = { (void *)own_addr(a), PAGE };
	const bool own = theirs.iov_base >= (void *)a->arena &&
			 theirs.iov_base < (void *)(a->arena + ARENA_PAGES * PAGE);
	unsigned int nr = own && pick(a, 2) ? SYS_process_vm_writev : SYS_process_vm_readv;

	CALL(a, nr, some_pid(a), &mine, 1, &theirs, 1, pick(a, 2));
}

static long open_of(struct actor *a, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", some_pid(a), name);
	return CALL(a, SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

static void by_mem(struct actor *a)
{
	long fd = open_of(a, "mem", O_RDWR);

	if (fd < 0)
		return;
	CALL(a, SYS_pread64, fd, a->scratch, PAGE, any_addr(a));
	CALL(a, SYS_pwrite64, fd, a->scratch, PAGE, (uintptr_t)a->arena);
	keep_fd(a, fd);
}

/* A setting of a process that may be one of an mm, in its file of /proc */
static void by_file(struct actor *a)
{
	static const char *const files[] = {
		"clear_refs", "coredump_filter", "oom_score_adj", "attr/current", "attr/exec",
		"loginuid", "timers", "comm",
	};
	static const char *const texts[] = { "1", "4", "5", "999", "0xff", "unconfined" };
	const char *text = texts[pick(a, ARRAY(texts))];
	long fd = open_of(a, files[pick(a, ARRAY(files))], O_WRONLY);

	if (fd < 0)
		return;
	CALL(a, SYS_write, fd, text, pick(a, 4) + 1);
	raw6(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* struct pm_scan_arg of newer headers: write protection is what changes an mm. */
static void by_pagemap(struct actor *a)
{
	uint64_t arg[12] = { sizeof(arg), pick(a, 4), any_addr(a), 0 };
	long fd = open_of(a, "pagemap", O_RDONLY);

	arg[3] = arg[2] + any_len(a);
	if (fd < 0)
		return;
	CALL(a, SYS_ioctl, fd, PAGEMAP_SCAN, arg);
	raw6(SYS_close, fd, 0, 0, 0, 0, 0);
}

static void by_pidfd(struct actor *a)
{
	struct iovec range = { (void *)any_addr(a), any_len(a) };
	long fd = CALL(a, SYS_pidfd_open, some_pid(a), 0);

	switch (pick(a, 4)) {
	case 0: CALL(a, SYS_process_madvise, fd, &range, 1, pick(a, 26), 0); break;
	case 1: CALL(a, SYS_process_mrelease, fd, 0); break;
	case 2: keep_fd(a, CALL(a, SYS_pidfd_getfd, fd, pick(a, 20), 0)); break;
	default: CALL(a, SYS_kcmp, a->pid, some_pid(a), pick(a, 8), pick(a, 9), pick(a, 9));
	}
	keep_fd(a, fd);
}

/* Its own child only: a peer would be found stuck. */
static void by_ptrace(struct actor *a)
{
	if (a->child <= 0 || CALL(a, SYS_ptrace, PTRACE_SEIZE, a->child, 0, 0) < 0)
		return;
	CALL(a, SYS_ptrace, PTRACE_INTERRUPT, a->child, 0, 0);
	CALL(a, SYS_ptrace, PTRACE_POKEDATA, a->child, any_addr(a), 0);
	if (pick(a, 2))
		CALL(a, SYS_ptrace, PTRACE_DETACH, a->child, 0, pick(a, 2) ? SIGKILL : 0);
}

void op_remote(struct actor *a)
{
	switch (pick(a, 6)) {
	case 0: by_vm(a); break;
	case 1: by_mem(a); break;
	case 2: by_file(a); break;
	case 3: by_pagemap(a); break;
	case 4: by_pidfd(a); break;
	default: by_ptrace(a);
	}
}

/* ---- settings of a process that are one of its mm, or confine it ---- */

static void landlock(struct actor *a)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = 1ULL << pick(a, 13) };
	long fd = CALL(a, SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	CALL(a, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	CALL(a, SYS_landlock_restrict_self, fd, 0);
	keep_fd(a, fd);
}

static void of_the_mm(struct actor *a)
{
	static const int options[] = {
		PR_SET_MM, 41 /* THP_DISABLE */, 65 /* MDWE */, 67 /* MEMORY_MERGE */,
		PR_SET_TAGGED_ADDR_CTRL, PR_SET_VMA, PR_SET_TSC, PR_SET_PDEATHSIG,
		62 /* SCHED_CORE */,
	};

	CALL(a, SYS_prctl, options[pick(a, ARRAY(options))], pick(a, 15), any_addr(a), any_len(a),
	     0);
}

static void of_the_processor(struct actor *a)
{
	uint32_t descriptor[4] = { pick(a, 8), (uint32_t)any_addr(a), 0xfffff, 0x51 };

	if (pick(a, 2))
		CALL(a, SYS_modify_ldt, pick(a, 2) ? 1 : 0x11, descriptor, sizeof(descriptor));
	else
		CALL(a, SYS_arch_prctl, 0x4000 + pick(a, 8), pick(a, 64));
}

void op_settings(struct actor *a)
{
	switch (pick(a, 7)) {
	case 0: landlock(a); break;
	case 1 ... 2: of_the_mm(a); break;
	case 3: of_the_processor(a); break;
	case 4: CALL(a, SYS_keyctl, pick(a, 3) ? 1 : 18 /* to the parent */, 0); break;
	case 5: CALL(a, SYS_membarrier, 1U << pick(a, 10), 0, 0); break;
	default: keep_fd(a, CALL(a, SYS_pkey_alloc, 0, pick(a, 4)));
	}
}
