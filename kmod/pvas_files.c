// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last references to mapped files. A kernel thread that drops one with fput() leaves
 * the file to the one work item of the whole machine that does that (delayed_fput()), and
 * a file whose release does not end, of any user, holds up all that follow. So whoever
 * unmaps the memory of tasks holds its files meanwhile, and releases them itself. Each
 * attachment of a System V segment has a file of its own, which holds that of the segment.
 */
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "pvas.h"

/* A file whose contents are memory, and whose release waits for nobody. May be NULL. */
bool pvas_file_is_memory(const struct file *file)
{
	const struct inode *inode = file ? file_inode(file) : NULL;

	return inode && S_ISREG(inode->i_mode) && (inode->i_sb->s_magic == TMPFS_MAGIC ||
						   inode->i_sb->s_magic == HUGETLBFS_MAGIC);
}

/* The file of the System V segment that @file is an attachment of, or NULL. */
static struct file *pvas_file_of_segment(struct file *file)
{
	const struct pvas_shm_file_data *data = file->private_data;

	/* Other files of these file systems have no private data. */
	if (!data || !pvas_file_is_memory(file) || data->file->f_mapping != file->f_mapping)
		return NULL;
	return data->file;
}

/* With room for @max, fills in @file. Returns how many there are, areas side by side as one. */
static unsigned int pvas_files_walk(struct mm_struct *mm, unsigned long from, unsigned long end,
				    struct file **file, unsigned int max)
{
	struct file *last = NULL, *segment;
	struct vm_area_struct *vma;
	unsigned int n = 0;
	VMA_ITERATOR(vmi, mm, from);

	mmap_read_lock(mm);
	for_each_vma_range(vmi, vma, end) {
		if (!vma->vm_file || vma->vm_file == last)
			continue;
		segment = pvas_file_of_segment(vma->vm_file);
		if (file && n + !!segment >= max)
			break;
		last = vma->vm_file;
		if (file)
			file[n] = get_file(last);
		if (file && segment)
			file[n + 1] = get_file(segment);
		n += 1 + !!segment;
	}
	mmap_read_unlock(mm);
	return n;
}

/* Takes a reference to each file that is mapped in the range; without memory, to none. */
void pvas_files_hold(struct pvas_files *files, struct mm_struct *mm, unsigned long from,
		     unsigned long end)
{
	unsigned int max = pvas_files_walk(mm, from, end, NULL, 0);

	files->n = 0;
	files->file = max ? kvmalloc_array(max, sizeof(*files->file), GFP_KERNEL) : NULL;
	if (files->file)
		files->n = pvas_files_walk(mm, from, end, files->file, max);
}

/* Releases those whose contents are memory. In a kernel thread. */
void pvas_files_put_memory(struct pvas_files *files)
{
	unsigned int i, n = 0;

	for (i = 0; i < files->n; i++) {
		if (pvas_file_is_memory(files->file[i]))
			__fput_sync(files->file[i]);
		else
			files->file[n++] = files->file[i];
	}
	files->n = n;
}

/* Releases all, which can take for ever. In a kernel thread. */
void pvas_files_put(struct pvas_files *files)
{
	pvas_files_put_memory(files);
	while (files->n)
		__fput_sync(files->file[--files->n]);
	kvfree(files->file);
	files->file = NULL;
}
