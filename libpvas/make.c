// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Make the address space that becomes a space (kernel backend).
 *
 * The kernel offers modules no way to build an mm from nothing, so a child
 * gives its own: it maps header and loader into partition 0, jumps into the
 * loader's second entry, which unmaps all the rest but the vdso and calls
 * PVAS_IOC_CREATE (loader/make.c), and exits. The module keeps the mm.
 *
 * The child is made by a bare clone with no exit signal: no SIGCHLD reaches
 * the application, its wait() for any child does not see it, SIG_IGN can't make
 * it vanish, and no atfork handler runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "loader/blob.h"
#include "loader/make.h"
#include "rawsys.h"
#include "rseq.h"

/* Where to try: a non-PIE caller and its heap may be in the way of some. */
#define BASE_STEP	(256UL << 20)
#define BASE_END	(1UL << PVAS_SHIFT_MIN)

#define TRIES		3	/* should a signal kill the child: see pvas_make_space() */

/* What must stay: the vdso and its data pages, whatever they are called. */
static int is_vdso(const char *line)
{
	return strstr(line, "[vdso]") || strstr(line, "[vvar");
}

/* Read before the clone: stdio and a child of a threaded process don't mix. */
static int find_vdso(struct pvas_make *m)
{
	unsigned long lo, hi;
	char line[512];
	FILE *f;

	f = fopen("/proc/self/maps", "re");
	if (!f)
		return pvas_fail(-errno, "can't open /proc/self/maps: %s", strerror(errno));
	m->keeps = 0;
	while (fgets(line, sizeof(line), f)) {
		if (!is_vdso(line) || sscanf(line, "%lx-%lx", &lo, &hi) != 2)
			continue;
		if (m->keeps == PVAS_MAKE_KEEP - 1)
			break;
		m->keep[m->keeps].lo = lo;
		m->keep[m->keeps++].hi = hi;
	}
	fclose(f);
	return 0;
}

/* ---- in the child: raw system calls, no libc state ---- */

