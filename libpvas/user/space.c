// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the space as a whole. See user.h.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "far.h"
#include "rawsys.h"
#include "thread.h"
#include "worker.h"

/*
 * Position-independent programs lie above PIE_BASE, and libraries above that.
 * Without a limit of the stack they lie above LEGACY_BASE, growing upward.
 */
#define PIE_BASE	0x555555554000UL
#define LEGACY_BASE	0x2aaaaaaaa000UL
#define LEGACY_ROOM	(1UL << 40)

/* Is it a shortage of resources, rather than a missing feature? */
static int shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* ---- the range of its partitions ---- */

/**
 * struct run - consecutive partitions in which nothing is mapped
 * @next:	the lowest index not examined yet
 * @first:	of the longest run so far
 * @last:	and its last
 */
struct run {
	uint64_t next;
	uint64_t first;
	uint64_t last;
};

/* All partitions from @next up to @lo are free; the next free one can be @next_free. */
static void run_until(struct run *r, uint64_t lo, uint64_t next_free)
{
	if (lo > r->next && lo - r->next > r->last + 1 - r->first) {
		r->first = r->next;
		r->last = lo - 1;
	}
	if (next_free > r->next)
		r->next = next_free;
}

/* In the legacy layout the next mmap() of the launcher comes right above its mappings. */
static uint64_t room_below(uint64_t lo, uint64_t hi, unsigned int shift)
{
	return lo >= LEGACY_BASE && lo < LEGACY_BASE + LEGACY_ROOM ? PIE_BASE >> shift
								   : ((hi - 1) >> shift) + 1;
}

/* The launcher's own mappings below @top, by questions: 0, or -errno if the kernel can't answer */
static int ask_for_mappings(const struct user_space *u, struct run *r, uint64_t top)
{
	unsigned int shift = u->space->shift;
	uint64_t at = 0, start, end;
	int err = -EBADF;

	while (u->maps >= 0) {
		err = user_maps_query(u->maps, at, &start, &end);
		if (err || start >> shift >= top)
			break;
		run_until(r, start >> shift, room_below(start, end, shift));
		at = end;
	}
	return err;
}

/* The same by reading */
static int read_mappings(const struct user_space *u, struct run *r, uint64_t top)
{
	unsigned int shift = u->space->shift;
	FILE *maps = user_maps_open();
	int err = maps ? 0 : -errno;
	struct user_mapping m;

	if (!maps)
		return pvas_fail(shortage(err) ? err : -ENOSYS,
				 "user backend: can't open /proc/thread-self/maps: %s",
				 strerror(-err));
	while (user_maps_next(maps, &m))
		if (m.start >> shift < top)
			run_until(r, m.start >> shift, room_below(m.start, m.end, shift));
	fclose(maps);
	return 0;
}

static int find_run(struct user_space *u)
{
	struct run r = { .next = 1, .first = 1, .last = 0 };
	uint64_t top = PIE_BASE >> u->space->shift;
	int err;

	if (top > u->entries)
		top = u->entries;
	if (ask_for_mappings(u, &r, top)) {
		r = (struct run){ .next = 1, .first = 1, .last = 0 };
		err = read_mappings(u, &r, top);
		if (err)
			return err;
	}
	run_until(&r, top, top);
	if (r.last < r.first)
		return pvas_fail(-ENOMEM,
				 "user backend: no free range of addresses for partitions of 2^%u bytes",
				 u->space->shift);
	u->space->first = r.first;
	u->space->last = r.last;
	return 0;
}

static int make_header(struct user_space *u)
{
	size_t len = pvas_header_length(u->entries);
	long at = pvas_header_map(len, 0);

	if (at < 0)
		return pvas_fail(-ENOMEM, "no room for the space header below 4 GiB");
	u->header = (struct pvas_header *)at;
	pvas_header_init(u->header, u->space->shift);
	u->table = pvas_header_part(u->header, 0);
	madvise(u->header, len, MADV_NOHUGEPAGE);
	if (madvise(u->header, len, MADV_WIPEONFORK))
		return pvas_fail(-errno, "user backend: no MADV_WIPEONFORK");
	return 0;
}

/* No huge pages: each partition in use costs one small page. */
static int make_pages(struct user_space *u)
{
	size_t len = u->entries * sizeof(*u->pages);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	madvise(p, len, MADV_NOHUGEPAGE);
	if (pvas_raw3(__NR_getrandom, &u->cookie, sizeof(u->cookie), 0) != sizeof(u->cookie)) {
		munmap(p, len);
		return -EIO;
	}
	u->pages = p;
	return 0;
}

