// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Create the mm that becomes a space (kernel backend).
 *
 * The kernel offers modules no way to build an mm from nothing, so a child
 * process gives its own: it maps header and loader into partition 0 and jumps to
 * the loader's second entry, which unmaps everything else but the vdso, calls
 * PVAS_IOC_CREATE (loader/convert_mm.c), and exits. The module keeps the mm.
 *
 * The child is made by a bare clone with no exit signal: no SIGCHLD reaches
 * the application, its wait() for any child does not see it, SIG_IGN does not
 * reap it, and no atfork handler runs.
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
#include "loader/convert_mm.h"
#include "rawsys.h"
#include "rseq.h"

#define TRIES		3	/* if a signal kills the child: see pvas_create_mm() */

/* The vdso and its data pages must stay. Their names differ between kernels. */
static int is_vdso(const char *line)
{
	return strstr(line, "[vdso]") || strstr(line, "[vvar");
}

/* Called before the clone: the child of a threaded process must not use stdio. */
static int find_vdso(struct pvas_convert_request *req)
{
	unsigned long lo, hi;
	char line[512];
	FILE *f;

	f = fopen("/proc/self/maps", "re");
	if (!f)
		return pvas_fail(-errno, "can't open /proc/self/maps: %s", strerror(errno));
	req->nr_kept = 0;
	while (fgets(line, sizeof(line), f)) {
		if (!is_vdso(line) || sscanf(line, "%lx-%lx", &lo, &hi) != 2)
			continue;
		if (req->nr_kept == PVAS_CONVERT_KEPT - 1)
			break;
		req->kept[req->nr_kept].lo = lo;
		req->kept[req->nr_kept++].hi = hi;
	}
	fclose(f);
	return 0;
}

/* ---- in the child: raw system calls, no libc state ---- */

static size_t blob_length(void)
{
	return (pvas_blob_end - pvas_blob + 4095) & ~4095UL;
}

/* Tasks only read the loader, and their fork children do not need it. */
static int child_put_loader(uint64_t at)
{
	int err;

	memcpy((void *)at, pvas_blob, pvas_blob_end - pvas_blob);
	pvas_code_written((void *)at, pvas_blob_end - pvas_blob);
	err = pvas_raw3(__NR_mprotect, at, blob_length(), PROT_READ | PROT_EXEC);
	if (!err)
		err = pvas_raw3(__NR_madvise, at, blob_length(), MADV_DONTFORK);
	return err;
}

static int child_put_header(struct pvas_header *h, unsigned int shift)
{
	size_t len = pvas_header_length(pvas_header_entries(shift));

	pvas_header_init(h, shift);
	/* Only a few scattered pages of the areas are used: huge pages would waste memory. */
	pvas_raw3(__NR_madvise, h, len, MADV_NOHUGEPAGE);
	return pvas_raw3(__NR_madvise, h, len, MADV_WIPEONFORK);
}

/* Copy @req to memory that stays, and put header and loader first among the kept ranges. */
static struct pvas_convert_request *child_put_request(struct pvas_header *h,
						      const struct pvas_convert_request *req)
{
	struct pvas_convert_request *out = (struct pvas_convert_request *)pvas_header_scratch(h);
	struct pvas_create *create = &out->result.create;

	*out = *req;
	memcpy(&out->kept[1], &req->kept[0], req->nr_kept * sizeof(req->kept[0]));
	out->kept[0].lo = (uint64_t)h - blob_length();
	out->kept[0].hi = (uint64_t)h + h->length;
	out->nr_kept = req->nr_kept + 1;
	out->header = (uint64_t)h;
	create->loader = out->kept[0].lo + PVAS_BLOB_TASK;
	create->table = h->table;
	create->table_entries = h->entries;
	if (create->key_len)
		create->key = (uint64_t)out->key;
	return out;
}

