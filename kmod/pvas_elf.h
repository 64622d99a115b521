/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Is this ELF file fit to be a task's program or its interpreter?
 *
 * Pure functions on memory buffers, shared by the module (which must refuse
 * before the point of no return), by the loader (which trusts no input and has
 * no libc), by libpvas (which reports the reason) and by the fuzzer. So: no
 * calls and no globals.
 *
 * The module and the loader read the file at two different times. The loader
 * therefore checks again: a file that changed in between must not make it map
 * outside the span that the module has checked.
 */
#ifndef PVAS_ELF_H
#define PVAS_ELF_H

#ifdef __KERNEL__
#include <linux/elf.h>
#include <linux/errno.h>
#else
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#endif
#include <linux/limits.h>
#include <linux/types.h>

#define PVAS_ELF_PAGE		4096ULL
#define PVAS_ELF_ALIGN_MAX	(2ULL << 20)	/* the mapper supports no more */
#define PVAS_ELF_ADDR_MAX	(1ULL << 47)	/* user addresses, x86-64 */
#define PVAS_ELF_PHNUM_MAX	(65536 / sizeof(Elf64_Phdr))	/* as the kernel's own */

/**
 * struct pvas_elf_image - the requests of the program headers
 * @lo:		first page of the PT_LOADs, as a virtual address of the file
 * @hi:		end of the last page; the span to be free is [bias + lo, bias + hi)
 * @align:	the load bias must be a multiple of it: a power of two,
 *		PVAS_ELF_PAGE to PVAS_ELF_ALIGN_MAX
 * @entry:	e_entry, inside an executable PT_LOAD
 * @phdr:	virtual address of the program headers, 0 if no PT_LOAD has them
 * @interp_off:	where PT_INTERP's path is in the file
 * @interp_len:	its length, the NUL included; 0: no PT_INTERP
 * @stack_exec:	PT_GNU_STACK asks for an executable stack
 */
struct pvas_elf_image {
	__u64 lo;
	__u64 hi;
	__u64 align;
	__u64 entry;
	__u64 phdr;
	__u64 interp_off;
	__u64 interp_len;
	int stack_exec;
};

static inline __u64 pvas_elf_page_down(__u64 v)
{
	return v & ~(PVAS_ELF_PAGE - 1);
}

/* @v is at most PVAS_ELF_ADDR_MAX wherever this is used: no overflow. */
static inline __u64 pvas_elf_page_up(__u64 v)
{
	return pvas_elf_page_down(v + PVAS_ELF_PAGE - 1);
}

/* Is [off, off + len) inside [lo, lo + size)? */
static inline int pvas_elf_inside(__u64 off, __u64 len, __u64 lo, __u64 size)
{
	return off >= lo && off - lo <= size && len <= size - (off - lo);
}

static inline __u64 pvas_elf_phdrs_size(const Elf64_Ehdr *e)
{
	return (__u64)e->e_phnum * sizeof(Elf64_Phdr);
}

/**
 * pvas_elf_check_ehdr - check the ELF header alone
 * @e:	the first sizeof(Elf64_Ehdr) bytes of the file
 *
 * After it, pvas_elf_phdrs_size(@e) bytes at @e->e_phoff can be read from the
 * file (a short read is the caller's -ENOEXEC).
 *
 * Return: 0 or -ENOEXEC.
 */
static inline int pvas_elf_check_ehdr(const Elf64_Ehdr *e)
{
	const unsigned char *id = e->e_ident;
	__u64 end;

	if (id[EI_MAG0] != ELFMAG0 || id[EI_MAG1] != ELFMAG1 ||
	    id[EI_MAG2] != ELFMAG2 || id[EI_MAG3] != ELFMAG3)
		return -ENOEXEC;
	if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB ||
	    id[EI_VERSION] != EV_CURRENT || e->e_version != EV_CURRENT)
		return -ENOEXEC;
	if (e->e_type != ET_DYN || e->e_machine != EM_X86_64)
		return -ENOEXEC;
	if (e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phnum < 1 ||
	    e->e_phnum > PVAS_ELF_PHNUM_MAX)
		return -ENOEXEC;
	/* A file offset is signed in the kernel: keep its end below 2^63. */
	if (__builtin_add_overflow(e->e_phoff, pvas_elf_phdrs_size(e), &end) || end >> 63)
		return -ENOEXEC;
	return 0;
}

/*
 * A PT_LOAD must start on a later page than the one before ended: then each
 * can be mapped on its own and none is cut by the next.
 */
static inline int pvas_elf_check_load(const Elf64_Phdr *p, __u64 file_size,
				      struct pvas_elf_image *out)
{
	__u64 end;

