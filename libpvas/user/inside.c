// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: whether a caller shares our address space.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

#define PATTERN	64U		/* pages after that of the probes, some of them in use */
#define REGION		((1 + PATTERN) * PAGE)

/**
 * struct user_pattern - which pages of the region are in use
 * @lock:	held while it is made
 * @made:	how often
 * @used:	a random number, a bit for each page. 0: can't be seen
 */
struct user_pattern {
	pthread_mutex_t lock;
	unsigned int made;
	uint64_t used;
};

/* Zero in a fork child (MADV_WIPEONFORK), which can't guess what to write there. */
static uint64_t *probes;

/* Behind the probes: a fork child has no copy of it. */
static struct user_pattern *pattern;

#define PROBES	((PAGE - sizeof(*pattern)) / sizeof(*probes))

static int kcmp_forbidden;
static int reading_forbidden;

static void make_probes(void)
{
	void *p = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	/* A huge page would fill the pattern. It fails where there are none. */
	madvise(p, REGION, MADV_NOHUGEPAGE);
	if (madvise(p, REGION, MADV_WIPEONFORK)) {
		munmap(p, REGION);
		return;
	}
	probes = p;
	pattern = (struct user_pattern *)(probes + PROBES);
}

/*
 * A fork child has a copy of our stack too, and with it of all that was seen of the pattern
 * there. For callers of functions that saw it.
 */
static __attribute__((noinline)) void wipe_stack(void)
{
	char below[1 << 13];

	explicit_bzero(below, sizeof(below));
}

/* A bit for each page of the pattern; or -errno. 0 as well if this process may not know. */
static int pages_in_use(pid_t tid, uint64_t *mask)
{
	uint64_t entries[PATTERN] = { 0 };
	off_t at = (off_t)(((uint64_t)probes / PAGE + 1) * sizeof(entries[0]));
	int fd = user_proc_open(tid, "pagemap", O_RDONLY);
	unsigned int i;
	ssize_t n;

	*mask = 0;
	if (fd < 0)
		return fd;
	n = pread(fd, entries, sizeof(entries), at);
	close(fd);
	/* It has no memory any more. */
	if (n != sizeof(entries))
		return n < 0 ? -EACCES : -ESRCH;
	/* Bits 62 and 63: swapped out, present */
	for (i = 0; i < PATTERN; i++)
		*mask |= (uint64_t)!!(entries[i] >> 62) << i;
	return 0;
}

/* Under the lock. Pages that are in use because they are locked must be unlocked first. */
static void make_pattern(void)
{
	char *pages = (char *)probes + PAGE;
	uint64_t secret = 0, used;
	unsigned int i;

	munlock(pages, PATTERN * PAGE);
	madvise(pages, PATTERN * PAGE, MADV_DONTNEED);
	pvas_raw3(__NR_getrandom, &secret, sizeof(secret), 0);
	for (i = 0; i < PATTERN; i++)
		if (secret >> i & 1)
			*(volatile char *)(pages + i * PAGE) = 1;
	/* Without a descriptor now, it is taken to be as it was made. */
	if (pages_in_use(user_caller_self(), &used) && pattern->made)
		used = secret;
	__atomic_store_n(&pattern->used, used, __ATOMIC_RELEASE);
	__atomic_store_n(&pattern->made, pattern->made + 1, __ATOMIC_RELEASE);
}

/*
 * There is none before the first space, and in a fork child of a launcher; and if the
 * launcher locks all of its memory, all pages are in use. Returns how many were made so far; or
 * -errno if it can't be seen now: the last one remains.
 */
static __attribute__((noinline)) int ensure_pattern(void)
{
	uint64_t used;
	int err;

	pthread_mutex_lock(&pattern->lock);
	err = pages_in_use(user_caller_self(), &used);
	if (!pattern->made || (!err && (!used || used != pattern->used)))
		make_pattern();
	if (!err)
		err = (int)pattern->made;
	pthread_mutex_unlock(&pattern->lock);
	return err;
}

static long compare_by_kernel(pid_t tid)
{
	return pvas_raw4(__NR_kcmp, user_caller_self(), tid, KCMP_VM, 0);
}

/* The number at @probe in the caller's memory: its size; or -errno, -EFAULT if there is none. */
static long read_probe(pid_t tid, const uint64_t *probe, uint64_t *seen)
{
	struct iovec here = { seen, sizeof(*seen) }, there = { (void *)probe, sizeof(*seen) };

	return pvas_raw6(__NR_process_vm_readv, tid, (long)&here, 1, (long)&there, 1, 0);
}

