// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the new task's stack, as the module makes it: from the top the
 * strings, random bytes and platform name, struct pvas_start, the auxiliary
 * vector, envp, argv, argc. In the new process: raw system calls only.
 */
#include <elf.h>
#include <errno.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "rawsys.h"
#include "child.h"

#define STACK_EXTRA	(128UL << 10)	/* mapped below the contents */
#define STRING_MAX	(128UL << 10)	/* MAX_ARG_STRLEN */
#define STRINGS_MAX	(6UL << 20)	/* of all, with a large stack */
#define STRINGS_MIN	(128UL << 10)
#define AUX_MAX		48

static const char platform[] = "x86_64";

/**
 * struct plan - contents of the stack
 * @prog:	the program
 * @argv:	arguments from the second on if it is a script, else all
 * @envp:	environment
 * @argc:	arguments, @prog's included
 * @envc:	variables
 * @bytes:	of all strings
 * @text:	where the next string goes
 */
struct plan {
	const struct user_program *prog;
	char *const *argv;
	char *const *envp;
	uint64_t argc;
	uint64_t envc;
	uint64_t bytes;
	char *text;
};

static int add_up(struct plan *plan, const char *s)
{
	uint64_t len = strlen(s) + 1;

	plan->bytes += len;
	return len > STRING_MAX ? -E2BIG : 0;
}

/* An empty argv becomes one empty argument, as since Linux 5.18. */
static int measure(struct plan *plan)
{
	static char *const empty[] = { (char *)"", NULL };
	unsigned int i;
	int err = add_up(plan, plan->prog->path);

	if (plan->prog->nr_head && *plan->argv)
		plan->argv++;
	if (!plan->prog->nr_head && !*plan->argv)
		plan->argv = empty;
	for (i = 0; i < plan->prog->nr_head && !err; i++)
		err = add_up(plan, plan->prog->head[i]);
	plan->argc = i;
	for (i = 0; plan->argv[i] && !err; i++)
		err = add_up(plan, plan->argv[i]);
	plan->argc += i;
	for (i = 0; plan->envp[i] && !err; i++)
		err = add_up(plan, plan->envp[i]);
	plan->envc = i;
	return err;
}

static int check_size(const struct plan *plan)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t most;

	pvas_raw4(__NR_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
	most = limit.rlim_cur / 4 < STRINGS_MAX ? limit.rlim_cur / 4 : STRINGS_MAX;
	if (most < STRINGS_MIN)
		most = STRINGS_MIN;
	return plan->bytes + (plan->argc + plan->envc) * sizeof(char *) > most ? -E2BIG : 0;
}

static uint64_t put_string(struct plan *plan, const char *s)
{
	size_t len = strlen(s) + 1;
	char *to = plan->text;

	memcpy(to, s, len);
	plan->text += len;
	return (uint64_t)to;
}

/* ---- the auxiliary vector ---- */

struct aux {
	uint64_t *at;
	unsigned int n;
};

static void add(struct aux *aux, uint64_t type, uint64_t value)
{
	aux->at[2 * aux->n] = type;
	aux->at[2 * aux->n + 1] = value;
	aux->n++;
}

static void add_machine(struct aux *aux, const struct user_space *u)
{
	unsigned int i;

	for (i = 0; i < u->nr_aux; i++)
		add(aux, u->aux[2 * i], u->aux[2 * i + 1]);
}

static void add_task(struct aux *aux, const struct user_part *p, const struct user_program *prog)
{
	add(aux, AT_PHDR, prog->image.phdr ? p->layout.load + prog->image.phdr : 0);
	add(aux, AT_PHENT, sizeof(Elf64_Phdr));
	add(aux, AT_PHNUM, prog->phnum);
	add(aux, AT_BASE, 0);
	add(aux, AT_FLAGS, 0);
	add(aux, AT_ENTRY, p->layout.load + prog->image.entry);
	add(aux, AT_UID, pvas_raw0(__NR_getuid));
	add(aux, AT_EUID, pvas_raw0(__NR_geteuid));
	add(aux, AT_GID, pvas_raw0(__NR_getgid));
	add(aux, AT_EGID, pvas_raw0(__NR_getegid));
	add(aux, AT_SECURE, 0);
}

