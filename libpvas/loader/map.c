// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Map an ELF object.
 *
 * Where its place is given, each segment is mapped where nothing is. Where it is not, the
 * whole span is first reserved by one mapping, and the segments are then mapped over
 * it: so later mappings replace nothing but the reservation. Gaps between the segments are
 * unmapped, because mappings cost memory and max_map_count is shared by all tasks of a space.
 */
#include "map.h"

#include <asm/mman.h>
#include <linux/mman.h>
#include "sys.h"

#define POPULATE_MAX	(32U << 10)
#define RESERVE (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

int pvas_object_read(struct pvas_object *o)
{
	long size = pvas_sys_size(o->fd);
	__u64 len;
	long n;
	int err;

	if (size < 0)
		return size;
	n = pvas_sys_pread(o->fd, &o->head, sizeof(o->head), 0);
	if (n < 0)
		return n;
	if (n != (long)sizeof(o->head))
		return -ENOEXEC;
	err = pvas_elf_check_ehdr(&o->head);
	if (err)
		return err;

	len = pvas_elf_phdrs_size(&o->head);
	n = pvas_sys_pread(o->fd, o->ph, len, o->head.e_phoff);
	if (n < 0)
		return n;
	if ((__u64)n != len)
		return -ENOEXEC;
	return pvas_elf_check_phdrs(&o->head, o->ph, size, &o->image);
}

int pvas_object_interp(const struct pvas_object *o, char path[PATH_MAX])
{
	long n = pvas_sys_pread(o->fd, path, o->image.interp_len, o->image.interp_off);

	if (n < 0)
		return n;
	if ((__u64)n != o->image.interp_len)
		return -ENOEXEC;
	return pvas_elf_check_interp_path(path, o->image.interp_len);
}

static int prot_of(const Elf64_Phdr *p)
{
	return (p->p_flags & PF_R ? PROT_READ : 0) |
	       (p->p_flags & PF_W ? PROT_WRITE : 0) |
	       (p->p_flags & PF_X ? PROT_EXEC : 0);
}

/* The kernel looks at the lower half of a descriptor. */
static __u64 marked(const struct pvas_object *o, int fd)
{
	return (__u64)o->mark << 32 | (__u32)fd;
}

/* @flags: MAP_FIXED over a reservation, else MAP_FIXED_NOREPLACE */
static int map_fixed(__u64 lo, __u64 hi, int prot, int flags, __u64 fd, __u64 off)
{
	__u64 at = pvas_sys_mmap(lo, hi - lo, prot, MAP_PRIVATE | flags, fd, off);

	return PVAS_IS_ERR(at) ? (int)at : 0;
}

/*
 * Most pages of a writable segment are written to before main(). One by one, each would first be
 * mapped as it is in the file, and all processors that run tasks would have to forget that.
 */
static int populate(const Elf64_Phdr *p)
{
	return (p->p_flags & PF_W) && p->p_filesz <= POPULATE_MAX ? MAP_POPULATE : 0;
}

/* Zero the rest of the last page of the file's bytes. */
static int clear_tail(const Elf64_Phdr *p, __u64 from, __u64 to)
{
	__u64 page = pvas_elf_page_down(from);
	int prot = prot_of(p);
	int err = 0;

	if (from == to)
		return 0;
	if (!(prot & PROT_WRITE))
		err = pvas_sys_mprotect(page, to - page, PROT_READ | PROT_WRITE);
	if (err)
		return err;
	pvas_sys_zero(from, to - from);
	if (!(prot & PROT_WRITE))
		err = pvas_sys_mprotect(page, to - page, prot);
	return err;
}

/* The part of a segment that the file has */
static int map_bytes(const struct pvas_object *o, const Elf64_Phdr *p, __u64 start, __u64 end,
		     int how)
{
	__u64 hi = pvas_elf_page_up(end);
	int err;

	err = map_fixed(start, hi, prot_of(p), how | populate(p), marked(o, o->fd),
			pvas_elf_page_down(p->p_offset));
	if (!err && p->p_memsz > p->p_filesz) {
		err = clear_tail(p, end, hi);
		if (err)
			pvas_sys_munmap(start, hi - start);
	}
	return err;
}

