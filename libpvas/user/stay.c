// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the execve() of a task that stays in its space, the worker's part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "rawsys.h"
#include "stay.h"
#include "worker.h"

#define STACK_SIZE	(512UL << 10)
#define POINTERS_SIZE	(2UL << 20)
#define STRINGS_SIZE	(7UL << 20)	/* more than an execve() takes */
#define CHUNK		256
#define STATUS_SIZE	(1UL << 20)	/* with 65536 groups */

#define ENV_STAY	"PVAS_EXEC=stay"
#define SYSCALL		"\x0f\x05"

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

static int number_in(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? atoi(line + strlen(name)) : -1;
}

/* The lines of the capabilities, from the inheritable to the ambient ones. */
static int same_capabilities(const char *own, const char *others)
{
	const char *a = strstr(own, "\nCapInh:"), *b = strstr(others, "\nCapInh:");
	const char *end = a ? strstr(a, "\nNoNewPrivs:") : NULL;

	return end && b && !strncmp(a, b, end + 1 - a);
}

/*
 * Has it no filter of its own, which could refuse it what an execve() does unseen? Has it the
 * supervisor's capabilities, which an execve() does not change (user_credentials_check()), and
 * no securebits by which it would?
 */
static int is_plain(const struct user_request *r)
{
	char *own = malloc(2 * STATUS_SIZE), *others;
	int filters, plain = 0;

	if (!own)
		return 0;
	others = own + STATUS_SIZE;
	user_proc_read(r->tid, "status", own, STATUS_SIZE);
	user_proc_read(r->u->supervisor_tid, "status", others, STATUS_SIZE);
	filters = number_in(own, "\nSeccomp_filters:");
	if (filters > 0 && filters == number_in(others, "\nSeccomp_filters:"))
		plain = same_capabilities(own, others);
	free(own);
	return plain;
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

static int copy_arguments(struct user_stay *e, const uint64_t *args)
{
	char *pointers = (char *)e->stack;
	struct copy c = {
		.to = (char **)pointers, .to_end = (char **)(pointers + POINTERS_SIZE),
		.text = pointers + POINTERS_SIZE, .text_end = (char *)e + e->size,
	};

	e->path = copy_string(&c, args[0]);
	e->argv = e->path ? copy_list(&c, args[1]) : NULL;
	e->envp = e->argv ? copy_list(&c, args[2]) : NULL;
	return !!e->envp;
}

/* Not without being asked: see doc/backends.md. */
static int wants_to_stay(char *const *envp)
{
	for (; *envp; envp++)
		if (!strcmp(*envp, ENV_STAY))
			return 1;
	return 0;
}

/* Only what is used of it gets memory. */
static struct user_stay *allocate(void)
{
	size_t size = PAGE + STACK_SIZE + POINTERS_SIZE + STRINGS_SIZE;
	struct user_stay *e = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (e == MAP_FAILED)
		return NULL;
	madvise(e, size, MADV_NOHUGEPAGE);
	e->size = size;
	e->stack = (uint64_t)e + PAGE + STACK_SIZE;
	return e;
}

void user_stay_free(struct user_stay *e)
{
	if (e)
		munmap(e, e->size);
}

static struct user_stay *prepare(const struct user_request *r)
{
	struct user_stay *e;

	if (__atomic_exchange_n(&r->part->leaving, 0, __ATOMIC_ACQ_REL))
		return NULL;
	if (r->nr != __NR_execve)
		return NULL;
	e = allocate();
	if (!e)
		return NULL;
	e->u = r->u;
	e->part = r->part;
	e->nr = r->nr;
	e->again = r->ip - 2;
	e->securebits = pvas_raw2(__NR_prctl, PR_GET_SECUREBITS, 0);
	if (copy_arguments(e, r->args) && wants_to_stay(e->envp) && is_plain(r))
		return e;
	user_stay_free(e);
	return NULL;
}

/* ---- the jump ---- */

/*
 * The thread that executes the code waits, or is the caller. Others may be executing code in
 * the same page. 0 or -errno.
 */
static int write_code(uint64_t at, const unsigned char *code)
{
	uint64_t page = PAGE_DOWN(at), len = PAGE_UP(at + STAY_CODE_LEN) - page;
	long err = pvas_raw3(__NR_mprotect, page, len, PROT_READ | PROT_WRITE | PROT_EXEC);

	if (!err)
		memcpy((void *)at, code, STAY_CODE_LEN);
	/* One of two pages may have been changed. */
	if (pvas_raw3(__NR_mprotect, page, len, PROT_READ | PROT_EXEC) && !err)
		err = -EACCES;
	return (int)err;
}

void user_stay_disarm(struct user_stay *e)
{
	if (!e || !e->armed)
		return;
	e->armed = 0;
	write_code(e->again + 2, e->code);
}

static void make_jump(unsigned char *code, const struct user_stay *e)
{
	uint64_t entry = (uint64_t)user_stay_entry, arg = (uint64_t)e;

	memcpy(code, "\x48\xb9", 2);
	memcpy(code + 2, &arg, sizeof(arg));
	memcpy(code + 10, "\x48\xb8", 2);
	memcpy(code + 12, &entry, sizeof(entry));
	memcpy(code + 20, "\xff\xe0", 2);
}

/* As a program has it: a write to another kind would be seen by others, or change it. */
static int is_private_code(uint64_t at)
{
	FILE *maps = user_maps_open();
	struct user_mapping m = { 0 };

	while (maps && user_maps_next(maps, &m) && m.end < at + 2 + STAY_CODE_LEN)
		;
	if (maps)
		fclose(maps);
	return m.start <= at && m.end >= at + 2 + STAY_CODE_LEN && m.private_code;
}

static int hand_over(const struct user_request *r, struct user_stay *e)
{
	unsigned char jump[STAY_CODE_LEN], call[2 + STAY_CODE_LEN];
	pid_t self = user_caller_self();

	if (user_foreign(r->part, e->again, 2 + STAY_CODE_LEN) || !is_private_code(e->again) ||
	    user_caller_read(self, e->again, call, sizeof(call)) != sizeof(call) ||
	    memcmp(call, SYSCALL, 2))
		return 0;
	make_jump(jump, e);
	memcpy(e->code, call + 2, sizeof(e->code));
	if (write_code(r->ip, jump))
		return 0;
	e->armed = 1;
	return 1;
}

/* The last one's jump is still there if a signal handler has jumped out of its way. */
int user_stay(struct user_request *r)
{
	struct user_part *p = r->part;
	struct user_stay *e;

	/* The code belongs to the first thread, which is here, and not on its way to the jump. */
	if (r->tid != p->pid)
		return 0;
	user_stay_disarm(p->stay);
	e = prepare(r);
	if (!e || !hand_over(r, e)) {
		user_stay_free(e);
		return 0;
	}
	user_stay_free(p->stay);
	p->stay = e;
	user_exec_forget(r->u, p);
	return 1;
}