static void __attribute__((noreturn)) child_main(struct pvas_convert_request *req)
{
	unsigned int shift = req->result.create.shift;
	size_t len = pvas_header_length(pvas_header_entries(shift));
	long base = pvas_header_map(len, blob_length());
	struct pvas_header *h = (struct pvas_header *)base;
	int err = base < 0 ? (int)base : 0;

	if (!err)
		err = child_put_header(h, shift);
	if (!err)
		err = child_put_loader(base - blob_length());
	if (!err) {
		struct pvas_convert_request *out = child_put_request(h, req);

		/* The kernel writes to the rseq area, which is about to be unmapped. */
		pvas_rseq_unregister();
		pvas_jump(out->kept[0].lo + PVAS_BLOB_CONVERT, base + h->length, (long)out, 0, 0,
			  0);
	}
	req->result.err = err;
	req->result.step = PVAS_CONVERT_MAP;
	pvas_raw3(__NR_write, req->pipe, &req->result, sizeof(req->result));
	for (;;)
		pvas_raw1(__NR_exit_group, 0);
}

/* ---- in the launcher ---- */

/*
 * Returns the child's wait status, or -errno. All signals are blocked across
 * the clone, because no handler of the application may run in the child.
 */
static int run_child(struct pvas_convert_request *req)
{
	const uint64_t all = ~0ULL;
	int status = 0;
	uint64_t mask;
	long pid, err;

	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &mask, 8);
	pid = pvas_raw6(__NR_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0)
		child_main(req);
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	if (pid < 0)
		return pid;
	do {
		err = pvas_raw4(__NR_wait4, pid, &status, __WALL, NULL);
	} while (err == -EINTR);
	return err < 0 ? (int)err : status;
}

/* Explain an error of PVAS_IOC_CREATE, with a remedy where there is one. */
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

static int explain(const struct pvas_convert_result *result)
{
	const char *why = strerror(-result->err);

	switch (result->step) {
	case PVAS_CONVERT_MAP:
		if (result->err == -EEXIST)
			return pvas_fail(-ENOMEM, "no room for the space header below 4 GiB");
		return pvas_fail(result->err, "can't map the space header: %s", why);
	case PVAS_CONVERT_UNMAP:
		return pvas_fail(result->err, "can't empty an address space: %s", why);
	default:
		return pvas_fail(result->err, "the pvas module can't make a space: %s",
				 reason(result->err));
	}
}

/* 0, -errno, or 1: the child was killed, and another may succeed. */
static int try_create(struct pvas_convert_request *req, int pipe_read, struct pvas_create *create)
{
	struct pvas_convert_result result;
	int status;

	status = run_child(req);
	if (status < 0)
		return pvas_fail(status, "can't make a process: %s", strerror(-status));
	if (pvas_raw3(__NR_read, pipe_read, &result, sizeof(result)) != sizeof(result))
		return 1;
	if (result.err)
		return explain(&result);
	*create = result.create;
	return 0;
}

int pvas_create_mm(int device, struct pvas_create *create)
{
	struct pvas_convert_request req = { .device = device, .result.create = *create };
	int tries = TRIES;
	int fds[2];
	int err;

	if (create->key_len)
		memcpy(req.key, (const void *)create->key, create->key_len);
	err = find_vdso(&req);
	if (err)
		return err;
	/* Non-blocking: other processes may have inherited the write end and keep it open. */
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return pvas_fail(-errno, "can't make a pipe: %s", strerror(errno));
	req.pipe = fds[1];
	/*
	 * An rseq area that a runtime other than glibc has registered is unknown
	 * here, and is unmapped while registered: if the child is preempted after
	 * that, it dies by SIGSEGV. This is rare and harmless: try again.
	 */
	do {
		err = try_create(&req, fds[0], create);
	} while (err > 0 && --tries);
	close(fds[0]);
	close(fds[1]);
	if (err > 0)
		return pvas_fail(-EAGAIN, "the process that makes the space was killed");
	return err;
}
