// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The pager in a task. Its threads have a table of descriptors of their own, where the program
 * can't close any by mistake, and so have all calls that need them: a thread of the pager, the
 * agent, makes them for the program, one at a time.
 */
#include "task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/pvas.h>

#include "../../../include/linux_names.h"
#include "../../pvas.h"
#include "../../rawsys.h"
#include "../far.h"
#include "../job.h"

enum { STACK = 256 * 1024, PAGERS_MAX = 128 };

/**
 * struct state - in memory that a fork child has zeros of
 * @active:	the pager runs
 * @part:	this task's
 * @lock:	of the thread whose call is being made
 * @asked:	@nr and @args are set
 * @answered:	@done and @value are
 * @pagers:	threads that are not the program's
 */
struct state {
	bool active;
	struct pvas_far_part part;
	pthread_mutex_t lock;
	sem_t asked, answered;
	int nr, done;
	uint64_t args[6];
	int64_t value;
	pid_t pagers[PAGERS_MAX];
	unsigned int nr_pagers;
};

static struct state *state;
static uint64_t far_start, far_end;
static int device = -1;		/* the module's */
static char why[512];		/* the agent's error: each thread has its own */

/* ---- whose thread it is ---- */

static bool is_listed(pid_t tid)
{
	unsigned int i;

	for (i = 0; i < state->nr_pagers; i++)
		if (state->pagers[i] == tid)
			return true;
	return false;
}

/* All that the pager has were started before the program was. */
static bool is_pager(void)
{
	static __thread enum { UNKNOWN, PROGRAM, PAGER } whose
		__attribute__((tls_model("initial-exec")));

	if (whose == UNKNOWN)
		whose = is_listed((pid_t)syscall(__NR_gettid)) ? PAGER : PROGRAM;
	return whose == PAGER;
}

static int list_pagers(void)
{
	pid_t own = (pid_t)syscall(__NR_gettid);
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	pid_t tid;

	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		tid = (pid_t)atoi(d->d_name);
		if (tid <= 0 || tid == own)
			continue;
		if (state->nr_pagers == PAGERS_MAX)
			break;
		state->pagers[state->nr_pagers++] = tid;
	}
	closedir(dir);
	return d ? -E2BIG : 0;
}

/* ---- the program's calls ---- */

bool task_pages(void)
{
	return state && state->active;
}

bool task_is_far(uint64_t size)
{
	return task_pages() && size >= state->part.threshold && !is_pager();
}

bool task_has(uint64_t addr, uint64_t len)
{
	return addr < far_end && (addr + len > far_start || addr + len < addr);
}

/* Can it have to do with far memory? */
static bool concerns(int nr, const uint64_t *a)
{
	switch (nr) {
	case __NR_mmap:
		return (a[1] >= state->part.threshold && a[3] & MAP_ANONYMOUS) ||
		       (a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE) && task_has(a[0], a[1]));
	case __NR_mremap:
		return task_has(a[0], a[1] > a[2] ? a[1] : a[2]) ||
		       (a[3] & MREMAP_FIXED && task_has(a[4], a[2]));
	case __NR_shmat:
		return a[1];
	default:
		return task_has(a[0], a[1]);
	}
}

static void ask(int nr, const uint64_t *args)
{
	state->nr = nr;
	/* A copy, as the caller's stack may be far memory. */
	memcpy(state->args, args, sizeof(state->args));
	sem_post(&state->asked);
	while (sem_wait(&state->answered))
		;
}

/* No signal handler, which might make such a call, too, and no end of the thread in between */
static bool make(int nr, const uint64_t *args, int64_t *value)
{
	sigset_t all, old;
	int cancel, done;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&state->lock);
	ask(nr, args);
	done = state->done;
	*value = state->value;
	pthread_mutex_unlock(&state->lock);
	pthread_setcancelstate(cancel, &cancel);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return done;
}

int64_t task_call(int nr, const uint64_t a[static 6])
{
	int64_t value;

	if (task_pages() && concerns(nr, a) && !is_pager() && make(nr, a, &value))
		return value;
	return pvas_raw6(nr, (long)a[0], (long)a[1], (long)a[2], (long)a[3], (long)a[4],
			 (long)a[5]);
}

/* ---- the agent ---- */

static int64_t map_local(void *owner, uint64_t addr, uint64_t len, int prot, int flags)
{
	(void)owner;
	return pvas_raw6(__NR_mmap, (long)addr, (long)len, prot, flags, -1, 0);
}

