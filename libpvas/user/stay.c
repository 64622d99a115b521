// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the execve() of a task that stays in its space, the worker's part.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "clock.h"
#include "rawsys.h"
#include "stay.h"
#include "worker.h"

#define HEAD_SIZE	PAGE_UP(sizeof(struct user_stay))
#define POINTERS_SIZE	(7UL << 20)	/* more than an execve() takes */
#define STRINGS_SIZE	(7UL << 20)	/* the same */
#define CHUNK		256
#define STATUS_SIZE	(1UL << 20)	/* with 65536 groups */

#define ROOM		(64UL << 20)	/* for program, stack and dynamic linker */

#define BUSY_MS		1000		/* another thread's may hang in opening a file */
#define TRIES_MAX	100		/* before signals without end */

#define ENV_LEAVE	"PVAS_EXEC=leave"

/**
 * struct copy - the arguments that have been copied
 * @to:		where the next pointer goes
 * @to_end:	end of the room for pointers
 * @text:	where the next string goes
 * @text_end:	end of the room for strings
 */
struct copy {
	char **to;
	char **to_end;
	char *text;
	char *text_end;
};

/* ---- may it stay? ---- */

/* Is the signal in this set of the thread, or of the process? */
static int has_signal(const char *status, const char *set)
{
	const char *line = strstr(status, set);

	return !line || (strtoull(line + strlen(set), NULL, 16) >> (USER_STAY_SIGNAL - 1) & 1);
}

static char *status_of(pid_t tid)
{
	char *status = malloc(STATUS_SIZE);

	if (status)
		user_proc_read(tid, "status", status, STATUS_SIZE);
	return status;
}

/* Does it receive the signal? */
static int has_handler(pid_t tid)
{
	char *status = status_of(tid);
	int has = status && !has_signal(status, "\nSigBlk:") && has_signal(status, "\nSigCgt:");

	free(status);
	return has;
}

/* Does it wait for this thread? */
static int is_pending(pid_t tid)
{
	char *status = status_of(tid);
	int is = status && has_signal(status, "\nSigPnd:");

	free(status);
	return is;
}

static int is_mapped(uint64_t at)
{
	char byte;

	return user_caller_read(user_caller_self(), at, &byte, 1) == 1;
}

/*
 * Is there room for the handler on the thread's stack? The first one's grows. It is not known where
 * this can't be asked, nor whether the handler will have a stack of its own.
 */
static int has_stack(const struct user_request *r)
{
	const struct user_part *p = r->part;
	char text[256], *at;
	uint64_t sp;

	if (user_proc_read(r->tid, "syscall", text, sizeof(text)) <= 0)
		return 1;
	/* The last but one of "NR ARGUMENTS... SP PC" */
	at = strrchr(text, ' ');
	if (!at)
		return 1;
	for (*at = 0; at > text && *at != ' '; at--)
		;
	sp = strtoull(at, NULL, 16);
	if (sp <= p->layout.stack && p->layout.stack - sp < USER_STAY_FIRST_STACK)
		return 1;
	return is_mapped(sp - USER_STAY_FRAME) && is_mapped(sp - USER_STAY_FRAME / 2);
}

/* A thread can have a table of descriptors, root and other things of its own. */
static int share(pid_t a, pid_t b, int type)
{
	return !pvas_raw4(__NR_kcmp, a, b, type, 0);
}

/*
 * The kernel compares these limits with the mm, which has the memory of all tasks. One that a task
 * has set is meant for its program alone; the others leave some room.
 */
static int has_memory(pid_t pid)
{
	struct rlimit vm, data, own_vm, own_data;
	unsigned long pages = 0, data_pages = 0;
	char text[128];

	if (pvas_raw4(__NR_prlimit64, pid, RLIMIT_AS, NULL, &vm) ||
	    pvas_raw4(__NR_prlimit64, pid, RLIMIT_DATA, NULL, &data) ||
	    getrlimit(RLIMIT_AS, &own_vm) || getrlimit(RLIMIT_DATA, &own_data) ||
	    vm.rlim_cur != own_vm.rlim_cur || data.rlim_cur != own_data.rlim_cur)
		return 0;
	if (vm.rlim_cur == RLIM_INFINITY && data.rlim_cur == RLIM_INFINITY)
		return 1;
	user_proc_read(user_caller_self(), "statm", text, sizeof(text));
	return sscanf(text, "%lu %*u %*u %*u %*u %lu", &pages, &data_pages) == 2 &&
	       pages * PAGE + ROOM <= vm.rlim_cur && data_pages * PAGE + ROOM <= data.rlim_cur;
}

/* All tasks' memory is charged to the launcher's: a limit around one program has no effect. */
static int has_group(pid_t tid)
{
	char its[4096], own[4096];

	user_proc_read(tid, "cgroup", its, sizeof(its));
	user_proc_read(user_caller_self(), "cgroup", own, sizeof(own));
	return !strcmp(its, own);
}

