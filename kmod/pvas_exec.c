// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binfmt handler: an armed process's exec enters its space.
 *
 * It stands first in the list of formats, leaves every process that is not
 * armed to the others, and scripts to binfmt_script, whose interpreter comes
 * here in turn. What can be wrong with the program is found before the point
 * of no return. Then the kernel's own begin_new_exec() and setup_new_exec()
 * run on the private mm that execve() made; only after that the task changes
 * over to the shared mm, where a stack is made and the loader started.
 */
#include <linux/binfmts.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/elf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/personality.h>
#include <linux/random.h>
#include <linux/sched/coredump.h>
#include <linux/sched/jobctl.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/xattr.h>
#include <asm/elf.h>

#include "pvas.h"
#include "pvas_elf.h"

/* What setup_arg_pages() leaves below the strings at once. */
#define PVAS_STACK_EXTRA	(128UL << 10)
/* Longest auxiliary vector written, in entries. */
#define PVAS_AUX_MAX		40

/**
 * struct pvas_exec - one exec in progress
 * @bprm:	the kernel's record of it
 * @part:	where it goes, with a reference
 * @image:	the program's needs
 * @phnum:	its program headers
 * @randomize:	its places
 * @buf:	the top of the new stack, built here, then copied
 * @buf_len:	bytes in @buf
 * @strings:	bytes of argv, envp and file name strings
 */
struct pvas_exec {
	struct linux_binprm *bprm;
	struct pvas_partition *part;
	struct pvas_elf_image image;
	Elf64_Half phnum;
	bool randomize;
	char *buf;
	size_t buf_len;
	size_t strings;
};

/* ---- before the point of no return: is it a program we can run? ---- */

static int pvas_read_exact(struct file *file, void *buf, size_t len, loff_t pos)
{
	ssize_t n = kernel_read(file, buf, len, &pos);

	if (n < 0)
		return n;
	return n == len ? 0 : -ENOEXEC;
}

static int pvas_read_image(struct file *file, Elf64_Ehdr *ehdr, struct pvas_elf_image *image)
{
	Elf64_Phdr *phdrs;
	int err;

	err = pvas_read_exact(file, ehdr, sizeof(*ehdr), 0) ?: pvas_elf_check_ehdr(ehdr);
	if (err)
		return err;
	phdrs = kvmalloc(pvas_elf_phdrs_size(ehdr), GFP_KERNEL_ACCOUNT);
	if (!phdrs)
		return -ENOMEM;
	err = pvas_read_exact(file, phdrs, pvas_elf_phdrs_size(ehdr), ehdr->e_phoff) ?:
	      pvas_elf_check_phdrs(ehdr, phdrs, i_size_read(file_inode(file)), image);
	kvfree(phdrs);
	return err;
}

/* -ENOMEM and I/O errors are themselves; a bad interpreter is -ELIBBAD. */
static int pvas_check_interp_file(struct linux_binprm *bprm, const char *path)
{
	struct pvas_elf_image image;
	struct file *file;
	Elf64_Ehdr ehdr;
	int err;

	file = open_exec(path);
	if (IS_ERR(file))
		return PTR_ERR(file);
	would_dump(bprm, file);
	err = pvas_read_image(file, &ehdr, &image);
	if (err == -ENOEXEC || (!err && image.interp_len))
		err = -ELIBBAD;
	pvas_allow_write(file);
	fput(file);
	return err;
}

static int pvas_check_interp(struct linux_binprm *bprm, const struct pvas_elf_image *image)
{
	char *path;
	int err;

	if (!image->interp_len)
		return 0;
	path = kmalloc(image->interp_len, GFP_KERNEL_ACCOUNT);
	if (!path)
		return -ENOMEM;
	err = pvas_read_exact(bprm->file, path, image->interp_len, image->interp_off) ?:
	      pvas_elf_check_interp_path(path, image->interp_len) ?:
	      pvas_check_interp_file(bprm, path);
	kfree(path);
	return err;
}