static void tell_full(void *owner, uint64_t len)
{
	static bool told;

	(void)owner;
	if (told)
		return;
	told = true;
	dprintf(2, "pvas-far: no far memory is left for a mapping of %" PRIu64 " bytes: the task gets ENOMEM (--far-size)\n",
		len);
}

/* Does a device, or another process, use these pages of the task's? */
static bool is_used(const void *addr, size_t size)
{
	struct pvas_refs refs = { .size = sizeof(refs), .addr = (uintptr_t)addr, .len = size };

	return ioctl(device, PVAS_IOC_REFS, &refs) || refs.clear < size;
}

static int open_device(void)
{
	struct pvas_info info = { .size = sizeof(info) };

	device = open("/dev/pvas", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return far_fail(-errno, "/dev/pvas: %s", strerror(errno));
	if (ioctl(device, PVAS_IOC_INFO, &info) || !(info.features & PVAS_FEATURE_REFS))
		return far_fail(-EPROTO, "the module is older than this PVAS (load the new one)");
	far.uffd.used = is_used;
	return 0;
}

static int open_pager(void)
{
	struct pvas_far_part *p = &state->part;
	struct pvas_far_rows rows = {
		.base = p->far_start, .stride = p->end - p->base, .count = 1,
	};
	uint64_t size, page;
	int kernel, err = open_device();

	if (!err)
		err = far_job_ops.plan(NULL, &size, &page);
	if (err)
		return err;
	size = (size + page - 1) & ~(page - 1);
	rows.length = size < rows.stride / 4 ? size : rows.stride / 4;
	p->far_end = p->far_start + rows.length;
	far_pager_in_task = true;
	err = far_job_ops.open(NULL, &rows, &kernel);
	if (!err && !far.uffd.kernel)
		return far_fail(-EPERM, "with the module, system calls on far memory need CAP_SYS_PTRACE, /dev/userfaultfd or vm.unprivileged_userfaultfd=1 (without: --backend user)");
	return err;
}

/* Its copies of the program's descriptors would keep pipes open. */
static int leave_descriptors(void)
{
	if (unshare(CLONE_FILES) || syscall(__NR_close_range, 3, ~0U, 0))
		return far_fail(-errno, "a table of descriptors: %s", strerror(errno));
	close(0);
	close(1);
	return 0;
}

static void *agent(void *unused)
{
	int err;

	(void)unused;
	far_fail(0, "%s", "");
	err = leave_descriptors();
	state->value = err ? err : open_pager();
	if (state->value)
		snprintf(why, sizeof(why), "%s", far_error());
	sem_post(&state->answered);
	for (;;) {
		while (sem_wait(&state->asked))
			;
		state->done = pvas_far_call(&state->part, state->nr, state->args, &state->value);
		sem_post(&state->answered);
	}
	return NULL;
}

/* ---- the beginning ---- */

static int start_agent(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, agent, NULL);
	if (!err)
		while (sem_wait(&state->answered))
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err ? -err : (int)state->value;
}

static int make_state(uint64_t threshold)
{
	struct pvas_far_part *p;
	size_t length;
	void *base;

	state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (state == MAP_FAILED || madvise(state, sizeof(*state), MADV_WIPEONFORK))
		return -errno;
	if (pvas_partition_get((unsigned int)pvas_task_get_index(), &base, &length))
		return -ESRCH;
	pthread_mutex_init(&state->lock, NULL);
	sem_init(&state->asked, 0, 0);
	sem_init(&state->answered, 0, 0);
	p = &state->part;
	*p = (struct pvas_far_part){
		.ops = &far_job_ops, .threshold = threshold, .map_local = map_local,
		.full = tell_full, .base = (uintptr_t)base,
		.end = (uintptr_t)base + length,
	};
	p->far_start = p->base + length / 4;
	return 0;
}

/* A program of the task's that is not in the space goes on as ever. */
static void __attribute__((constructor)) begin(void)
{
	const char *text = secure_getenv(TASK_THRESHOLD);
	int err;

	if (!text || !getauxval(AT_PVAS) || pvas_task_get_index() < 0)
		return;
	err = make_state(strtoull(text, NULL, 10));
	if (!err)
		err = start_agent();
	if (!err)
		err = list_pagers();
	if (err) {
		dprintf(2, "pvas-far: %s\n", *why ? why : strerror(-err));
		_exit(1);
	}
	far_start = state->part.far_start;
	far_end = state->part.far_end;
	state->active = true;
}
