/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Map an ELF object, as the kernel's own loader does. See map.c. */
#ifndef PVAS_LOADER_MAP_H
#define PVAS_LOADER_MAP_H

#include <linux/limits.h>
#include "../../kmod/pvas_elf.h"

/**
 * struct pvas_object - an ELF file, read and checked
 * @fd:		open for reading
 * @head:	its ELF header
 * @image:	what its program headers ask for
 * @bias:	where its virtual address 0 was mapped
 * @ph:		room for PVAS_ELF_PHNUM_MAX program headers, the caller's
 */
struct pvas_object {
	int fd;
	Elf64_Ehdr head;
	struct pvas_elf_image image;
	__u64 bias;
	Elf64_Phdr *ph;
};

/* Read and check the file open at @o->fd. -ENOEXEC or a read error. */
int pvas_object_read(struct pvas_object *o);

/* Map at @o->bias, where nothing may be mapped yet. */
int pvas_object_map_at(struct pvas_object *o);

/* Map wherever the kernel finds room; sets @o->bias. */
int pvas_object_map_anywhere(struct pvas_object *o);

/* Read the path of the interpreter, NUL included. */
int pvas_object_interp(const struct pvas_object *o, char path[PATH_MAX]);

#endif /* PVAS_LOADER_MAP_H */
