// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/pvas: a line for each space, and below it one for each task. A reader sees its
 * own spaces, and with CAP_SYS_PTRACE all in its user namespace.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/proc_fs.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>

#include "pvas.h"

static const char * const pvas_state_names[] = {
	[PVAS_PART_FREE]	= "free",
	[PVAS_PART_ARMED]	= "armed",
	[PVAS_PART_RUNNING]	= "running",
	[PVAS_PART_ENDING]	= "ending",
	[PVAS_PART_RESERVED]	= "reserved",
};

static void pvas_show_space(struct seq_file *m, struct pvas_space *space, u32 in_use, bool open)
{
	struct mm_struct *mm = space->mm;
	unsigned long rss = 0, tables = 0;
	int maps = 0;

	if (mmget_not_zero(mm)) {
		rss = get_mm_rss(mm) << (PAGE_SHIFT - 10);
		tables = mm_pgtables_bytes(mm) >> 10;
		maps = READ_ONCE(mm->map_count);
		/* Not here: dropping the last reference frees all pages. */
		pvas_mmput(space);
	}
	seq_printf(m, "space %u uid %u partition_gib %lu tasks %u rss_kib %lu pagetables_kib %lu maps %d %s\n",
		   space->id, from_kuid_munged(seq_user_ns(m), space->cred->uid),
		   1UL << (space->shift - 30), in_use, rss, tables, maps,
		   open ? "open" : "closing");
}

static void pvas_show_tasks(struct seq_file *m, struct pvas_space *space)
{
	struct pid_namespace *ns = proc_pid_ns(file_inode(m->file)->i_sb);
	struct pvas_partition *part;
	u32 i;

	spin_lock(&space->lock);
	for (i = space->first; i <= space->last; i++) {
		part = space->parts[i];
		if (!part)
			continue;
		seq_printf(m, "  task %u pid %d %s users %u range %lx-%lx load %llx heap %llx brk %lx\n",
			   i, pid_nr_ns(part->pid, ns), pvas_state_names[part->state],
			   part->members, part->base, part->end, part->layout.load,
			   part->layout.heap, READ_ONCE(part->brk));
	}
	spin_unlock(&space->lock);
}

static int pvas_proc_show(struct seq_file *m, void *v)
{
	struct pvas_space *space;
	u32 id, in_use;
	bool open;

	for (id = 1; (space = pvas_space_next(&id)); id++) {
		if (pvas_space_may_look(space, m->file)) {
			spin_lock(&space->lock);
			in_use = space->in_use;
			open = pvas_space_is_open(space);
			spin_unlock(&space->lock);
			pvas_show_space(m, space, in_use, open);
			if (pvas_space_may_see_tasks(space, m->file))
				pvas_show_tasks(m, space);
		}
		pvas_space_put(space);
	}
	return 0;
}

/*
 * An open file holds the module. Removing the entry would wait for a reader, whose page can be
 * of a file server that does not answer.
 */
static int pvas_proc_open(struct inode *inode, struct file *file)
{
	int err;

	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	err = single_open(file, pvas_proc_show, NULL);
	if (err)
		module_put(THIS_MODULE);
	return err;
}

static int pvas_proc_release(struct inode *inode, struct file *file)
{
	int err = single_release(inode, file);

	/* Removing the entry waits for this function. */
	module_put(THIS_MODULE);
	return err;
}

static const struct proc_ops pvas_proc_ops = {
	.proc_open	= pvas_proc_open,
	.proc_read_iter	= seq_read_iter,
	.proc_lseek	= seq_lseek,
	.proc_release	= pvas_proc_release,
};

int pvas_proc_init(void)
{
	return proc_create("pvas", 0444, NULL, &pvas_proc_ops) ? 0 : -ENOMEM;
}

void pvas_proc_exit(void)
{
	remove_proc_entry("pvas", NULL);
}
