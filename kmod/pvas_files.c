// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last references to mapped files. A kernel thread that drops one with fput() leaves
 * the file to the one work item of the whole machine that does that (delayed_fput()), and
 * a file whose release does not end, of any user, holds up all that follow. So whoever
 * unmaps the memory of tasks holds its files meanwhile, and releases them itself. Each
 * attachment of a System V segment has a file of its own, which holds that of the segment.
 *
 * And the unmapping of files whose server may not answer, see pvas_unmap_remote().
 */
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/userfaultfd_k.h>
#include <linux/writeback.h>
#include <net/sock.h>

#include "pvas.h"

/* A file whose contents are memory, and whose release waits for nobody. May be NULL. */
bool pvas_file_is_memory(const struct file *file)
{
	const struct inode *inode = file ? file_inode(file) : NULL;

	if (!inode || !S_ISREG(inode->i_mode))
		return false;
	switch (inode->i_sb->s_magic) {
	case TMPFS_MAGIC:
	case HUGETLBFS_MAGIC:
	case RAMFS_MAGIC:
	case SECRETMEM_MAGIC:
		return true;
	}
	return false;
}

/*
 * A file whose release waits for no server and no other process. Not so all others: of a
 * file system that may have one, sockets, devices.
 */
bool pvas_file_is_local(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	if (pvas_file_is_memory(file))
		return true;
	if (!S_ISREG(inode->i_mode))
		return false;
	switch (inode->i_sb->s_magic) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
		return true;
	}
	return false;
}

bool pvas_files_are_local(const struct pvas_files *files)
{
	unsigned int i;

	for (i = 0; i < files->n; i++)
		if (!pvas_file_is_local(files->file[i]))
			return false;
	return true;
}

/* I_SYNC: somebody is writing them already, and is waited for. */
static bool pvas_file_has_changes(const struct file *file)
{
	struct address_space *mapping = file->f_mapping;

	return mapping_tagged(mapping, PAGECACHE_TAG_DIRTY) ||
	       mapping_tagged(mapping, PAGECACHE_TAG_WRITEBACK) ||
	       pvas_inode_state(mapping->host) & (I_DIRTY_ALL | I_SYNC);
}

/* Is there one whose release has to wait until a server has written? */
bool pvas_files_have_changes(const struct pvas_files *files)
{
	unsigned int i;

	for (i = 0; i < files->n; i++)
		if (!pvas_file_is_local(files->file[i]) && pvas_file_has_changes(files->file[i]))
			return true;
	return false;
}

/* Of the file of an attached System V segment: private to ipc/shm.c, the same in all kernels. */
struct pvas_shm_file_data {
	int id;
	struct ipc_namespace *ns;
	struct file *file;
	const struct vm_operations_struct *vm_ops;
};

/* The file of the System V segment that @file is an attachment of, or NULL. */
static struct file *pvas_file_of_segment(struct file *file)
{
	const struct pvas_shm_file_data *data = file->private_data;

	/* Other files of these file systems have no private data. */
	if (!data || !pvas_file_is_memory(file) || data->file->f_mapping != file->f_mapping)
		return NULL;
	return data->file;
}

static int pvas_files_compare(const void *a, const void *b)
{
	const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* Leaves each file once: a file can be mapped in as many areas as the user likes. */
static void pvas_files_unite(struct pvas_files *files)
{
	unsigned int i, n = 0;

	sort(files->file, files->n, sizeof(*files->file), pvas_files_compare, NULL);
	for (i = 0; i < files->n; i++)
		if (!n || files->file[i] != files->file[n - 1])
			files->file[n++] = files->file[i];
	files->n = n;
}

#define PVAS_FILES_FIRST 64U

/* Makes room for one more. There is at most twice as much as there are files. */
static bool pvas_files_make_room(struct pvas_files *files)
{
	struct file **more;
	unsigned int room;

	if (files->n < files->room)
		return true;
	if (files->n)
		pvas_files_unite(files);
	if (files->n < files->room / 2)
		return true;
	room = max(2 * files->room, PVAS_FILES_FIRST);
	more = kvmalloc_array(room, sizeof(*more), GFP_KERNEL);
	if (!more)
		return false;
	if (files->n)
		memcpy(more, files->file, files->n * sizeof(*more));
	kvfree(files->file);
	files->file = more;
	files->room = room;
	return true;
}

static bool pvas_files_add(struct pvas_files *files, struct file *file)
{
	if (!pvas_files_make_room(files))
		return false;
	files->file[files->n++] = file;
	return true;
}

static bool pvas_files_collect(struct pvas_files *files, struct mm_struct *mm, unsigned long from,
			       unsigned long end)
{
	struct file *last = NULL, *segment;
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, from);

	for_each_vma_range(vmi, vma, end) {
		if (!vma->vm_file || vma->vm_file == last)
			continue;
		last = vma->vm_file;
		segment = pvas_file_of_segment(last);
		if (!pvas_files_add(files, last) || (segment && !pvas_files_add(files, segment)))
			return false;
	}
	return true;
}