/* Those that it has made itself: for them its end, where another one goes on, is their parent's. */
static int has_children(pid_t tid)
{
	char name[48], text[64];

	snprintf(name, sizeof(name), "task/%d/children", tid);
	return user_proc_read(tid, name, text, sizeof(text)) != 0;
}

/*
 * All rules of entering hold again, which also means that a filter of the task's own could not
 * refuse it what an execve() does unseen. The first thread becomes the program: it has to be as
 * @tid, which has made the call.
 */
int user_stay_has_rights(const struct user_space *u, pid_t pid, pid_t tid)
{
	return user_credentials_hold(u, tid) && has_memory(pid) && has_group(tid) &&
	       (tid == pid ||
		(!has_children(tid) && user_credentials_hold(u, pid) &&
		 user_credentials_alike(tid, pid) &&
		 share(tid, pid, KCMP_FILES) && share(tid, pid, KCMP_FS) &&
		 share(tid, pid, KCMP_SYSVSEM)));
}

static int may_stay(const struct user_request *r)
{
	pid_t pid = r->part->pid;

	return has_handler(r->tid) && has_stack(r) && (r->tid == pid || has_handler(pid)) &&
	       user_stay_has_rights(r->u, pid, r->tid);
}

/* ---- the copy ---- */

/* Returns the string, or NULL: an execve() will say why. */
static char *copy_string(struct copy *c, uint64_t from)
{
	pid_t self = user_caller_self();
	char *begin = c->text, *end;
	ssize_t n;

	while (c->text < c->text_end) {
		n = user_caller_read(self, from, c->text,
				     c->text_end - c->text < CHUNK ? c->text_end - c->text : CHUNK);
		if (n <= 0)
			return NULL;
		end = memchr(c->text, 0, n);
		c->text += end ? end + 1 - c->text : n;
		if (end)
			return begin;
		from += n;
	}
	return NULL;
}

/* A list that ends with NULL, and may be missing. */
static char **copy_list(struct copy *c, uint64_t from)
{
	pid_t self = user_caller_self();
	char **begin = c->to;
	uint64_t at = 0;

	while (c->to < c->to_end) {
		if (from && user_caller_read(self, from, &at, sizeof(at)) != sizeof(at))
			return NULL;
		if (!at) {
			*c->to++ = NULL;
			return begin;
		}
		*c->to = copy_string(c, at);
		if (!*c->to++)
			return NULL;
		from += sizeof(at);
	}
	return NULL;
}

/*
 * The name that the kernel gives to a path that is relative to a descriptor. The kernel refuses
 * what is wrong.
 */
static char *copy_path(struct copy *c, struct user_stay *e, int fd, uint64_t from, int flags)
{
	char *begin = c->text, *path;

	e->dirfd = AT_FDCWD;
	if (fd >= 0)
		c->text += sprintf(begin, "/dev/fd/%d/", fd);
	path = copy_string(c, from);
	if (!path || (fd < 0 && fd != AT_FDCWD))
		return NULL;
	e->file = path;
	if (fd < 0 || *path == '/')
		return *path ? path : NULL;
	if (!*path && !(flags & AT_EMPTY_PATH))
		return NULL;
	if (!*path)
		path[-1] = 0;
	e->dirfd = fd;
	return begin;
}

/* Of execveat() the first one is the descriptor, and the last one the flags. */
static int copy_arguments(struct user_stay *e, int nr, const uint64_t *args)
{
	char *pointers = (char *)e->stacks[1];
	struct copy c = {
		.to = (char **)pointers, .to_end = (char **)(pointers + POINTERS_SIZE),
		.text = pointers + POINTERS_SIZE, .text_end = (char *)e + e->size,
	};
	int at = nr == __NR_execveat;

	if (at && (args[4] & ~(uint64_t)AT_EMPTY_PATH))
		return 0;
	e->path = copy_path(&c, e, at ? (int)args[0] : AT_FDCWD, args[at], at ? (int)args[4] : 0);
	e->argv = e->path ? copy_list(&c, args[at + 1]) : NULL;
	e->envp = e->argv ? copy_list(&c, args[at + 2]) : NULL;
	return !!e->envp;
}

static int wants_to_leave(char *const *envp)
{
	for (; *envp; envp++)
		if (!strcmp(*envp, ENV_LEAVE))
			return 1;
	return 0;
}

/* ---- the structure ---- */

/* Only what is used of it gets memory. */
static struct user_stay *allocate(void)
{
	size_t size = HEAD_SIZE + 2 * STAY_STACK_SIZE + POINTERS_SIZE + STRINGS_SIZE;
	struct user_stay *e = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (e == MAP_FAILED)
		return NULL;
	madvise(e, size, MADV_NOHUGEPAGE);
	/* Its environment is no matter of the children that peers fork. */
	madvise(e, size, MADV_DONTFORK);
	e->size = size;
	e->stacks[0] = (uint64_t)e + HEAD_SIZE + STAY_STACK_SIZE;
	e->stacks[1] = e->stacks[0] + STAY_STACK_SIZE;
	return e;
}