static int make_parts(struct user_space *u)
{
	struct pvas_space *s = u->space;
	uint32_t i;

	if (make_pages(u))
		return -ENOMEM;
	u->parts = mmap(NULL, u->entries * sizeof(*u->parts), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u->parts == MAP_FAILED) {
		u->parts = NULL;
		return -ENOMEM;
	}
	for (i = 0; i < u->entries; i++) {
		struct user_part *p = &u->parts[i];

		p->pidfd = -1;
		p->page = &u->pages[i];
		p->state = i < s->first || i > s->last ? PVAS_PART_RESERVED : PVAS_PART_FREE;
		if (p->state == PVAS_PART_RESERVED)
			user_publish(u, p, p->state);
	}
	return 0;
}

/* ---- requirements ---- */

/* As for the loader: seccomp rules and security modules can forbid it. */
static int check_executable(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (page == MAP_FAILED)
		return -ENOMEM;
	err = mprotect(page, PAGE, PROT_READ | PROT_EXEC) ? errno : 0;
	munmap(page, PAGE);
	if (err)
		return pvas_fail(-EACCES,
				 "user backend: memory of this process can't be made executable: %s (systemd's MemoryDenyWriteExecute, PR_SET_MDWE, or a security module)",
				 strerror(err));
	return 0;
}

/* Entries that describe machine and kernel are the same for the launcher and its tasks. */
static void copy_aux(struct user_space *u)
{
	static const unsigned long types[] = {
		AT_SYSINFO_EHDR, AT_HWCAP, AT_HWCAP2, 29, 30, AT_PAGESZ, AT_CLKTCK,
		AT_MINSIGSTKSZ, 27, 28,		/* AT_RSEQ_*; 29, 30: AT_HWCAP3, 4 */
	};
	unsigned int i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		errno = 0;
		u->aux[2 * u->nr_aux + 1] = getauxval(types[i]);
		u->aux[2 * u->nr_aux] = types[i];
		u->nr_aux += !errno;
	}
}

/* Is address randomization off for all programs? Without /proc assume the default. */
static int is_fixed(void)
{
	int fd = open("/proc/sys/kernel/randomize_va_space", O_RDONLY | O_CLOEXEC);
	char c = '2';

	if (fd >= 0) {
		if (read(fd, &c, 1) != 1)
			c = '2';
		close(fd);
	}
	return c == '0';
}

/* Distinct from the module's ids, which count from 1, and among spaces of one launcher. */
static uint32_t new_id(void)
{
	static uint32_t count;

	return (uint32_t)getpid() << 9 | PVAS_ID_USER |
	       (__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) & 511);
}

/* ---- create and destroy ---- */

static void free_all(struct user_space *u)
{
	/* First: a fork under way uses the rest. */
	user_launcher_release(u);
	user_far_finish(u);
	if (u->header)
		munmap(u->header, pvas_header_length(u->entries));
	if (u->pages)
		munmap(u->pages, u->entries * sizeof(*u->pages));
	if (u->parts)
		munmap(u->parts, u->entries * sizeof(*u->parts));
	user_credentials_end(u);
	pvas_free_stack(u->space);
	free(u);
}

/* The filter could not be installed: -EACCES if not permitted, -ENOSYS if it is not supported. */
static int refused(const struct user_space *u, int err)
{
	if (shortage(err))
		return pvas_fail(err, "user backend: %s: %s", u->why, strerror(-err));
	return pvas_fail(err == -EPERM || err == -EACCES ? -EACCES : -ENOSYS, "user backend: %s",
			 u->why);
}

/* Signals are for the application's own threads. */
static int begin_threads(struct user_space *u)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* Its filter takes longest. */
	err = user_supervisor_begin(u);
	if (!err)
		err = user_workers_begin(u, user_worker_main, user_helper_main);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* If any has begun, also after an error: they end as they should only when all have begun. */
static int wait_for_threads(struct user_space *u, int err)
{
	if (!err)
		err = user_workers_wait(u);
	if (err && u->why)
		err = refused(u, err);
	else if (err)
		pvas_fail(err, "user backend: can't start threads: %s", strerror(-err));
	return err;
}

/* All that the threads need */
static int fill(struct user_space *u)
{
	int err;

	err = check_executable();
	if (!err)
		err = user_caller_check_proc();
	if (!err)
		err = user_credentials_begin(u);
	if (!err)
		err = find_run(u);
	if (!err)
		err = make_header(u);
	if (!err)
		err = make_parts(u);
	return err ? err : user_far_begin(u);
}

