// SPDX-License-Identifier: LGPL-2.1-or-later
/* The conditions with which errors.c provokes errors. */
#include "errors.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pvas.h"

int failed;

void fails(const char *file, int line, const char *call, int want, int got)
{
	if (got == want)
		return;
	fprintf(stderr, "# %s:%d: %s: %d, not %d (%s)\n", file, line, call, got, want,
		pvas_error_get());
	failed++;
}

/* ---- calls ---- */

int space_create(int backend)
{
	struct pvas_create_attr a = { .size = sizeof(a), .backend = backend };
	struct pvas_space *s;
	int err = pvas_space_create(&s, &a);

	if (!err)
		pvas_space_destroy(s);
	return err;
}

int space_join(void)
{
	struct pvas_space *s;
	char key[32];
	int err;

	snprintf(key, sizeof(key), "errors-%d", getpid());
	err = pvas_space_join(&s, key, NULL);
	if (!err)
		pvas_space_destroy(s);
	return err;
}

int program_check(const char *path)
{
	return pvas_program_check(path, NULL, 0);
}

/* ---- limits ---- */

void set_limit(int resource, rlim_t soft)
{
	struct rlimit limit;

	getrlimit(resource, &limit);
	limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
	setrlimit(resource, &limit);
}

void leave_files(int left)
{
	int fd;

	set_limit(RLIMIT_NOFILE, RLIM_INFINITY);
	fd = dup(2);
	close(fd);
	set_limit(RLIMIT_NOFILE, fd + left);
}

void leave_no_memory(void)
{
	void *volatile p;	/* so that the compiler keeps the calls */
	size_t len;

	set_limit(RLIMIT_AS, 4096);
	/* Down to all small sizes, because freed memory is kept by size. */
	for (len = 1 << 20; len; len = len > 2048 ? len / 2 : len - 16)
		do {
			p = malloc(len);
		} while (p);
}

void give_memory_back(void)
{
	set_limit(RLIMIT_AS, RLIM_INFINITY);
}

void be_ordinary(void)
{
	if (!getuid() && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
}

/* ---- files ---- */

char bad_interp[64], fifo_interp[64], fifo[80], bad_link[72], long_path[5000];

/* A copy of /bin/true with another interpreter; sets @path. */
static void make_with_interp(char path[static 64], const char *interp)
{
	static char elf[1 << 20];
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	int fd = open("/bin/true", O_RDONLY);
	ssize_t len = read(fd, elf, sizeof(elf));
	Elf64_Phdr *p = (Elf64_Phdr *)(elf + e->e_phoff);

	close(fd);
	while (p->p_type != PT_INTERP)
		p++;
	memset(elf + p->p_offset, 0, p->p_filesz);
	strcpy(elf + p->p_offset, interp);
	strcpy(path, "/tmp/pvas-errors-XXXXXX");
	fd = mkstemp(path);
	if (write(fd, elf, len) != len || fchmod(fd, 0755))
		abort();
	close(fd);
}

void make_bad_programs(void)
{
	make_with_interp(bad_interp, "/bin/bash");	/* which has an interpreter itself */
	/* Its path is not longer than the real interpreter's; nobody ever writes to it. */
	snprintf(fifo, sizeof(fifo), "/tmp/pvas-fifo-%d", getpid());
	unlink(fifo);
	if (mkfifo(fifo, 0755))
		abort();
	make_with_interp(fifo_interp, fifo);
	snprintf(bad_link, sizeof(bad_link), "%s-link", bad_interp);
	if (symlink(bad_link, bad_link))
		abort();
	memset(long_path, 'x', sizeof(long_path) - 1);
}

void remove_bad_programs(void)
{
	unlink(bad_interp);
	unlink(fifo_interp);
	unlink(fifo);
	unlink(bad_link);
}

int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, text, strlen(text)) < 0;

	close(fd);
	return err;
}