/* S_ISGID without S_IXGRP means mandatory locking, not set-gid. */
static bool pvas_is_set_id(umode_t mode)
{
	return (mode & S_ISUID) || (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
}

/*
 * A space is readable and writable by all its tasks: a program that gives
 * privileges, or that its user may run but not read, must not come in.
 */
static int pvas_check_rights(struct linux_binprm *bprm)
{
	struct inode *inode = file_inode(bprm->file);
	struct dentry *dentry = bprm->file->f_path.dentry;

	if (bprm->secureexec || pvas_is_set_id(inode->i_mode))
		return -EPERM;
	if (__vfs_getxattr(dentry, d_inode(dentry), XATTR_NAME_CAPS, NULL, 0) > 0)
		return -EPERM;
	would_dump(bprm, bprm->file);
	if (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP)
		return -EPERM;
	return 0;
}

/* The argument strings lie in [p, end of the first stack area) of the new mm. */
static int pvas_measure_strings(struct pvas_exec *ex)
{
	struct linux_binprm *bprm = ex->bprm;
	unsigned long end = bprm->vma->vm_end;

	if (bprm->p >= end || bprm->argc < 0 || bprm->envc < 0)
		return -EINVAL;
	ex->strings = end - bprm->p;
	ex->buf_len = ALIGN(ex->strings, 16) + sizeof(struct pvas_start) + 64 +
		      (PVAS_AUX_MAX * 2 + 4 + (size_t)bprm->argc + bprm->envc) * sizeof(u64);
	ex->buf_len = ALIGN(ex->buf_len, 16);
	/* Up to megabytes, for as long as a file system keeps the exec waiting. */
	ex->buf = kvzalloc(ex->buf_len, GFP_KERNEL_ACCOUNT);
	return ex->buf ? 0 : -ENOMEM;
}

/*
 * As binfmt_elf decides it, but it reads randomize_va_space, which is not
 * exported. PF_RANDOMIZE is what it or we decided at the exec before this one,
 * and forks have it from their parents: so this is the sysctl as the launcher
 * found it.
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
	int err;

	/* binfmt_misc with its own idea of which file is the program */
	if (bprm->have_execfd)
		return -ENOEXEC;
	err = pvas_read_image(bprm->file, &ehdr, &ex->image) ?: pvas_check_rights(bprm) ?:
	      pvas_check_interp(bprm, &ex->image);
	if (err)
		return err;
	/* The interpreter may be the unreadable one. */
	if (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP)
		return -EPERM;
	ex->phnum = ehdr.e_phnum;
	/* As far as known: the ids and labels that the new program is to have. */
	if (!pvas_space_may_enter(ex->part->space, bprm->cred) ||
	    !pvas_space_is_dumpable(ex->part->space))
		return -EPERM;
	if (READ_ONCE(ex->part->space->dead))
		return -ESRCH;
	ex->randomize = pvas_may_randomize(bprm);
	return pvas_mm_layout(ex->part, &ex->image, bprm->rlim_stack.rlim_cur, ex->randomize) ?:
	       pvas_measure_strings(ex);
}

/* ---- after it: change over to the space ---- */

/* As SET_PERSONALITY2() does for a 64-bit program; its helper is not exported. */
static void pvas_set_personality(void)
{
	clear_thread_flag(TIF_ADDR32);
	task_pt_regs(current)->orig_ax = __NR_execve;
	current_thread_info()->status &= ~TS_COMPAT;
	current->personality &= ~READ_IMPLIES_EXEC;
}

static unsigned int pvas_cgroup_kill_seq(void)
{
	unsigned int seq;

	rcu_read_lock();
	seq = READ_ONCE(task_dfl_cgroup(current)->kill_seq);
	rcu_read_unlock();
	return seq;
}

/*
 * For as long as PF_KTHREAD was set, cgroup.kill and the cgroup freezer passed
 * us by. Catch up.
 */
