/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Map an ELF object as the kernel's ELF loader does: see map.c. */
#ifndef PVAS_LOADER_MAP_H
#define PVAS_LOADER_MAP_H

#include <linux/limits.h>
#include "../../kmod/pvas_elf.h"

/**
 * struct pvas_object - an ELF file, read and checked
 * @fd:		open for reading
 * @head:	its ELF header
 * @image:	requirements of its program headers
 * @bias:	load bias: the address of its virtual address 0
 * @ph:		PVAS_ELF_PHNUM_MAX program headers, allocated by the caller
 * @mark:	shows the user backend's filter that a mapping is the loader's; or 0
 */
struct pvas_object {
	int fd;
	Elf64_Ehdr head;
	struct pvas_elf_image image;
	__u64 bias;
	Elf64_Phdr *ph;
	__u32 mark;
};

/* Read and check the file open at @o->fd. -ENOEXEC or a read error. */
int pvas_object_read(struct pvas_object *o);

/* Map at @o->bias; -EEXIST if anything is mapped there. */
int pvas_object_map_at(struct pvas_object *o);

/* Map where the kernel finds room, and set @o->bias. */
int pvas_object_map_anywhere(struct pvas_object *o);

/* Read the path of the interpreter, including the NUL. */
int pvas_object_interp(const struct pvas_object *o, char path[PATH_MAX]);

#endif /* PVAS_LOADER_MAP_H */