/* ---- from the top down ---- */

static void fill_start(struct pvas_start *start, const struct user_start *s, int fd)
{
	const struct user_part *p = s->part;

	memset(start, 0, sizeof(*start));
	start->size = sizeof(*start);
	start->id = s->u->space->id;
	start->index = (uint32_t)(p - s->u->parts);
	start->shift = s->u->space->shift;
	start->exec_fd = fd;
	start->table = s->u->header->table;
	start->load = p->layout.load;
	start->heap = p->layout.heap;
	start->gen = p->gen;
}

static int map_stack(const struct user_start *s, const struct user_program *prog, uint64_t len)
{
	uint64_t bottom = PAGE_DOWN(s->part->layout.stack - len - STACK_EXTRA);
	int prot = PROT_READ | PROT_WRITE | (prog->image.stack_exec ? PROT_EXEC : 0);
	long at = pvas_raw6(__NR_mmap, bottom, s->part->layout.stack - bottom, prot,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK |
			    MAP_FIXED_NOREPLACE, -1, 0);

	return at == (long)bottom ? 0 : -ENOMEM;
}

static uint64_t *put_argv(struct plan *plan, uint64_t *to)
{
	unsigned int i;

	for (i = plan->prog->nr_head; i > 0; i--)
		*to++ = put_string(plan, plan->prog->head[i - 1]);
	for (i = 0; plan->argv[i]; i++)
		*to++ = put_string(plan, plan->argv[i]);
	*to++ = 0;
	return to;
}

static uint64_t *put_envp(struct plan *plan, uint64_t *to)
{
	unsigned int i;

	for (i = 0; plan->envp[i]; i++)
		*to++ = put_string(plan, plan->envp[i]);
	*to++ = 0;
	return to;
}

int user_stack_check(const struct user_start *s, const struct user_program *prog)
{
	struct plan plan = { .prog = prog, .argv = s->call->argv, .envp = s->call->envp };
	int err = measure(&plan);

	return err ? err : check_size(&plan);
}

int user_stack_make(const struct user_start *s, const struct user_program *prog,
		    uint64_t *sp, uint64_t *info)
{
	struct plan plan = { .prog = prog, .argv = s->call->argv, .envp = s->call->envp };
	uint64_t auxv[2 * AUX_MAX];
	struct aux aux = { .at = auxv };
	uint64_t random, name, words, total, *to;
	int err;

	err = measure(&plan);
	if (!err)
		err = check_size(&plan);
	words = 1 + plan.argc + 1 + plan.envc + 1 + 2 * AUX_MAX;
	total = s->part->layout.skew + plan.bytes + words * sizeof(uint64_t) +
		sizeof(struct pvas_start) + 128;
	if (!err)
		err = map_stack(s, prog, total);
	if (err)
		return err;

	plan.text = (char *)s->part->layout.stack - s->part->layout.skew - 8 - plan.bytes;
	random = ((uint64_t)plan.text & ~15UL) - 16;
	name = random - 16;
	*info = (name - sizeof(struct pvas_start)) & ~15UL;
	*sp = (*info - words * sizeof(uint64_t)) & ~15UL;
	pvas_raw3(__NR_getrandom, random, 16, 0);
	memcpy((void *)name, platform, sizeof(platform));
	fill_start((struct pvas_start *)*info, s, prog->fd);

	to = (uint64_t *)*sp;
	*to++ = plan.argc;
	to = put_argv(&plan, to);
	to = put_envp(&plan, to);
	add_machine(&aux, s->u);
	add_task(&aux, s->part, prog);
	add(&aux, AT_RANDOM, random);
	add(&aux, AT_PLATFORM, name);
	add(&aux, AT_EXECFN, put_string(&plan, prog->path));
	add(&aux, AT_PVAS, *info);
	add(&aux, AT_NULL, 0);
	/* cppcheck-suppress uninitvar ; add() has filled it */
	memcpy(to, auxv, 2 * aux.n * sizeof(uint64_t));
	return 0;
}
