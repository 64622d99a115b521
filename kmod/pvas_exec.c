// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binfmt handler: the exec of an armed process enters its space, and that of a task
 * stays in it (see pvas_stay.c).
 *
 * It is the first in the list of formats. It leaves every other process to
 * the others, and scripts to binfmt_script, whose interpreter then comes here. Everything
 * that can be wrong with the program is found before the point of no return. Then the
 * kernel's own begin_new_exec() and setup_new_exec() run on the private mm that execve()
 * made; only after that the task changes over to the shared mm, where it gets a stack and
 * starts in the loader.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/elf.h>
#include <linux/freezer.h>
#include <linux/file.h>
#include <linux/personality.h>
#include <linux/sched/coredump.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/elf.h>

#include "pvas.h"
#include "pvas_elf.h"
#include "pvas_exec.h"
#include "pvas_member.h"
#include "pvas_stay.h"

/*
 * As in binfmt_elf, which reads randomize_va_space; that is not exported. PF_RANDOMIZE
 * has the decision of the previous exec and is inherited over fork: so this is the value
 * that the sysctl had when the launcher started.
 */
static bool pvas_may_randomize(const struct linux_binprm *bprm)
{
	return (current->flags & PF_RANDOMIZE) &&
	       !(current->personality & ~bprm->per_clear & ADDR_NO_RANDOMIZE);
}

static int pvas_exec_prepare(struct pvas_exec *ex)
{
	struct linux_binprm *bprm = ex->bprm;
	Elf64_Ehdr ehdr;
	bool locked;
	int err;

	/* From binfmt_misc, where another file is the program. */
	if (bprm->have_execfd)
		return -ENOEXEC;
	err = pvas_program_read(bprm->file, &ehdr, &ex->image) ?: pvas_program_check_rights(bprm) ?:
	      pvas_program_check_interp(bprm, &ex->image, &locked);
	if (err)
		return err;
	/* A task's program can leave instead, which keeps them. */
	if (ex->stays && (locked || pvas_program_is_locked(bprm->file)))
		return -EBUSY;
	/* would_dump() has now looked at the interpreter, too. */
	if (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP)
		return -EPERM;
	ex->phnum = ehdr.e_phnum;
	/* The ids and labels of the new program, as far as they are known. */
	if (!pvas_space_may_enter(ex->part->space, bprm->cred) ||
	    !pvas_space_is_dumpable(ex->part->space))
		return -EPERM;
	if (READ_ONCE(ex->part->space->dead))
		return -ESRCH;
	ex->randomize = pvas_may_randomize(bprm);
	return pvas_mm_layout(ex->part, &ex->image, bprm->rlim_stack.rlim_cur, ex->randomize) ?:
	       pvas_stack_measure(ex);
}

/* As SET_PERSONALITY2() for a 64-bit program; its helper is not exported. */
static void pvas_set_personality(void)
{
	clear_thread_flag(TIF_ADDR32);
	task_pt_regs(current)->orig_ax = __NR_execve;
	current_thread_info()->status &= ~TS_COMPAT;
	current->personality &= ~READ_IMPLIES_EXEC;
}

/* The loader reads the program through a descriptor and closes it before it jumps. */
static int pvas_install_fd(struct linux_binprm *bprm)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd >= 0)
		fd_install(fd, get_file(bprm->file));
	return fd;
}

/*
 * Waits until the caller has been switched out and in again. A tracer that waits for the exec lets
 * this run too early: then its program begins without an id, and gets one with the next switch.
 *
 * And obeys the freezer of cgroup v1, or of a suspend, which has taken the caller for a kernel
 * thread in pvas_switch_mm(), and waits for it. A flag for the way back to user mode,
 * TIF_SIGPENDING, is not enough.
 */
static void pvas_settle(struct callback_head *work)
{
	struct pvas_partition *part = container_of(work, struct pvas_partition, settle);

	while (pvas_cid_is_missing())
		usleep_range(10, 50);
	/* Its membership ends after this, so its space holds the module. Not if it is exiting. */
	if (!(current->flags & PF_EXITING))
		try_to_freeze();
	/* pvas_exit() waits with synchronize_rcu_tasks() until we have returned. */
	pvas_partition_put(part);
}

static void pvas_settle_later(struct pvas_partition *part)
{
	if (!PVAS_HAVE_CID_USERS && !freezing(current))
		return;
	kref_get(&part->ref);
	init_task_work(&part->settle, pvas_settle);
	if (task_work_add(current, &part->settle, TWA_RESUME))
		pvas_partition_put(part);
}