static void pvas_catch_up_with_cgroup(unsigned int kill_seq)
{
	struct sighand_struct *sighand = rcu_dereference_protected(current->sighand, true);
	bool freeze;

	rcu_read_lock();
	freeze = test_bit(CGRP_FREEZE, &task_dfl_cgroup(current)->flags);
	rcu_read_unlock();
	if (pvas_cgroup_kill_seq() != kill_seq)
		send_sig(SIGKILL, current, 1);
	if (!freeze)
		return;
	spin_lock_irq(&sighand->siglock);
	if (!(current->jobctl & JOBCTL_TRAP_FREEZE)) {
		current->jobctl |= JOBCTL_TRAP_FREEZE;
		set_thread_flag(TIF_SIGPENDING);
	}
	spin_unlock_irq(&sighand->siglock);
}

/*
 * Of those who share the mm the OOM killer has killed all that it saw: not us, if
 * we come later, or were a kernel thread to it. The mm's pages go, and it will not
 * look at this mm again. The victim may be held in its exit by a tracer.
 */
static bool pvas_space_is_doomed(struct pvas_space *space)
{
	const struct mm_struct *mm = space->mm;

	return test_bit(MMF_OOM_SKIP, &mm->flags) || test_bit(MMF_UNSTABLE, &mm->flags) ||
	       pvas_task_struck_by_oom(space);
}

/*
 * The kernel's own way to change a task's mm is kthread_use_mm(): it keeps
 * membarrier, lazy TLB and the mm's CPU mask right in every version. It wants
 * a kernel thread, so for these few instructions we are one. A task holds
 * mm_users where a kthread holds mm_count: hence the extra grab and drop.
 */
static void pvas_switch_mm(struct mm_struct *fresh, struct mm_struct *mm)
{
	unsigned int kill_seq;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
	kill_seq = pvas_cgroup_kill_seq();
	current->flags |= PF_KTHREAD;
	kthread_unuse_mm(fresh);
	kthread_use_mm(mm);
	current->flags &= ~PF_KTHREAD;
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
	pvas_catch_up_with_cgroup(kill_seq);
}

/* Consumes nothing on failure; on success current->mm is the space's. */
static int pvas_join(struct pvas_space *space)
{
	struct mm_struct *fresh = current->mm;
	struct mm_struct *mm = space->mm;
	int err;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	/* As exec_mmap(): who reads mm and credentials together waits here. */
	err = down_write_killable(&current->signal->exec_update_lock);
	if (err)
		goto err_mm;
	err = -ESRCH;
	if (pvas_space_is_doomed(space))
		goto err_lock;

	mmgrab(fresh);
	pvas_switch_mm(fresh, mm);
	mmdrop(mm);

	pvas_mm_own(space, current);
	RCU_INIT_POINTER(fresh->owner, NULL);
	up_write(&current->signal->exec_update_lock);
	mmput(fresh);
	/* The OOM reaper may have come between: it maps nothing any more. */
	return pvas_space_is_doomed(space) ? -ESRCH : 0;

err_lock:
	up_write(&current->signal->exec_update_lock);
err_mm:
	mmput(mm);
	return err;
}

/* ---- the new stack ---- */

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
 * What describes the machine and the kernel (AT_HWCAP, AT_MINSIGSTKSZ, ...)
 * is the same for all: taken from the vector exec made for the creator.
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
	pvas_aux_add(aux, AT_PHDR, ex->image.phdr ? part->load + ex->image.phdr : 0);
	pvas_aux_add(aux, AT_PHENT, sizeof(Elf64_Phdr));
	pvas_aux_add(aux, AT_PHNUM, ex->phnum);
	pvas_aux_add(aux, AT_BASE, 0);
	pvas_aux_add(aux, AT_FLAGS, ex->bprm->interp_flags & BINPRM_FLAGS_PRESERVE_ARGV0 ?
		     AT_FLAGS_PRESERVE_ARGV0 : 0);
	pvas_aux_add(aux, AT_ENTRY, part->load + ex->image.entry);
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
	start->load = part->load;
	start->heap = part->heap;
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
 * From the top: the strings, as execve() laid them; random bytes and platform
 * name; struct pvas_start; the auxiliary vector, envp, argv, argc. All built in
 * @ex->buf, whose end is the partition's stack top, or a little below.
 */
