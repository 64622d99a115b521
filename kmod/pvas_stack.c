// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stack of a new task. From the top: the strings, as execve() laid them; random bytes
 * and platform name; struct pvas_start; the auxiliary vector, envp, argv, argc. All of it
 * is built in a buffer and then copied.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/elf.h>

#include "pvas.h"
#include "pvas_exec.h"

/* Mapped below the contents at once, as by setup_arg_pages(). */
#define PVAS_STACK_EXTRA	(128UL << 10)
/* Longest auxiliary vector written, in entries. */
#define PVAS_AUX_MAX		40

/* The argument strings lie in [p, end of the first stack area) of the new mm. */
int pvas_stack_measure(struct pvas_exec *ex)
{
	struct linux_binprm *bprm = ex->bprm;
	unsigned long end = bprm->vma->vm_end;

	if (bprm->p >= end || bprm->argc < 0 || bprm->envc < 0)
		return -EINVAL;
	ex->strings = end - bprm->p;
	ex->buf_len = ALIGN(ex->strings, 16) + sizeof(struct pvas_start) + 64 +
		      (PVAS_AUX_MAX * 2 + 4 + (size_t)bprm->argc + bprm->envc) * sizeof(u64);
	ex->buf_len = ALIGN(ex->buf_len, 16);
	/* Megabytes, for as long as a file system lets the exec wait: charged to the caller. */
	ex->buf = kvzalloc(ex->buf_len, GFP_KERNEL_ACCOUNT);
	return ex->buf ? 0 : -ENOMEM;
}

struct pvas_aux {
	u64 *at;
	unsigned int n;
};

static void pvas_aux_add(struct pvas_aux *aux, u64 type, u64 val)
{
	if (aux->n + 1 >= PVAS_AUX_MAX)
		return;
	aux->at[2 * aux->n] = type;
	aux->at[2 * aux->n + 1] = val;
	aux->n++;
}

/*
 * The entries that describe the machine and the kernel (AT_HWCAP, AT_MINSIGSTKSZ, ...)
 * are the same for all: they are copied from the creator's vector.
 */
static void pvas_aux_machine(struct pvas_aux *aux, const struct mm_struct *mm)
{
	unsigned int i;

	for (i = 0; i + 1 < ARRAY_SIZE(mm->saved_auxv); i += 2) {
		switch (mm->saved_auxv[i]) {
		case AT_NULL:
			return;
		case AT_HWCAP:
		case AT_HWCAP2:
		case AT_PAGESZ:
		case AT_CLKTCK:
		case AT_MINSIGSTKSZ:
		case 27:	/* AT_RSEQ_FEATURE_SIZE, from 6.3 on */
		case 28:	/* AT_RSEQ_ALIGN */
			pvas_aux_add(aux, mm->saved_auxv[i], mm->saved_auxv[i + 1]);
		}
	}
}

static void pvas_aux_task(struct pvas_aux *aux, const struct pvas_exec *ex)
{
	const struct cred *cred = current_cred();
	const struct pvas_partition *part = ex->part;

	if (current->mm->context.vdso)
		pvas_aux_add(aux, AT_SYSINFO_EHDR, (__force u64)current->mm->context.vdso);
	pvas_aux_add(aux, AT_PHDR, ex->image.phdr ? part->layout.load + ex->image.phdr : 0);
	pvas_aux_add(aux, AT_PHENT, sizeof(Elf64_Phdr));
	pvas_aux_add(aux, AT_PHNUM, ex->phnum);
	pvas_aux_add(aux, AT_BASE, 0);
	pvas_aux_add(aux, AT_FLAGS, ex->bprm->interp_flags & BINPRM_FLAGS_PRESERVE_ARGV0 ?
		     AT_FLAGS_PRESERVE_ARGV0 : 0);
	pvas_aux_add(aux, AT_ENTRY, part->layout.load + ex->image.entry);
	pvas_aux_add(aux, AT_UID, from_kuid_munged(cred->user_ns, cred->uid));
	pvas_aux_add(aux, AT_EUID, from_kuid_munged(cred->user_ns, cred->euid));
	pvas_aux_add(aux, AT_GID, from_kgid_munged(cred->user_ns, cred->gid));
	pvas_aux_add(aux, AT_EGID, from_kgid_munged(cred->user_ns, cred->egid));
	pvas_aux_add(aux, AT_SECURE, 0);
}