/* The caller uses the space's mm, and its calls are not bounded yet. */
static int pvas_build_task(struct pvas_exec *ex)
{
	struct pvas_partition *part = ex->part;
	struct linux_binprm *bprm = ex->bprm;
	struct pt_regs *regs = task_pt_regs(current);
	unsigned long sp, start;
	int err, fd;

	fd = pvas_install_fd(bprm);
	if (fd < 0)
		return fd;
	err = pvas_stack_build(ex, fd, &sp, &start) ?: pvas_stack_map(ex, sp);
	if (err)
		return err;
	pvas_table_publish(part, PVAS_PART_RUNNING);
	pvas_exe_show(part, bprm->file);
	pvas_task_entered();
	pvas_settle_later(part);

	finalize_exec(bprm);
	ELF_PLAT_INIT(regs, 0);
	start_thread(regs, part->space->loader, sp);
	regs->di = start;
	return 0;
}

/* Makes the caller a member, with write access to the program denied, before it can be seen. */
static int pvas_enter(struct pvas_exec *ex)
{
	struct file *exe = ex->bprm->file;
	int err;

	err = pvas_deny_write(exe);
	if (err)
		return err;
	get_file(exe);
	if (ex->stays)
		err = pvas_stay_enter(ex->stays, exe);
	else
		err = pvas_task_enter(ex->part, exe) ? 0 : -ESRCH;
	if (err != -ESRCH)
		return err;
	pvas_allow_write(exe);
	fput(exe);
	return -ESRCH;
}

/* Past the point of no return: any error kills the process. */
static int pvas_exec_commit(struct pvas_exec *ex)
{
	struct linux_binprm *bprm = ex->bprm;
	unsigned long p = bprm->p;
	size_t strings = ex->buf_len - ALIGN(ex->strings, 16);
	int err;

	err = begin_new_exec(bprm);
	if (err)
		return err;
	pvas_set_personality();
	/* begin_new_exec() has cleared it. */
	if (ex->randomize)
		current->flags |= PF_RANDOMIZE;
	setup_new_exec(bprm);
	/* Only now the credentials are those of the new program. */
	if (!pvas_space_admit(ex->part->space) || bprm->secureexec ||
	    !pvas_mm_is_dumpable(current->mm) || !pvas_task_is_dumpable(current))
		return -EPERM;
	if (copy_from_user(ex->buf + strings, (void __user *)p, ex->strings))
		return -EFAULT;
	err = pvas_enter(ex);
	if (err)
		return err;
	return pvas_join(ex->part->space) ?: pvas_build_task(ex);
}

/* Does the program become a task? Then with the partition and, if the caller is one, a member. */
static bool pvas_exec_begin(struct pvas_exec *ex)
{
	ex->part = pvas_task_armed();
	if (ex->part)
		return true;
	ex->stays = pvas_stay_begin(ex->bprm);
	if (!ex->stays)
		return false;
	ex->part = ex->stays->part;
	kref_get(&ex->part->ref);
	return true;
}

static void pvas_exec_end(struct pvas_exec *ex)
{
	kvfree(ex->buf);
	if (ex->stays)
		pvas_stay_end(ex->stays);
	pvas_partition_put(ex->part);
}

static int pvas_load_binary(struct linux_binprm *bprm)
{
	struct pvas_exec ex = { .bprm = bprm };
	int err;

	if (bprm->buf[0] == '#' && bprm->buf[1] == '!')
		return -ENOEXEC;
	if (!pvas_exec_begin(&ex))
		return -ENOEXEC;
	err = pvas_exec_prepare(&ex);
	/* A task's program that can't be one runs outside the space. */
	if (ex.stays && (err || !pvas_stay_may(ex.stays))) {
		pvas_exec_end(&ex);
		return -ENOEXEC;
	}
	err = err ?: pvas_exec_commit(&ex);
	/*
	 * After -ENOEXEC the kernel tries the next format, and binfmt_elf would run the
	 * program outside the space. No format begins with these bytes, and because they
	 * are printable, the kernel does not load a module for them.
	 */
	if (err == -ENOEXEC)
		memset(bprm->buf, '?', 4);
	pvas_exec_end(&ex);
	if (err)
		pvas_task_leave_if_out();
	return err;
}

static struct linux_binfmt pvas_format = {
	.module		= THIS_MODULE,
	.load_binary	= pvas_load_binary,
};

int pvas_exec_init(void)
{
	__register_binfmt(&pvas_format, 1);
	return 0;
}

void pvas_exec_exit(void)
{
	unregister_binfmt(&pvas_format);
}