	if (p->p_filesz > p->p_memsz)
		return -ENOEXEC;
	if (__builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) || end > PVAS_ELF_ADDR_MAX)
		return -ENOEXEC;
	if (p->p_align & (p->p_align - 1))
		return -ENOEXEC;
	if (p->p_filesz) {
		if (!pvas_elf_inside(p->p_offset, p->p_filesz, 0, file_size))
			return -ENOEXEC;
		if ((p->p_vaddr ^ p->p_offset) & (PVAS_ELF_PAGE - 1))
			return -ENOEXEC;
	}
	if (!p->p_memsz)
		return 0;	/* maps nothing; some linkers leave such behind */

	if (out->hi && pvas_elf_page_down(p->p_vaddr) < out->hi)
		return -ENOEXEC;
	if (!out->hi)
		out->lo = pvas_elf_page_down(p->p_vaddr);
	out->hi = pvas_elf_page_up(end);

	if (p->p_align > out->align)
		out->align = p->p_align < PVAS_ELF_ALIGN_MAX ? p->p_align : PVAS_ELF_ALIGN_MAX;
	return 0;
}

static inline int pvas_elf_check_interp(const Elf64_Phdr *p, __u64 file_size,
					struct pvas_elf_image *out)
{
	if (out->interp_len)
		return -ENOEXEC;
	if (p->p_filesz < 2 || p->p_filesz > PATH_MAX)
		return -ENOEXEC;
	if (!pvas_elf_inside(p->p_offset, p->p_filesz, 0, file_size))
		return -ENOEXEC;
	out->interp_off = p->p_offset;
	out->interp_len = p->p_filesz;
	return 0;
}

/* Where the headers are in memory, by the PT_LOAD that holds their file bytes. */
static inline __u64 pvas_elf_find_phdr(const Elf64_Ehdr *e, const Elf64_Phdr *ph)
{
	unsigned int i;

	for (i = 0; i < e->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD)
			continue;
		if (pvas_elf_inside(e->e_phoff, pvas_elf_phdrs_size(e),
				    ph[i].p_offset, ph[i].p_filesz))
			return e->e_phoff - ph[i].p_offset + ph[i].p_vaddr;
	}
	return 0;
}

/*
 * Like the kernel, believe PT_PHDR before the file offset (a packer may move
 * the headers); unlike it, only if some PT_LOAD backs what it says.
 */
static inline __u64 pvas_elf_phdr_vaddr(const Elf64_Ehdr *e, const Elf64_Phdr *ph)
{
	const Elf64_Phdr *said = NULL;
	unsigned int i;

	for (i = 0; i < e->e_phnum; i++)
		if (ph[i].p_type == PT_PHDR)
			said = &ph[i];
	for (i = 0; said && i < e->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD &&
		    pvas_elf_inside(said->p_vaddr, pvas_elf_phdrs_size(e),
				    ph[i].p_vaddr, ph[i].p_memsz))
			return said->p_vaddr;
	return pvas_elf_find_phdr(e, ph);
}

static inline int pvas_elf_entry_ok(const Elf64_Ehdr *e, const Elf64_Phdr *ph)
{
	unsigned int i;

	for (i = 0; i < e->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_X) &&
		    pvas_elf_inside(e->e_entry, 1, ph[i].p_vaddr, ph[i].p_filesz))
			return 1;
	return 0;
}

/**
 * pvas_elf_check_phdrs - check the program headers, and return their requests
 * @e:		the ELF header, which pvas_elf_check_ehdr() accepted
 * @ph:		@e->e_phnum program headers
 * @file_size:	of the file in bytes
 * @out:	filled on success
 *
 * Whether @out->hi - @out->lo bytes fit is the caller's to decide; both are
 * at most PVAS_ELF_ADDR_MAX. For an interpreter the caller also refuses
 * @out->interp_len != 0, and turns any failure into -ELIBBAD.
 *
 * Return: 0 or -ENOEXEC.
 */
static inline int pvas_elf_check_phdrs(const Elf64_Ehdr *e, const Elf64_Phdr *ph,
				       __u64 file_size, struct pvas_elf_image *out)
{
	struct pvas_elf_image img = { .align = PVAS_ELF_PAGE };
	unsigned int i;
	int err = 0;

	if (!pvas_elf_inside(e->e_phoff, pvas_elf_phdrs_size(e), 0, file_size))
		return -ENOEXEC;
	for (i = 0; i < e->e_phnum && !err; i++) {
		if (ph[i].p_type == PT_LOAD)
			err = pvas_elf_check_load(&ph[i], file_size, &img);
		else if (ph[i].p_type == PT_INTERP)
			err = pvas_elf_check_interp(&ph[i], file_size, &img);
		else if (ph[i].p_type == PT_GNU_STACK)
			img.stack_exec = !!(ph[i].p_flags & PF_X);
	}
	if (err)
		return err;
	if (!img.hi || !pvas_elf_entry_ok(e, ph))
		return -ENOEXEC;
	img.entry = e->e_entry;
	img.phdr = pvas_elf_phdr_vaddr(e, ph);
	*out = img;
	return 0;
}

/**
 * pvas_elf_check_interp_path - check the bytes PT_INTERP points to
 * @p:		the bytes
 * @len:	pvas_elf_image.interp_len
 *
 * Only that a string ends where the header says; an earlier NUL just makes it
 * shorter, as for the kernel.
 *
 * Return: 0 or -ENOEXEC.
 */
static inline int pvas_elf_check_interp_path(const char *p, __u64 len)
{
	if (len < 2 || len > PATH_MAX || p[len - 1] || !p[0])
		return -ENOEXEC;
	return 0;
}

#endif /* PVAS_ELF_H */