static void pvas_fill_start(struct pvas_start *start, const struct pvas_exec *ex, int fd)
{
	const struct pvas_partition *part = ex->part;

	start->size = sizeof(*start);
	start->id = part->space->id;
	start->index = part->index;
	start->shift = part->space->shift;
	start->exec_fd = fd;
	start->table = part->space->table;
	start->load = part->layout.load;
	start->heap = part->layout.heap;
	start->gen = part->gen;
}

/* argv and envp: pointers to the @n strings that begin at *off in @buf. */
static u64 *pvas_fill_pointers(u64 *sp, int n, const char *buf, size_t *off, size_t end,
			       unsigned long base)
{
	while (n-- > 0) {
		size_t len = strnlen(buf + *off, end - *off);

		if (len == end - *off)
			return NULL;
		*sp++ = base + *off;
		*off += len + 1;
	}
	*sp++ = 0;
	return sp;
}

/*
 * Fills @ex->buf, whose end is the top of the partition's stack, or @skew below it.
 * Receives the stack pointer and the address of struct pvas_start.
 */
int pvas_stack_build(struct pvas_exec *ex, int fd, unsigned long *sp, unsigned long *start)
{
	struct pvas_partition *part = ex->part;
	struct linux_binprm *bprm = ex->bprm;
	unsigned long base = part->layout.stack - part->layout.skew - ex->buf_len;
	size_t strings = ex->buf_len - ALIGN(ex->strings, 16);
	size_t end = strings + ex->strings, off = strings;
	size_t random = strings - 16, platform = random - 16;
	size_t info = ALIGN_DOWN(platform - sizeof(struct pvas_start), 16);
	size_t words = 1 + bprm->argc + 1 + bprm->envc + 1;
	u64 auxv[2 * PVAS_AUX_MAX] = {};
	struct pvas_aux aux = { .at = auxv };
	u64 *at;

	get_random_bytes(ex->buf + random, 16);
	strscpy(ex->buf + platform, ELF_PLATFORM, 16);
	pvas_fill_start((struct pvas_start *)(ex->buf + info), ex, fd);

	pvas_aux_machine(&aux, part->space->mm);
	pvas_aux_task(&aux, ex);
	pvas_aux_add(&aux, AT_RANDOM, base + random);
	pvas_aux_add(&aux, AT_PLATFORM, base + platform);
	pvas_aux_add(&aux, AT_EXECFN, base + strings + (bprm->exec - bprm->p));
	pvas_aux_add(&aux, AT_PVAS, base + info);
	words += 2 * (aux.n + 1);

	off = ALIGN_DOWN(info - words * sizeof(u64), 16);
	*sp = base + off;
	*start = base + info;
	at = (u64 *)(ex->buf + off);
	*at++ = bprm->argc;
	off = strings;
	part->arg_start = base + off;
	at = pvas_fill_pointers(at, bprm->argc, ex->buf, &off, end, base);
	if (!at)
		return -EINVAL;
	part->arg_end = part->env_start = base + off;
	at = pvas_fill_pointers(at, bprm->envc, ex->buf, &off, end, base);
	if (!at)
		return -EINVAL;
	/* pvas_exe_choose() reads the four without a lock. */
	smp_store_release(&part->env_end, base + off);
	memcpy(at, auxv, 2 * (aux.n + 1) * sizeof(u64));
	return 0;
}

int pvas_stack_map(struct pvas_exec *ex, unsigned long sp)
{
	struct pvas_partition *part = ex->part;
	unsigned long bottom = PAGE_ALIGN_DOWN(sp - PVAS_STACK_EXTRA);
	unsigned long prot = PROT_READ | PROT_WRITE | (ex->image.stack_exec ? PROT_EXEC : 0);
	unsigned long at;
	size_t skip = sp - (part->layout.stack - part->layout.skew - ex->buf_len);

	at = vm_mmap(NULL, bottom, part->layout.stack - bottom, prot,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, 0);
	if (at != bottom)
		return IS_ERR_VALUE(at) ? (long)at : -ENOMEM;
	if (copy_to_user((void __user *)sp, ex->buf + skip, ex->buf_len - skip))
		return -EFAULT;
	return 0;
}
