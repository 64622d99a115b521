// SPDX-License-Identifier: GPL-2.0-only
/* The libraries that a program is linked with, and its interpreter. */
#include "elf_needed.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "open_regular.h"

/*
 * Offsets in the file are checked before use. The file is read and not mapped, because
 * its owner may truncate it at any time: access to a mapping would raise SIGBUS.
 */
#define TABLE_MAX (64 << 10)	/* bytes of program headers, or of dynamic entries */

static bool read_at(int fd, void *to, size_t len, uint64_t offset)
{
	return offset <= INT64_MAX - len && pread(fd, to, len, offset) == (ssize_t)len;
}

/* To be freed; NULL if it can not be read, or is larger than TABLE_MAX */
static void *read_table(int fd, uint64_t len, uint64_t offset)
{
	void *to = len && len <= TABLE_MAX ? malloc(len) : NULL;

	if (to && !read_at(fd, to, len, offset)) {
		free(to);
		to = NULL;
	}
	return to;
}

static Elf64_Phdr *read_segments(int fd, unsigned int *nr, unsigned int *flags)
{
	Elf64_Ehdr head;

	if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	*nr = head.e_phnum;
	*flags = ELF_IS_ELF | (head.e_type == ET_EXEC ? ELF_IS_FIXED : 0);
	return read_table(fd, (uint64_t)head.e_phnum * sizeof(Elf64_Phdr), head.e_phoff);
}

/* The file offset of an address in memory */
static uint64_t offset_of(const Elf64_Phdr *seg, unsigned int nr, uint64_t address)
{
	for (; nr; nr--, seg++)
		if (seg->p_type == PT_LOAD && address >= seg->p_vaddr &&
		    address - seg->p_vaddr < seg->p_filesz)
			return seg->p_offset + (address - seg->p_vaddr);
	return UINT64_MAX;
}

/* Of the library whose name is there */
static unsigned int mpi_flags(int fd, uint64_t name)
{
	static const char mpi[] = "libmpi", mpich[] = "libmpich", abi[] = ".so.12";
	char text[sizeof(mpi) + sizeof(abi) - 1];

	if (!read_at(fd, text, sizeof(mpich) - 1, name) || memcmp(text, mpi, sizeof(mpi) - 1))
		return 0;
	if (!memcmp(text, mpich, sizeof(mpich) - 1) ||
	    (read_at(fd, text, sizeof(text), name) &&
	     !memcmp(text + sizeof(mpi) - 1, abi, sizeof(abi))))
		return ELF_NEEDS_MPI | ELF_NEEDS_MPICH;
	return ELF_NEEDS_MPI;
}

static unsigned int check_entries(int fd, const Elf64_Phdr *seg, unsigned int nr,
				const Elf64_Dyn *dyn, size_t entries)
{
	uint64_t names = UINT64_MAX;
	unsigned int flags = 0;
	size_t i;

	for (i = 0; i < entries && dyn[i].d_tag != DT_NULL; i++)
		if (dyn[i].d_tag == DT_STRTAB)
			names = offset_of(seg, nr, dyn[i].d_un.d_ptr);
	if (names > INT64_MAX)
		return 0;
	for (i = 0; i < entries && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag == DT_RPATH || dyn[i].d_tag == DT_RUNPATH)
			flags |= ELF_HAS_RPATH;
		else if (dyn[i].d_tag == DT_NEEDED && dyn[i].d_un.d_val <= INT64_MAX)
			flags |= mpi_flags(fd, names + dyn[i].d_un.d_val);
	}
	return flags;
}

static unsigned int check_dynamic(int fd, const Elf64_Phdr *seg, unsigned int nr, unsigned int i)
{
	Elf64_Dyn *dyn = read_table(fd, seg[i].p_filesz, seg[i].p_offset);
	unsigned int flags = 0;

	if (dyn)
		flags = check_entries(fd, seg, nr, dyn, seg[i].p_filesz / sizeof(*dyn));
	free(dyn);
	return flags;
}

static unsigned int check_file(int fd)
{
	unsigned int nr = 0, i, flags = 0;
	Elf64_Phdr *seg = read_segments(fd, &nr, &flags);

	if (!seg)
		return 0;
	for (i = 0; i < nr; i++) {
		if (seg[i].p_type != PT_DYNAMIC)
			continue;
		flags |= check_dynamic(fd, seg, nr, i);
		break;
	}
	free(seg);
	return flags;
}

unsigned int elf_needed(const char *path)
{
	unsigned int flags;
	struct stat st;
	int fd = open_regular(path, &st);

	if (fd < 0)
		return 0;
	flags = check_file(fd);
	close(fd);
	return flags;
}

static bool copy_interpreter(int fd, const Elf64_Phdr *seg, unsigned int nr, char *name, size_t len)
{
	for (; nr; nr--, seg++) {
		if (seg->p_type != PT_INTERP)
			continue;
		if (!seg->p_filesz || seg->p_filesz > len ||
		    !read_at(fd, name, seg->p_filesz, seg->p_offset))
			return false;
		name[seg->p_filesz - 1] = '\0';
		return true;
	}
	return false;
}

bool elf_interpreter(const char *path, char *name, size_t len)
{
	unsigned int nr, flags;
	struct stat st;
	int fd = open_regular(path, &st);
	Elf64_Phdr *seg;
	bool found;

	if (fd < 0)
		return false;
	seg = read_segments(fd, &nr, &flags);
	found = seg && copy_interpreter(fd, seg, nr, name, len);
	free(seg);
	close(fd);
	return found;
}