static int pvas_build_stack(struct pvas_exec *ex, int fd, unsigned long *sp, unsigned long *start)
{
	struct pvas_partition *part = ex->part;
	struct linux_binprm *bprm = ex->bprm;
	unsigned long base = part->stack - part->skew - ex->buf_len;
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
	part->env_end = base + off;
	memcpy(at, auxv, 2 * (aux.n + 1) * sizeof(u64));
	return 0;
}

static int pvas_map_stack(struct pvas_exec *ex, unsigned long sp)
{
	struct pvas_partition *part = ex->part;
	unsigned long bottom = PAGE_ALIGN_DOWN(sp - PVAS_STACK_EXTRA);
	unsigned long prot = PROT_READ | PROT_WRITE | (ex->image.stack_exec ? PROT_EXEC : 0);
	unsigned long at;
	size_t skip = sp - (part->stack - part->skew - ex->buf_len);

	at = vm_mmap(NULL, bottom, part->stack - bottom, prot,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, 0);
	if (at != bottom)
		return IS_ERR_VALUE(at) ? (long)at : -ENOMEM;
	if (copy_to_user((void __user *)sp, ex->buf + skip, ex->buf_len - skip))
		return -EFAULT;
	return 0;
}

/* The loader reads the program through a descriptor and closes it before it jumps. */
static int pvas_install_fd(struct linux_binprm *bprm)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd >= 0)
		fd_install(fd, get_file(bprm->file));
	return fd;
}

/* In the space, as a member whose calls are not bounded yet. */
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
	err = pvas_build_stack(ex, fd, &sp, &start) ?: pvas_map_stack(ex, sp);
	if (err)
		return err;
	pvas_mm_publish(part, PVAS_PART_RUNNING);
	pvas_mm_show_program(part, bprm->file);
	pvas_task_entered();

	finalize_exec(bprm);
	ELF_PLAT_INIT(regs, 0);
	start_thread(regs, part->space->loader, sp);
	regs->di = start;
	return 0;
}

/* As a member, and with nobody writing to the program, before anyone can see it in the space. */
static int pvas_enter(struct pvas_exec *ex)
{
	struct file *exe = ex->bprm->file;
	int err;

	err = pvas_deny_write(exe);
	if (err)
		return err;
	get_file(exe);
	if (pvas_task_enter(ex->part, exe))
		return 0;
	pvas_allow_write(exe);
	fput(exe);
	return -ESRCH;
}

/* The process dies of any error here: the old program is gone. */
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
	/* Only now the credentials are what the new program has. */
	if (!pvas_space_admit(ex->part->space) || bprm->secureexec ||
	    get_dumpable(current->mm) != SUID_DUMP_USER)
		return -EPERM;
	if (copy_from_user(ex->buf + strings, (void __user *)p, ex->strings))
		return -EFAULT;
	pvas_task_leave_for_exec();
	err = pvas_enter(ex);
	if (err)
		return err;
	return pvas_join(ex->part->space) ?: pvas_build_task(ex);
}

static int pvas_load_binary(struct linux_binprm *bprm)
{
	struct pvas_exec ex = { .bprm = bprm };
	int err = -ENOEXEC;

	ex.part = pvas_task_armed();
	if (!ex.part)
		return -ENOEXEC;
	if (bprm->buf[0] == '#' && bprm->buf[1] == '!')
		goto out;
	err = pvas_exec_prepare(&ex) ?: pvas_exec_commit(&ex);
	/*
	 * -ENOEXEC is for the caller, not for the next format: binfmt_elf would
	 * run the program outside of the space. Nothing starts with these
	 * bytes, and being printable they don't make the kernel look for a
	 * module.
	 */
	if (err == -ENOEXEC)
		memset(bprm->buf, '?', 4);
	kvfree(ex.buf);
out:
	pvas_partition_put(ex.part);
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