/* All of it, or nothing */
static int map_segment(const struct pvas_object *o, const Elf64_Phdr *p, int how)
{
	__u64 start = o->bias + pvas_elf_page_down(p->p_vaddr);
	__u64 file_end = o->bias + p->p_vaddr + p->p_filesz;
	__u64 file_hi = p->p_filesz ? pvas_elf_page_up(file_end) : start;
	__u64 hi = pvas_elf_page_up(o->bias + p->p_vaddr + p->p_memsz);
	int err = 0;

	if (p->p_filesz)
		err = map_bytes(o, p, start, file_end, how);
	if (err || hi == file_hi)
		return err;
	err = map_fixed(file_hi, hi, prot_of(p), how | MAP_ANONYMOUS, marked(o, -1), 0);
	if (err && file_hi > start)
		pvas_sys_munmap(start, file_hi - start);
	return err;
}

static int is_mapped(const Elf64_Phdr *p)
{
	return p->p_type == PT_LOAD && p->p_memsz;
}

/* Map the segments over the reservation [bias + lo, bias + hi). */
static int map_over(const struct pvas_object *o)
{
	__u64 next = o->image.lo;
	unsigned int i;
	int err = 0;

	for (i = 0; i < o->head.e_phnum && !err; i++) {
		const Elf64_Phdr *p = &o->ph[i];
		__u64 start = pvas_elf_page_down(p->p_vaddr);

		if (!is_mapped(p))
			continue;
		if (start > next)
			err = pvas_sys_munmap(o->bias + next, start - next);
		if (!err)
			err = map_segment(o, p, MAP_FIXED);
		next = pvas_elf_page_up(p->p_vaddr + p->p_memsz);
	}
	return err;
}

static void unmap_first(const struct pvas_object *o, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		const Elf64_Phdr *p = &o->ph[i];
		__u64 start = pvas_elf_page_down(p->p_vaddr);

		if (is_mapped(p))
			pvas_sys_munmap(o->bias + start,
					pvas_elf_page_up(p->p_vaddr + p->p_memsz) - start);
	}
}

int pvas_object_map_at(struct pvas_object *o)
{
	unsigned int i;
	int err = 0;

	if (o->bias & (o->image.align - 1))
		return -EINVAL;
	for (i = 0; i < o->head.e_phnum && !err; i++)
		if (is_mapped(&o->ph[i]))
			err = map_segment(o, &o->ph[i], MAP_FIXED_NOREPLACE);
	if (err)
		unmap_first(o, i - 1);
	return err;
}

static __u64 span(const struct pvas_object *o)
{
	return o->image.hi - o->image.lo;
}

/* Reserve @len bytes that begin @offset bytes above a multiple of @align. */
static __u64 reserve_aligned(__u64 len, __u64 align, __u64 offset)
{
	__u64 more = align - PVAS_ELF_PAGE;
	__u64 at, lo;

	at = pvas_sys_mmap(0, len + more, PROT_NONE, RESERVE, (__u32)-1, 0);
	if (PVAS_IS_ERR(at))
		return at;
	lo = at + ((offset - at) & (align - 1));
	if (lo > at)
		pvas_sys_munmap(at, lo - at);
	if (lo + len < at + len + more)
		pvas_sys_munmap(lo + len, at + more - lo);
	return lo;
}

int pvas_object_map_anywhere(struct pvas_object *o)
{
	__u64 align = o->image.align;
	__u64 lo = reserve_aligned(span(o), align, o->image.lo & (align - 1));

	if (PVAS_IS_ERR(lo))
		return (int)lo;
	o->bias = lo - o->image.lo;
	return map_over(o);
}
