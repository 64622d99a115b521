// SPDX-License-Identifier: GPL-2.0-only
/* Programs that tests make and run: see program.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

const char *pt_tmp(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", pt_tmpdir(), name);
	return path;
}

const char *pt_beside(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(pt_self(), '/') - pt_self()),
		 pt_self(), name);
	return path;
}

char *pt_slurp(const char *path, size_t *len)
{
	struct stat st;
	char *buf = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && !fstat(fd, &st) && (buf = malloc(st.st_size + 1)) &&
	    read(fd, buf, st.st_size) == st.st_size)
		*len = st.st_size;
	close(fd);
	return buf;
}

const char *pt_put_file(const char *name, const void *data, size_t len, mode_t mode)
{
	const char *path = pt_tmp(name);
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, mode))
		return NULL;
	close(fd);
	return path;
}

const char *pt_copy_file(const char *name, const char *from, mode_t mode)
{
	size_t len;
	char *data = pt_slurp(from, &len);
	const char *path = data ? pt_put_file(name, data, len, mode) : NULL;

	free(data);
	return path;
}

Elf64_Phdr *pt_find_phdr(char *elf, uint32_t type)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	Elf64_Phdr *p = (Elf64_Phdr *)(elf + e->e_phoff);
	unsigned int i;

	for (i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == type)
			return &p[i];
	return NULL;
}

const char *pt_with_interp(const char *name, const char *interp)
{
	size_t len;
	char *elf = pt_slurp(pt_self(), &len);
	Elf64_Phdr *p = pt_find_phdr(elf, PT_INTERP);

	if (strlen(interp) >= p->p_filesz)
		return NULL;
	memset(elf + p->p_offset, 0, p->p_filesz);
	strcpy(elf + p->p_offset, interp);
	return pt_put_file(name, elf, len, 0755);
}

int pt_exe_of(pid_t pid, char *buf, size_t len)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, buf, len - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

int pt_run_path(struct pvas_space *space, const char *path, const char *task)
{
	char *argv[] = { (char *)path, (char *)"--task", (char *)task, NULL };
	pid_t pid;
	int ret = pvas_task_spawn(space, PVAS_ANY, path, argv, environ, NULL, &pid);

	return ret < 0 ? ret : pt_wait(pid);
}