static long child_map(uint64_t at, size_t len)
{
	return pvas_raw6(__NR_mmap, at, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

/* Find room for header and loader, side by side. */
static int map_both(uint64_t *base, size_t header_len, size_t blob_len)
{
	long at;

	for (*base = BASE_STEP; *base + header_len < BASE_END; *base += BASE_STEP) {
		at = child_map(*base - blob_len, blob_len + header_len);
		if (at > 0)
			return 0;
		if (at != -EEXIST)
			return at;
	}
	return -EEXIST;
}

static size_t blob_length(void)
{
	return (pvas_blob_end - pvas_blob + 4095) & ~4095UL;
}

/* The loader: only ever read by tasks, and of no use to their fork children. */
static int child_put_loader(uint64_t at)
{
	int err;

	memcpy((void *)at, pvas_blob, pvas_blob_end - pvas_blob);
	err = pvas_raw3(__NR_mprotect, at, blob_length(), PROT_READ | PROT_EXEC);
	if (!err)
		err = pvas_raw3(__NR_madvise, at, blob_length(), MADV_DONTFORK);
	return err;
}

static int child_put_header(struct pvas_header *h, unsigned int shift)
{
	size_t len = pvas_header_length(pvas_header_entries(shift));

	pvas_header_init(h, shift);
	/* The areas are touched a page here and there: no huge pages for that. */
	pvas_raw3(__NR_madvise, h, len, MADV_NOHUGEPAGE);
	return pvas_raw3(__NR_madvise, h, len, MADV_WIPEONFORK);
}

/* Copy @m to where it survives, with our own mapping first among what stays. */
static struct pvas_make *child_put_make(struct pvas_header *h, const struct pvas_make *m)
{
	struct pvas_make *out = (struct pvas_make *)pvas_header_scratch(h);
	struct pvas_create *create = &out->made.create;

	*out = *m;
	memcpy(&out->keep[1], &m->keep[0], m->keeps * sizeof(m->keep[0]));
	out->keep[0].lo = (uint64_t)h - blob_length();
	out->keep[0].hi = (uint64_t)h + h->length;
	out->keeps = m->keeps + 1;
	out->header = (uint64_t)h;
	create->loader = out->keep[0].lo + PVAS_BLOB_TASK;
	create->table = h->table;
	create->table_entries = h->entries;
	if (create->key_len)
		create->key = (uint64_t)out->key;
	return out;
}

static void __attribute__((noreturn)) child_jump(uint64_t entry, struct pvas_make *m,
						 uint64_t stack)
{
	__asm__ volatile("movq %0, %%rsp\n\tjmpq *%1"
			 : : "r"(stack), "r"(entry), "D"(m) : "memory");
	__builtin_unreachable();
}

static void __attribute__((noreturn)) child_main(struct pvas_make *m)
{
	unsigned int shift = m->made.create.shift;
	size_t len = pvas_header_length(pvas_header_entries(shift));
	struct pvas_header *h;
	uint64_t base;
	int err;

	err = map_both(&base, len, blob_length());
	h = (struct pvas_header *)base;
	if (!err)
		err = child_put_header(h, shift);
	if (!err)
		err = child_put_loader(base - blob_length());
	if (!err) {
		struct pvas_make *out = child_put_make(h, m);

		/* Its area is about to go, and the kernel writes there. */
		pvas_rseq_unregister();
		child_jump(out->keep[0].lo + PVAS_BLOB_MAKE, out, base + h->length);
	}
	m->made.err = err;
	m->made.what = PVAS_MADE_MAP;
	pvas_raw3(__NR_write, m->pipe, &m->made, sizeof(m->made));
	for (;;)
		pvas_raw1(__NR_exit_group, 0);
}

/* ---- in the launcher ---- */

/*
 * Returns the child's wait status, or -errno. All signals are blocked across
 * the clone: no handler of the application must run in the child.
 */
static int run_child(struct pvas_make *m)
{
	const uint64_t all = ~0ULL;
	int status = 0;
	uint64_t mask;
	long pid, err;

	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &mask, 8);
	pid = pvas_raw6(__NR_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0)
		child_main(m);
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	if (pid < 0)
		return pid;
	do {
		err = pvas_raw4(__NR_wait4, pid, &status, __WALL, NULL);
	} while (err == -EINTR);
	return err < 0 ? (int)err : status;
}

/* The error of PVAS_IOC_CREATE in words, with what to do. */
static const char *reason(int err)
{
	switch (err) {
	case -EPERM:
		return "the caller must be dumpable, have equal real and effective ids, and no time namespace of its own";
	case -ENOSPC:
		return "too many spaces, or too many of this user (see max_spaces and max_spaces_per_user in pvas(4))";
	case -EBUSY:
		return "something that can't be in a space was left in the new address space";
	case -EOPNOTSUPP:
		return "a hook was refused (see the kernel log)";
	default:
		return strerror(-err);
	}
}

static int explain(const struct pvas_made *made)
{
	const char *why = strerror(-made->err);

	switch (made->what) {
	case PVAS_MADE_MAP:
		if (made->err == -EEXIST)
			return pvas_fail(-ENOMEM, "no room for the space header below 4 GiB");
		return pvas_fail(made->err, "can't map the space header: %s", why);
	case PVAS_MADE_UNMAP:
		return pvas_fail(made->err, "can't empty an address space: %s", why);
	default:
		return pvas_fail(made->err, "the pvas module can't make a space: %s",
				 reason(made->err));
	}
}

/* 0, -errno, or 1: the child was killed and another may do better. */
static int try_make(struct pvas_make *m, int pipe_read, struct pvas_create *create)
{
	struct pvas_made made;
	int status;

	status = run_child(m);
	if (status < 0)
		return pvas_fail(status, "can't make a process: %s", strerror(-status));
	if (pvas_raw3(__NR_read, pipe_read, &made, sizeof(made)) != sizeof(made))
		return 1;
	if (made.err)
		return explain(&made);
	*create = made.create;
	return 0;
}

int pvas_make_space(int device, struct pvas_create *create)
{
	struct pvas_make m = { .device = device, .made.create = *create };
	int tries = TRIES;
	int fds[2];
	int err;

	if (create->key_len)
		memcpy(m.key, (const void *)create->key, create->key_len);
	err = find_vdso(&m);
	if (err)
		return err;
	/* Non-blocking: others may have inherited the write end, and hold it. */
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return pvas_fail(-errno, "can't make a pipe: %s", strerror(errno));
	m.pipe = fds[1];
	/*
	 * An rseq area we can't know of (registered by a runtime other than
	 * glibc) is unmapped under the kernel's eyes; if the child is preempted
	 * just then it dies by SIGSEGV. Rare, and harmless: do it again.
	 */
	do {
		err = try_make(&m, fds[0], create);
	} while (err > 0 && --tries);
	close(fds[0]);
	close(fds[1]);
	if (err > 0)
		return pvas_fail(-EAGAIN, "the process that makes the space was killed");
	return err;
}
