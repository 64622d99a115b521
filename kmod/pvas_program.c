// SPDX-License-Identifier: GPL-2.0-only
/*
 * Before the point of no return: can the program, and its interpreter, be a task?
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/xattr.h>

#include "pvas.h"
#include "pvas_elf.h"
#include "pvas_exec.h"

static int pvas_read_exact(struct file *file, void *buf, size_t len, loff_t pos)
{
	ssize_t n = kernel_read(file, buf, len, &pos);

	if (n < 0)
		return n;
	return n == len ? 0 : -ENOEXEC;
}

int pvas_program_read(struct file *file, Elf64_Ehdr *ehdr, struct pvas_elf_image *image)
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

/**
 * pvas_program_is_locked - has the caller record locks (fcntl) on the file?
 * @file:	the program or its interpreter
 *
 * They are the process' over an exec. But the loader opens these files, and to close any
 * descriptor of a file releases them.
 */
bool pvas_program_is_locked(struct file *file)
{
	struct file_lock_context *locks = smp_load_acquire(&file_inode(file)->i_flctx);
	struct file_lock *lock;
	bool is = false;

	if (!locks)
		return false;
	spin_lock(&locks->flc_lock);
	list_for_each_entry(lock, &locks->flc_posix, PVAS_LOCK_LIST)
		is |= PVAS_LOCK_OWNER(lock) == current->files;
	spin_unlock(&locks->flc_lock);
	return is;
}

/* A bad interpreter is -ELIBBAD; -ENOMEM and I/O errors are returned as they are. */
static int pvas_check_interp_file(struct linux_binprm *bprm, const char *path, bool *locked)
{
	struct pvas_elf_image image;
	struct file *file;
	Elf64_Ehdr ehdr;
	int err;

	file = open_exec(path);
	if (IS_ERR(file))
		return PTR_ERR(file);
	would_dump(bprm, file);
	*locked = pvas_program_is_locked(file);
	err = pvas_program_read(file, &ehdr, &image);
	if (err == -ENOEXEC || (!err && image.interp_len))
		err = -ELIBBAD;
	pvas_allow_write(file);
	fput(file);
	return err;
}

/* *@locked: see pvas_program_is_locked() */
int pvas_program_check_interp(struct linux_binprm *bprm, const struct pvas_elf_image *image,
			      bool *locked)
{
	char *path;
	int err;

	*locked = false;
	if (!image->interp_len)
		return 0;
	path = kmalloc(image->interp_len, GFP_KERNEL_ACCOUNT);
	if (!path)
		return -ENOMEM;
	err = pvas_read_exact(bprm->file, path, image->interp_len, image->interp_off) ?:
	      pvas_elf_check_interp_path(path, image->interp_len) ?:
	      pvas_check_interp_file(bprm, path, locked);
	kfree(path);
	return err;
}

/* S_ISGID without S_IXGRP means mandatory locking, not set-gid. */
static bool pvas_is_set_id(umode_t mode)
{
	return (mode & S_ISUID) || (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
}

/*
 * All tasks can read and write all of a space: so it must not hold a program that gives
 * privileges, or that its user may execute but not read.
 */
int pvas_program_check_rights(struct linux_binprm *bprm)
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