static void pvas_files_free(struct pvas_files *files)
{
	kvfree(files->file);
	*files = (struct pvas_files) { };
}

/*
 * Takes a reference to each file that is mapped in the range; without memory, to none. Under
 * mmap_lock: the areas keep the files meanwhile.
 */
void pvas_files_hold(struct pvas_files *files, struct mm_struct *mm, unsigned long from,
		     unsigned long end)
{
	unsigned int i;

	*files = (struct pvas_files) { };
	if (!pvas_files_collect(files, mm, from, end))
		pvas_files_free(files);
	if (files->n)
		pvas_files_unite(files);
	for (i = 0; i < files->n; i++)
		get_file(files->file[i]);
	if (!files->n)
		pvas_files_free(files);
}

/* Before their segments: the last one would leave its segment to others, by fput(). */
static void pvas_files_put_attachments(struct pvas_files *files)
{
	unsigned int i;

	for (i = 0; i < files->n; i++) {
		if (!pvas_file_of_segment(files->file[i]))
			continue;
		__fput_sync(files->file[i]);
		files->file[i] = NULL;
	}
}

/* Releases those whose contents are memory. In a kernel thread. */
void pvas_files_put_memory(struct pvas_files *files)
{
	unsigned int i, n = 0;

	pvas_files_put_attachments(files);
	for (i = 0; i < files->n; i++) {
		if (!files->file[i])
			continue;
		if (pvas_file_is_memory(files->file[i]))
			__fput_sync(files->file[i]);
		else
			files->file[n++] = files->file[i];
	}
	files->n = n;
	/* The release of a file can take for ever. */
	if (!n)
		pvas_files_free(files);
}

/* A file of a server, of those whose vm_ops->close() writes back, waits, and does nothing else. */
static bool pvas_file_is_remote(const struct file *file)
{
	const struct inode *inode = file ? file_inode(file) : NULL;

	return inode && S_ISREG(inode->i_mode) && (inode->i_sb->s_magic == FUSE_SUPER_MAGIC ||
						   inode->i_sb->s_magic == V9FS_MAGIC);
}

/* In place of close(). */
static void pvas_file_write_back(struct file *file)
{
	mapping_set_error(file->f_mapping, write_inode_now(file->f_mapping->host, 1));
}

/*
 * The release of a socket with SO_LINGER waits until the other side has read all, unless
 * the process is exiting. As in its exit, which this is part of, the kernel sends the rest
 * in the background.
 */
static void pvas_file_dont_linger(struct file *file)
{
	struct socket *sock = pvas_socket_of(file);

	/* If others have it, they decide. */
	if (!sock || !sock->sk || file_count(file) != 1)
		return;
	lock_sock(sock->sk);
	/* One of no time is no wait, but resets the connection. */
	if (sock_flag(sock->sk, SOCK_LINGER) && sock->sk->sk_lingertime)
		sock_reset_flag(sock->sk, SOCK_LINGER);
	release_sock(sock->sk);
}

