// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The loader: a task starts here in user space. It is freestanding and position
 * independent, lies in partition 0 and runs on the task's own stack.
 *
 * It does the work of the kernel's ELF loader after exec: it maps the program and
 * its interpreter, and completes the auxiliary vector. The module has checked the
 * files before the point of no return; errors here are for files that have changed
 * since then, and for mappings that fail.
 */
#include <asm/mman.h>
#include <errno.h>
#include <linux/auxvec.h>
#include <linux/pvas.h>

#include "../header.h"
#include "loading.h"
#include "map.h"
#include "die.h"
#include "sys.h"

struct aux {
	__u64 type;
	__u64 value;
};

/* The initial stack: argc, argv, NULL, envp, NULL, auxv. */
struct stack {
	const char *program;
	struct aux *auxv;
};

__u64 pvas_loader_main(const struct pvas_start *start, __u64 *sp, struct pvas_loading *loading,
		       __u64 place);

static struct stack read_stack(__u64 *sp)
{
	struct stack st = { .program = sp[0] ? (const char *)sp[1] : "?" };
	__u64 *p = sp + 1 + sp[0] + 1;

	while (*p)
		p++;
	st.auxv = (struct aux *)(p + 1);
	return st;
}

static void patch_auxv(struct aux *a, const struct pvas_object *program, __u64 base)
{
	const struct pvas_elf_image *img = &program->image;

	for (; a->type != AT_NULL; a++) {
		switch (a->type) {
		case AT_PHDR:
			a->value = img->phdr ? program->bias + img->phdr : 0;
			break;
		case AT_PHENT:
			a->value = sizeof(Elf64_Phdr);
			break;
		case AT_PHNUM:
			a->value = program->head.e_phnum;
			break;
		case AT_ENTRY:
			a->value = program->bias + img->entry;
			break;
		case AT_BASE:
			a->value = base;
			break;
		case AT_EXECFD:
			a->type = AT_IGNORE;	/* closed before anyone reads it */
			break;
		}
	}
}

static void map_program(const struct pvas_start *start, const char *name,
			struct pvas_object *o)
{
	int err;

	o->fd = start->exec_fd;
	o->bias = start->load;
	err = pvas_object_read(o);
	if (err)
		pvas_die(name, "can't read the program", 0, err);
	err = pvas_object_map_at(o);
	if (err)
		pvas_die(name, "can't map the program", 0, err);
}

/* At @place, if that was chosen for such a file, and is free */
static int map_interp_object(struct pvas_object *o, __u64 place)
{
	o->bias = place - o->image.lo;
	return place && !pvas_object_map_at(o) ? 0 : pvas_object_map_anywhere(o);
}

/*
 * Map the interpreter: returns its entry point, and stores its base address. Its
 * program headers overwrite the program's, which are no longer needed.
 */
static __u64 map_interp(const struct pvas_object *program, const char *name, __u64 place,
			__u64 *base)
{
	struct pvas_object o = { .ph = program->ph, .mark = program->mark };
	char path[PATH_MAX];
	int err;

	err = pvas_object_interp(program, path);
	if (err)
		pvas_die(name, "can't read the interpreter's path", 0, err);
	o.fd = pvas_sys_open(path);
	if (o.fd < 0)
		pvas_die(name, "can't open the interpreter", path, o.fd);
	err = pvas_object_read(&o);
	if (err == -ENOEXEC || (!err && o.image.interp_len))
		err = -ELIBBAD;
	if (err)
		pvas_die(name, "can't read the interpreter", path, err);
	err = map_interp_object(&o, place);
	if (err)
		pvas_die(name, "can't map the interpreter", path, err);
	pvas_sys_close(o.fd);
	*base = o.bias;
	return o.bias + o.image.entry;
}

static void set_stack_exec(const struct pvas_start *start, const char *name)
{
	int err;

	/* An old module does not pass the stack's bounds, but has done this itself. */
	if (start->stack_hi <= start->stack_lo)
		return;
	err = pvas_sys_mprotect(start->stack_lo, start->stack_hi - start->stack_lo,
				PROT_READ | PROT_WRITE | PROT_EXEC);
	if (err)
		pvas_die(name, "can't make the stack executable", 0, err);
}

#define HEADER_TRIES	10000	/* of a millisecond each */

/*
 * A space can be found by its key a moment before the process that creates it has
 * completed the header (convert_mm.c). A task that started that early would find no
 * header, and conclude that it is no task. The wait is in vain only if the creator
 * was killed at that moment.
 */
static void wait_for_header(const struct pvas_start *start, const char *name)
{
	const struct pvas_header *h =
		(const struct pvas_header *)(start->table - PVAS_HEADER_TABLE);
	int tries = HEADER_TRIES;

	while (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) != PVAS_HEADER_MAGIC) {
		if (!--tries)
			pvas_die(name, "the address space was never completed", 0, -ETIMEDOUT);
		pvas_sys_pause();
	}
}

/* @loading and @place are 0, or the user backend's. Returns the address to jump to. */
__u64 pvas_loader_main(const struct pvas_start *start, __u64 *sp, struct pvas_loading *loading,
		       __u64 place)
{
	struct stack st = read_stack(sp);
	Elf64_Phdr ph[PVAS_ELF_PHNUM_MAX];	/* 64 KiB: they fit on the stack */
	struct pvas_object program;
	__u64 base = 0;
	__u64 entry;

	wait_for_header(start, st.program);
	program.ph = ph;
	program.mark = loading ? loading->mark : 0;
	map_program(start, st.program, &program);
	entry = program.bias + program.image.entry;
	if (program.image.interp_len)
		entry = map_interp(&program, st.program, place, &base);
	if (program.image.stack_exec)
		set_stack_exec(start, st.program);
	patch_auxv(st.auxv, &program, base);
	pvas_sys_close(program.fd);
	if (loading)
		__atomic_store_n(&loading->active, 0, __ATOMIC_RELEASE);
	return entry;
}
