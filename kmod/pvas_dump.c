// SPDX-License-Identifier: GPL-2.0-only
/*
 * Core files of tasks: the task's own partition, partition 0 with the space
 * header, and the mappings outside all partitions, but not the whole job.
 *
 * The kernel dumps a process by mm->binfmt->core_dump(), and a space's mm has
 * the ELF format of its creator. The module's own format replaces it: it
 * shortens the list of mappings, calls the ELF format, and restores the list,
 * which the caller frees. The list belongs to the dumping thread and was taken
 * under the mmap lock; no lock is held here.
 *
 * A fork child of a task inherits the format with its copy of the mm. It is not a
 * task, and is dumped like any process. It holds the module (the kernel counts the
 * users of a format on its module) until it execs or exits.
 */
#include <linux/binfmts.h>
#include <linux/coredump.h>
#include <linux/moduleparam.h>

#include "pvas.h"

static bool pvas_whole_cores;
module_param_named(whole_cores, pvas_whole_cores, bool, 0644);
MODULE_PARM_DESC(whole_cores, "a task's core file holds the whole space (default no: its own partition)");

#if PVAS_DUMP_ENDS_SPACE
/*
 * Before the kernel writes the core file of a process, it ends all that have the same mm, unless
 * the format has none.
 */
static struct linux_binfmt pvas_dump_format = {
	.module		= THIS_MODULE,
};

void pvas_dump_adopt(void)
{
	set_binfmt(&pvas_dump_format);
}
#elif defined(CONFIG_COREDUMP)
/* Set by the first space; the same for all, because there is one ELF format. */
static int (*pvas_elf_dump)(struct coredump_params *cprm);

static bool pvas_dump_wants(const struct pvas_partition *part, const struct core_vma_metadata *m)
{
	const struct pvas_space *space = part->space;
	unsigned int index = pvas_index_of(space, m->start);

	/* A partition with the vdso, for example, is reserved. */
	return index == part->index || index < space->first || index > space->last ||
	       test_bit(index, space->reserved);
}

/* Moves the chosen mappings to the front, in their order. Returns their number. */
static int pvas_dump_choose(struct coredump_params *cprm, const struct pvas_partition *part)
{
	struct core_vma_metadata *m = cprm->vma_meta;
	int i, chosen = 0;

	for (i = 0; i < cprm->vma_count; i++) {
		if (pvas_dump_wants(part, &m[i])) {
			swap(m[chosen], m[i]);	/* a macro that reads its arguments twice */
			chosen++;
		}
	}
	return chosen;
}

static int pvas_dump(struct coredump_params *cprm)
{
	const struct pvas_partition *part = pvas_task_partition_entered();
	int all = cprm->vma_count;
	size_t size = cprm->vma_data_size;
	int i, ret;

	if (!part || READ_ONCE(pvas_whole_cores))
		return pvas_elf_dump(cprm);
	cprm->vma_count = pvas_dump_choose(cprm, part);
	for (i = cprm->vma_count; i < all; i++)
		cprm->vma_data_size -= cprm->vma_meta[i].dump_size;
	ret = pvas_elf_dump(cprm);
	cprm->vma_count = all;
	cprm->vma_data_size = size;
	return ret;
}

static struct linux_binfmt pvas_dump_format = {
	.module		= THIS_MODULE,
	.core_dump	= pvas_dump,
};

/*
 * The caller's mm has become a space. If its format is a module, which could be removed
 * while it is called, the tasks' core files hold the whole space.
 */
void pvas_dump_adopt(void)
{
	struct linux_binfmt *format = current->mm->binfmt;
	int (*dump)(struct coredump_params *cprm) = NULL;

	if (!format || format == &pvas_dump_format || format->module || !format->core_dump)
		return;
	dump = cmpxchg(&pvas_elf_dump, NULL, format->core_dump);
	if (dump && dump != format->core_dump)
		return;
	pvas_dump_format.min_coredump = format->min_coredump;
	set_binfmt(&pvas_dump_format);
}
#else
void pvas_dump_adopt(void)
{
}
#endif