/* The same where a container forbids that */
static long read_probe_by_proc(pid_t tid, const uint64_t *probe, uint64_t *seen)
{
	int fd = user_proc_open(tid, "mem", O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = pread(fd, seen, sizeof(*seen), (off_t)(uintptr_t)probe);
	if (n < 0)
		n = errno == EIO ? -EFAULT : -errno;
	close(fd);
	return n ? n : -ESRCH;		/* it has no memory any more */
}

/*
 * The kernel reports callers by their ids in our pid namespace. In the /proc of another
 * namespace these ids would name unrelated processes.
 */
int user_caller_check_proc(void)
{
	char text[16] = "";

	if (readlinkat(user_proc_fd(), "self", text, sizeof(text) - 1) < 0)
		return pvas_fail(-ENOSYS, "user backend: can't read /proc/self: %s",
				 strerror(errno));
	if (atoi(text) != getpid())
		return pvas_fail(-ENOSYS,
				 "user backend: /proc is of another pid namespace (mount it anew: unshare --mount-proc)");
	return 0;
}

int user_caller_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t seen;
	int err;

	pthread_once(&once, make_probes);
	if (!probes)
		return -ENOMEM;
	err = ensure_pattern();
	wipe_stack();
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return pvas_fail(err, "user backend: can't read /proc/PID/pagemap: %s",
				 strerror(-err));
	kcmp_forbidden = compare_by_kernel(user_caller_self()) < 0;
	reading_forbidden = read_probe(user_caller_self(), probes, &seen) < 0;
	return 0;
}

/* A probe that no other thread uses: reading a caller's memory can take long. */
static unsigned int take_probe(unsigned char *taken)
{
	unsigned int i;

	for (i = 0; i < PROBES; i++)
		if (!__atomic_exchange_n(&taken[i], 1, __ATOMIC_ACQUIRE))
			break;
	return i;
}

static int may_open(pid_t tid)
{
	int fd = user_proc_open(tid, "pagemap", O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Those who share our memory have our ids, so their files can be opened as our own. */
static int is_shut(pid_t tid)
{
	pid_t self = user_caller_self();

	return may_open(self) && !may_open(tid) && may_open(self);
}

/* Only our own memory can be read without a right to it. */
static int sees(pid_t tid, const uint64_t *probe, uint64_t secret)
{
	uint64_t seen = 0;
	long n = reading_forbidden ? read_probe_by_proc(tid, probe, &seen)
				   : read_probe(tid, probe, &seen);

	if (n == sizeof(seen))
		return seen == secret;
	if (n == -EFAULT || (n == -EPERM && !reading_forbidden))
		return 0;
	return (n == -EACCES || n == -ENOENT) && is_shut(tid) ? 0 : (int)n;
}

/* Store a new random number here: is it at the same address in the caller's memory? */
static int same_by_probe(pid_t tid)
{
	static unsigned char taken[PROBES];
	unsigned int i = take_probe(taken);
	uint64_t secret = 0;
	int same = -EAGAIN;

	if (i == PROBES)
		return -EAGAIN;
	if (pvas_raw3(__NR_getrandom, &secret, sizeof(secret), 0) == sizeof(secret)) {
		__atomic_store_n(&probes[i], secret, __ATOMIC_RELEASE);
		same = sees(tid, &probes[i], secret);
		__atomic_store_n(&probes[i], 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&taken[i], 0, __ATOMIC_RELEASE);
	return same;
}

/*
 * Of a caller whose files in /proc this process may not open: a descendant that has other
 * ids or is not dumpable, say; or ours while the launcher is not dumpable. To read one's own
 * memory needs no right, and any other is refused unseen.
 */
static int is_readable(pid_t tid)
{
	uint64_t seen;
	long n = read_probe(tid, probes, &seen);

	if (n >= 0)
		return 1;
	if (n == -ESRCH)
		return -ESRCH;
	if (!reading_forbidden)
		return n == -EPERM ? 0 : -EACCES;
	return is_shut(tid) ? 0 : -EACCES;
}

/*
 * Reading memory waits for whoever provides it, which can be a process that never does
 * (userfaultfd, FUSE). To ask which pages are in use does not touch them.
 */
static __attribute__((noinline)) int has_pattern(pid_t tid)
{
	uint64_t used, seen;
	int made, now, err;

	do {
		made = (int)__atomic_load_n(&pattern->made, __ATOMIC_ACQUIRE);
		used = __atomic_load_n(&pattern->used, __ATOMIC_ACQUIRE);
		if (!used)
			return 1;
		err = pages_in_use(tid, &seen);
		/* ENOENT: /proc may be mounted with hidepid=2, and hide it. */
		if (err == -EACCES || err == -EPERM || err == -ENOENT)
			return is_readable(tid);
		if (err)
			return err;
		if (seen == used)
			return 1;
		now = ensure_pattern();
		if (now < 0)
			return now;
		/* If ours has become another one meanwhile, that says nothing. */
	} while (now != made);
	return 0;
}

static int compare(pid_t tid, int known)
{
	long ret = compare_by_kernel(tid);
	int has = 1;

	if (ret >= 0)
		return ret == 0;
	if (ret == -ESRCH)
		return -ESRCH;
	if (!known) {
		has = has_pattern(tid);
		wipe_stack();
	}
	return has > 0 ? same_by_probe(tid) : has;
}

int user_caller_inside(pid_t tid)
{
	return compare(tid, 0);
}

int user_caller_still_inside(pid_t tid)
{
	return compare(tid, 1);
}

/*
 * All of /proc that says more takes the lock of the caller's memory, which a thread of the
 * caller's can hold for as long as a file server doesn't answer. Ours can become larger
 * or smaller meanwhile.
 */
int user_caller_doubtful(pid_t tid)
{
	const pid_t self = user_caller_self();
	unsigned long own, pages;

	if (!kcmp_forbidden)
		return 0;
	own = user_caller_pages(self, self);
	pages = user_caller_pages(tid, tid);
	return pages != own && pages != user_caller_pages(self, self);
}
