// SPDX-License-Identifier: GPL-2.0
/* What a program needs of libraries, as its ELF file says. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi.h"

/* A file as it is mapped: nothing in it is trusted to be where it says. */
struct image {
	const char *bytes;
	size_t len;
};

static const void *at(const struct image *image, uint64_t offset, uint64_t len)
{
	if (offset > image->len || len > image->len - offset)
		return NULL;
	return image->bytes + offset;
}

static const Elf64_Phdr *segments(const struct image *image, unsigned int *nr)
{
	const Elf64_Ehdr *head = at(image, 0, sizeof(*head));

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	*nr = head->e_phnum;
	return at(image, head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr));
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

static bool is_mpi(const struct image *image, uint64_t name)
{
	static const char begin[] = "libmpi";
	const char *text = at(image, name, sizeof(begin) - 1);

	return text && !memcmp(text, begin, sizeof(begin) - 1);
}

static unsigned int entries_say(const struct image *image, const Elf64_Phdr *seg, unsigned int nr,
				const Elf64_Dyn *dyn, size_t entries)
{
	uint64_t names = UINT64_MAX;
	unsigned int said = 0;
	size_t i;

	for (i = 0; i < entries && dyn[i].d_tag != DT_NULL; i++)
		if (dyn[i].d_tag == DT_STRTAB)
			names = offset_of(seg, nr, dyn[i].d_un.d_ptr);
	if (names > image->len)
		return 0;
	for (i = 0; i < entries && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag == DT_RPATH || dyn[i].d_tag == DT_RUNPATH)
			said |= NEEDS_OWN_PATH;
		else if (dyn[i].d_tag == DT_NEEDED && dyn[i].d_un.d_val <= image->len &&
			 is_mpi(image, names + dyn[i].d_un.d_val))
			said |= NEEDS_MPI;
	}
	return said;
}

static unsigned int image_says(const struct image *image)
{
	const Elf64_Phdr *seg;
	const Elf64_Dyn *dyn;
	unsigned int nr = 0, i;

	seg = segments(image, &nr);
	for (i = 0; seg && i < nr; i++) {
		if (seg[i].p_type != PT_DYNAMIC)
			continue;
		dyn = at(image, seg[i].p_offset, seg[i].p_filesz);
		return dyn ? entries_say(image, seg, nr, dyn, seg[i].p_filesz / sizeof(*dyn)) : 0;
	}
	return 0;
}

unsigned int needs(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image image;
	struct stat st;
	void *bytes = MAP_FAILED;
	unsigned int said;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && st.st_size > 0)
		bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return 0;
	image = (struct image){ bytes, st.st_size };
	said = image_says(&image);
	munmap(bytes, st.st_size);
	return said;
}