static void pvas_files_put_kind(struct pvas_files *files, bool remote)
{
	unsigned int i, n = 0;

	for (i = 0; i < files->n; i++) {
		struct file *file = files->file[i];

		if (pvas_file_is_remote(file) != remote) {
			files->file[n++] = file;
			continue;
		}
		if (remote)
			pvas_file_write_back(file);
		else
			pvas_file_dont_linger(file);
		__fput_sync(file);
	}
	files->n = n;
}

/*
 * Releases all, which can take for ever: last those of servers, behind which nothing else may
 * stay, such as the ring of a packet socket. In a kernel thread.
 */
void pvas_files_put(struct pvas_files *files)
{
	pvas_files_put_memory(files);
	pvas_files_put_kind(files, false);
	pvas_files_put_kind(files, true);
	pvas_files_free(files);
}

/* Of an area that is unmapped next: a fault in it is SIGBUS, and its end waits for nobody. */
static const struct vm_operations_struct pvas_silent_ops;

static bool pvas_area_is_remote(const struct vm_area_struct *vma)
{
	return pvas_file_is_remote(vma->vm_file) && vma->vm_ops && vma->vm_ops->close &&
	       !vma->vm_ops->open;
}

/*
 * Of a copy that a child of fork() has, which it never uses: it is unmapped before the child
 * runs, or by the parent if the fork fails, and neither may wait for the server. Nothing is
 * mapped in it, and it needs no operations; those of this module could outlive it.
 */
void pvas_silence_copy(struct vm_area_struct *copy)
{
	if (pvas_area_is_remote(copy))
		copy->vm_ops = NULL;
}

/* The lock of @mm for writing. @space: in a worker; NULL: in the process that has @mm */
static void pvas_remote_lock(struct pvas_space *space, struct mm_struct *mm)
{
	if (space)
		pvas_lock_write(space);
	else
		mmap_write_lock(mm);
}

static int pvas_remote_munmap(struct pvas_space *space, unsigned long from, unsigned long len)
{
	return space ? pvas_munmap(space, from, len) : vm_munmap(from, len);
}

/*
 * Prepares the first such area from *@from on, which becomes its begin. Returns its end,
 * or 0 if there is none, and the operations that it had.
 */
static unsigned long pvas_silence(struct pvas_space *space, struct mm_struct *mm,
				  unsigned long *from, unsigned long end, bool armed,
				  const struct vm_operations_struct **had)
{
	unsigned long to = 0;
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, *from);

	pvas_remote_lock(space, mm);
	for_each_vma_range(vmi, vma, end) {
		if (!pvas_area_is_remote(vma) || (!armed && userfaultfd_armed(vma)))
			continue;
		*had = vma->vm_ops;
		/* No fork copies them. */
		pvas_change_flags(vma, VM_DONTCOPY, 0);
		pvas_change_ops(vma, &pvas_silent_ops);
		*from = vma->vm_start;
		to = vma->vm_end;
		break;
	}
	mmap_write_unlock(mm);
	return to;
}

/* Undoes it: this module can be gone before the area is. */
static void pvas_unsilence(struct pvas_space *space, struct mm_struct *mm, unsigned long at,
			   const struct vm_operations_struct *had)
{
	struct vm_area_struct *vma;

	pvas_remote_lock(space, mm);
	vma = vma_lookup(mm, at);
	if (vma && vma->vm_ops == &pvas_silent_ops)
		pvas_change_ops(vma, had);
	mmap_write_unlock(mm);
}

/*
 * Unmaps the areas in the range that are of a server's files, without waiting for the
 * server: vm_munmap() would do so under mmap_lock, which other tasks need even to be killed.
 * With @armed, those too that have a userfaultfd, whose monitor is waited for, without lock.
 * In a worker of @space, whose mm is @mm; or, with NULL, @mm is the caller's. The caller holds
 * the files, and then writes back by pvas_files_put(), if the areas can have changed them.
 */
void pvas_unmap_remote(struct pvas_space *space, struct mm_struct *mm, unsigned long from,
		       unsigned long end, bool armed)
{
	const struct vm_operations_struct *had;
	unsigned long to;

	while ((to = pvas_silence(space, mm, &from, end, armed, &had))) {
		if (pvas_remote_munmap(space, from, to - from))
			pvas_unsilence(space, mm, from, had);
		from = to;
	}
}