void user_stay_free(struct user_stay *e)
{
	if (e)
		munmap(e, e->size);
}

static int is_same_call(const struct user_request *r, const struct user_stay *e)
{
	return e->tid == r->tid && e->again == r->ip - PVAS_CALL_LEN && e->nr == r->nr &&
	       !memcmp(e->args, r->args, sizeof(e->args));
}

static struct user_stay *prepare(const struct user_request *r, int tries)
{
	struct user_stay *e = allocate();

	if (!e)
		return NULL;
	e->u = r->u;
	e->part = r->part;
	e->tid = r->tid;
	e->began = now_ms();
	e->tries = tries;
	e->again = r->ip - PVAS_CALL_LEN;
	e->nr = r->nr;
	memcpy(e->args, r->args, sizeof(e->args));
	e->securebits = pvas_raw2(__NR_prctl, PR_GET_SECUREBITS, 0);
	if (copy_arguments(e, r->nr, r->args) && !wants_to_leave(e->envp) && may_stay(r))
		return e;
	user_stay_free(e);
	return NULL;
}

/* ---- the one before ---- */

enum last { LAST_GONE, LAST_REFUSES, LAST_BUSY };

/*
 * Get rid of the partition's last one, unless it is still in use by another thread. It refuses a
 * call that has been refused, or restarted too often: @tries.
 */
static enum last drop_last(const struct user_request *r, int *tries)
{
	struct user_part *p = r->part;
	struct user_stay *e = p->stay;
	int armed, state, refuses;

	*tries = 0;
	if (!e)
		return LAST_GONE;
	armed = __atomic_exchange_n(&p->armed, 0, __ATOMIC_ACQ_REL);
	state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
	if (!armed && (state == STAY_TAKEN ||
		       (state == STAY_NEW && e->tid != r->tid &&
			user_is_thread_of(p->pid, e->tid))))
		return now_ms() - e->began < BUSY_MS ? LAST_BUSY : LAST_REFUSES;
	refuses = state == STAY_REFUSED && is_same_call(r, e);
	/* The handler has not come, or another one first. */
	if ((armed || state == STAY_PUT_OFF) && is_same_call(r, e)) {
		*tries = e->tries + 1;
		refuses = *tries > TRIES_MAX;
	}
	p->stay = NULL;
	user_stay_free(e);
	return refuses ? LAST_REFUSES : LAST_GONE;
}

/* ---- the call ---- */

static int other_leaves(const struct user_request *r)
{
	return user_exec_of_other(r->u, r->part, r->tid);
}

/* The handler comes before the call is made again. */
static int signal_caller(const struct user_request *r)
{
	return !pvas_raw3(__NR_tgkill, r->part->pid, r->tid, USER_STAY_SIGNAL);
}

static int hand_over(const struct user_request *r, struct user_stay *e)
{
	struct user_part *p = r->part;

	p->stay = e;
	__atomic_store_n(&p->armed, r->tid, __ATOMIC_RELEASE);
	if (signal_caller(r))
		return 1;
	__atomic_store_n(&p->armed, 0, __ATOMIC_RELEASE);
	p->stay = NULL;
	user_stay_free(e);
	return 0;
}

static int try_to_stay(const struct user_request *r)
{
	struct user_part *p = r->part;
	struct user_stay *e;
	enum last last;
	int tries;

	if (r->arch != PVAS_AUDIT_ARCH || p->unfit || p->page->ignores || other_leaves(r))
		return 0;
	last = drop_last(r, &tries);
	if (last == LAST_BUSY)
		return has_handler(r->tid) && signal_caller(r);
	e = last == LAST_GONE ? prepare(r, tries) : NULL;
	return e && hand_over(r, e);
}

/* Not while the others wait for the end of all threads: then that one's turn comes first. */
static int may_leave(struct user_part *p)
{
	int parks = PARK_NOT;

	return __atomic_compare_exchange_n(&p->parks, &parks, PARK_LEAVES, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED) || parks == PARK_LEAVES;
}

int user_stay(struct user_request *r)
{
	struct user_part *p = r->part;
	int parks = PARK_LEAVES;

	/* The one that was leaving has not. */
	if (!other_leaves(r))
		__atomic_compare_exchange_n(&p->parks, &parks, PARK_NOT, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
	if (try_to_stay(r))
		return 1;
	if (may_leave(p))
		return 0;
	if (has_handler(r->tid))
		return signal_caller(r);
	/* It blocks the signal that has been sent to it: its program would die of that. */
	return is_pending(r->tid) ? -EAGAIN : 0;
}