/* The rest, while the kernel compiles the filter */
static int complete(struct user_space *u)
{
	int err;

	err = user_caller_begin();
	if (!err)
		err = user_reader_begin();
	if (err)
		return err;
	user_image_make(u);
	copy_aux(u);
	u->fixed = is_fixed();
	u->space->id = new_id();
	pvas_header_publish(u->header, u->space->id, u->space->first, u->space->last);
	return 0;
}

static int begin(struct user_space *u)
{
	int err = fill(u), began;

	if (err)
		return err;
	began = begin_threads(u);
	err = complete(u);
	began = wait_for_threads(u, began);
	return began ? began : err;
}

/* A thread is in a call that doesn't end: keep all it needs until it does. */
static void abandon(struct user_space *u)
{
	pvas_free_stack(u->space);
	u->kept = *u->space;
	__atomic_store_n(&u->space, &u->kept, __ATOMIC_RELEASE);
	user_launcher_release(u);
}

int user_create(struct pvas_space *s)
{
	struct user_space *u;
	int err;

	if (s->flags & PVAS_KEEP_ON_CLOSE)
		return pvas_fail(-ENOSYS,
				 "user backend: tasks can't outlive the launcher (PVAS_KEEP_ON_CLOSE)");
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->space = s;
	u->owner = getpid();
	s->priv = u;
	if (!user_launcher_claim(u)) {
		free(u);
		return pvas_fail(-EBUSY, "user backend: this process has made a space already");
	}
	u->entries = pvas_header_entries(s->shift);
	u->listener = u->epoll = u->wake = u->maps = u->image = -1;
	u->readers.connection = u->readers.pidfd = -1;
	pthread_mutex_init(&u->lock, NULL);
	pthread_mutex_init(&u->fork_lock, NULL);
	pthread_mutex_init(&u->exec_lock, NULL);
	user_init_condition(&u->changed);
	pthread_mutex_init(&u->pool_lock, NULL);
	user_init_condition(&u->pool_changed);
	user_init_condition(&u->queue.added);
	pthread_mutex_init(&u->readers.lock, NULL);
	pthread_mutex_init(&u->readers.hung_lock, NULL);
	pthread_mutex_init(&u->mounts.lock, NULL);
	pthread_mutex_init(&u->aparts.lock, NULL);
	err = user_proc_begin();
	if (!err) {
		user_caller_know_own(u);
		u->maps = pvas_fd_above_standard(user_proc_own_maps());
		user_file_mark(u->maps);
		err = begin(u);
	}
	user_launcher_begun();
	if (err) {
		user_supervisor_stop(u);
		user_workers_cancel(u);
		free_all(u);
	}
	return err;
}

/* In a fork child of the launcher there are no threads to end, only memory to free. */
void user_destroy(struct pvas_space *s)
{
	struct user_space *u = s->priv;

	if (u->owner == (pid_t)pvas_raw0(__NR_getpid) && user_supervisor_stop(u))
		abandon(u);
	else
		free_all(u);
}

/* A thread with descriptors of its own has no pidfd of the task. */
static int is_ending(const struct user_part *p, int files)
{
	if (files || p->state != PVAS_PART_RUNNING)
		return user_part_ending(p);
	return user_child_dead(p->pid);
}

/*
 * Do not list a task whose exit the caller may have observed: wait for its reclaim. A fork
 * child of the launcher has no supervisor to wait for, only a copy of the table.
 */
static void wait_for_reclaim(struct user_space *u)
{
	uint32_t i;
	int files;

	if (u->owner != (pid_t)pvas_raw0(__NR_getpid))
		return;
	files = user_thread_has_files(u) == 1;
	for (i = u->space->first; i <= u->space->last; i++)
		while (is_ending(&u->parts[i], files))
			user_wait_for_change(u);
}

int user_tasks(const struct pvas_space *s, struct pvas_task_info *tasks, size_t room)
{
	struct user_space *u = s->priv;
	size_t count = 0;
	uint32_t i;

	pthread_mutex_lock(&u->lock);
	wait_for_reclaim(u);
	for (i = s->first; i <= s->last; i++) {
		const struct user_part *p = &u->parts[i];

		if (p->state == PVAS_PART_FREE || p->state == PVAS_PART_RESERVED)
			continue;
		if (count < room)
			tasks[count] = (struct pvas_task_info){
				.index = i, .pid = p->pid, .state = (int)p->state, .gen = p->gen,
				.base = (void *)p->base, .length = p->end - p->base,
			};
		count++;
	}
	pthread_mutex_unlock(&u->lock);
	return (int)count;
}
