// SPDX-License-Identifier: GPL-2.0-only
/* What a program needs of libraries, as its ELF file says. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi.h"

/*
 * Nothing in a file is trusted to be where it says, nor to stay: it is read, not
 * mapped, for its owner may make it shorter meanwhile.
 */
#define MOST (64 << 10)		/* of program headers, or of dynamic entries */

static bool get(int fd, void *to, size_t len, uint64_t offset)
{
	return offset <= INT64_MAX - len && pread(fd, to, len, offset) == (ssize_t)len;
}

/* In memory of its own, if it is not too much */
static void *fetch(int fd, uint64_t len, uint64_t offset)
{
	void *to = len && len <= MOST ? malloc(len) : NULL;

	if (to && !get(fd, to, len, offset)) {
		free(to);
		to = NULL;
	}
	return to;
}

static Elf64_Phdr *segments(int fd, unsigned int *nr)
{
	Elf64_Ehdr head;

	if (!get(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	*nr = head.e_phnum;
	return fetch(fd, (uint64_t)head.e_phnum * sizeof(Elf64_Phdr), head.e_phoff);
}

/* Where in the file is what will be at this address? */
static uint64_t offset_of(const Elf64_Phdr *seg, unsigned int nr, uint64_t address)
{
	for (; nr; nr--, seg++)
		if (seg->p_type == PT_LOAD && address >= seg->p_vaddr &&
		    address - seg->p_vaddr < seg->p_filesz)
			return seg->p_offset + (address - seg->p_vaddr);
	return UINT64_MAX;
}

static bool is_mpi(int fd, uint64_t name)
{
	static const char begin[] = "libmpi";
	char text[sizeof(begin) - 1];

	return get(fd, text, sizeof(text), name) && !memcmp(text, begin, sizeof(text));
}

static unsigned int entries_say(int fd, const Elf64_Phdr *seg, unsigned int nr,
				const Elf64_Dyn *dyn, size_t entries)
{
	uint64_t names = UINT64_MAX;
	unsigned int said = 0;
	size_t i;

	for (i = 0; i < entries && dyn[i].d_tag != DT_NULL; i++)
		if (dyn[i].d_tag == DT_STRTAB)
			names = offset_of(seg, nr, dyn[i].d_un.d_ptr);
	if (names > INT64_MAX)
		return 0;
	for (i = 0; i < entries && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag == DT_RPATH || dyn[i].d_tag == DT_RUNPATH)
			said |= NEEDS_OWN_PATH;
		else if (dyn[i].d_tag == DT_NEEDED && dyn[i].d_un.d_val <= INT64_MAX &&
			 is_mpi(fd, names + dyn[i].d_un.d_val))
			said |= NEEDS_MPI;
	}
	return said;
}

static unsigned int dynamic_says(int fd, const Elf64_Phdr *seg, unsigned int nr, unsigned int i)
{
	Elf64_Dyn *dyn = fetch(fd, seg[i].p_filesz, seg[i].p_offset);
	unsigned int said = 0;

	if (dyn)
		said = entries_say(fd, seg, nr, dyn, seg[i].p_filesz / sizeof(*dyn));
	free(dyn);
	return said;
}

static unsigned int file_says(int fd)
{
	unsigned int nr = 0, i, said = 0;
	Elf64_Phdr *seg = segments(fd, &nr);

	for (i = 0; seg && i < nr; i++) {
		if (seg[i].p_type != PT_DYNAMIC)
			continue;
		said = dynamic_says(fd, seg, nr, i);
		break;
	}
	free(seg);
	return said;
}

/* Not blocking: it may have become a FIFO since it was found. */
unsigned int needs(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	unsigned int said = 0;
	struct stat st;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		said = file_says(fd);
	close(fd);
	return said;
}
