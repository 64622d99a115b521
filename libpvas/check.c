// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * pvas_program_check: can this program be a task, and if not, why?
 *
 * It makes the checks of execve() and the module in the same order, to name the one
 * that fails. The result is for people: execve() makes its own checks.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../kmod/pvas_elf.h"
#include "open_regular.h"
#include "private.h"
#include "privilege.h"
#include "pvas.h"

#define SCRIPT_HEAD	256	/* BINPRM_BUF_SIZE: the kernel reads no more of a #! line */
#define SCRIPT_DEPTH	5	/* scripts that the kernel follows */

/* Buffer for the reason */
struct why {
	char *text;
	size_t len;
};

static int refuse(const struct why *w, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(const struct why *w, int err, const char *format, ...)
{
	va_list ap;
	char *p;

	if (!w->text || !w->len)
		return err;
	va_start(ap, format);
	vsnprintf(w->text, w->len, format, ap);
	va_end(ap);
	/* It can have names out of a file of another user's, and is printed on terminals. */
	for (p = w->text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return err;
}

/* ---- reading ---- */

struct elf_file {
	int fd;
	uint64_t size;
	Elf64_Ehdr head;
	struct pvas_elf_image image;
};

static int read_all(int fd, void *buf, size_t len, uint64_t off)
{
	ssize_t n = pread(fd, buf, len, (off_t)off);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ENOEXEC;
}

static int read_elf(struct elf_file *f)
{
	uint64_t len;
	void *ph;
	int err;

	err = pvas_elf_check_ehdr(&f->head);
	if (err)
		return err;
	len = pvas_elf_phdrs_size(&f->head);
	ph = malloc(len);
	if (!ph)
		return -ENOMEM;
	err = read_all(f->fd, ph, len, f->head.e_phoff);
	if (!err)
		err = pvas_elf_check_phdrs(&f->head, ph, f->size, &f->image);
	free(ph);
	return err;
}

/* ---- explaining what is wrong with an ELF header ---- */

static const char *machine_name(unsigned int machine)
{
	static const struct {
		unsigned int machine;
		const char *name;
	} names[] = {
		{ EM_386, "i386" }, { EM_X86_64, "x86-64" }, { EM_AARCH64, "aarch64" },
		{ EM_ARM, "arm" }, { EM_RISCV, "riscv" }, { EM_PPC64, "ppc64" },
		{ EM_S390, "s390" }, { EM_MIPS, "mips" }, { EM_IA_64, "ia64" },
		{ EM_SPARCV9, "sparc64" }, { 258, "loongarch" },
	};
	static __thread char number[24];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].machine == machine)
			return names[i].name;
	snprintf(number, sizeof(number), "number %u", machine);
	return number;
}

static int explain_head(const Elf64_Ehdr *e, const struct why *w)
{
	const unsigned char *id = e->e_ident;

	if (id[EI_DATA] != ELFDATA2LSB)
		return refuse(w, -ENOEXEC, "is for another machine (big-endian)");
	if (e->e_machine != EM_X86_64)
		return refuse(w, -ENOEXEC, "is for machine %s", machine_name(e->e_machine));
	if (id[EI_CLASS] != ELFCLASS64)
		return refuse(w, -ENOEXEC, "is for machine x32 (a 32-bit program)");
	if (e->e_type == ET_EXEC)
		return refuse(w, -ENOEXEC,
			      "not a position-independent executable (ET_EXEC): relink with -pie");
	if (e->e_type != ET_DYN)
		return refuse(w, -ENOEXEC, "an object or core file, not a program");
	if (!e->e_entry)
		return refuse(w, -ENOEXEC, "a shared library, not a program (no entry point)");
	return refuse(w, -ENOEXEC, "malformed ELF header");
}

static int explain_elf(const struct elf_file *f, int err, const struct why *w)
{
	if (err != -ENOEXEC)
		return refuse(w, err, "can't be read: %s", strerror(-err));
	if (pvas_elf_check_ehdr(&f->head) || !f->head.e_entry)
		return explain_head(&f->head, w);
	return refuse(w, -ENOEXEC, "malformed or truncated ELF file");
}

/* ---- the interpreter ---- */

static int check_interp_file(const char *path, const struct why *w)
{
	struct stat st;
	struct elf_file f = { .fd = open_regular(path, &st) };
	int err = 0;

	if (f.fd == -EINVAL)
		return refuse(w, -EACCES, "interpreter %s is not a regular file", path);
	if (f.fd == -EACCES)
		return refuse(w, -EACCES, "interpreter %s not readable", path);
	if (f.fd < 0)
		return refuse(w, f.fd, f.fd == -ENOENT ? "interpreter %s not found" :
			      "interpreter %s can't be opened", path);
	f.size = (uint64_t)st.st_size;
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		err = refuse(w, -EACCES, "interpreter %s not executable", path);
	else if (read_all(f.fd, &f.head, sizeof(f.head), 0) || read_elf(&f) || f.image.interp_len)
		err = refuse(w, -ELIBBAD, "interpreter %s is malformed", path);
	close(f.fd);
	return err;
}

static int check_interp(const struct elf_file *f, const struct why *w)
{
	char path[PATH_MAX];

	if (read_all(f->fd, path, f->image.interp_len, f->image.interp_off) ||
	    pvas_elf_check_interp_path(path, f->image.interp_len))
		return refuse(w, -ENOEXEC, "malformed interpreter path");
	return check_interp_file(path, w);
}

static int check_elf(struct elf_file *f, const struct why *w)
{
	int err;

	memset(&f->image, 0, sizeof(f->image));
	err = read_all(f->fd, &f->head, sizeof(f->head), 0);
	if (err)
		return refuse(w, err, "truncated ELF header");
	err = read_elf(f);
	if (err)
		return explain_elf(f, err, w);
	return f->image.interp_len ? check_interp(f, w) : 0;
}

/* ---- the file ---- */

static int check_privileges(int fd, const struct stat *st, const struct why *w)
{
	const char *privilege = pvas_privilege_of(fd, st->st_mode);

	return privilege ? refuse(w, -EPERM, "%s", privilege) : 0;
}

/* Open a file that may be executed; on -errno the reason is set. */
static int open_program(const char *path, struct stat *st, const struct why *w)
{
	int fd;

	if (stat(path, st))
		return refuse(w, -errno, errno == ENOENT ? "not found" : "%s", strerror(errno));
	if (!S_ISREG(st->st_mode))
		return refuse(w, -EACCES, S_ISDIR(st->st_mode) ? "is a directory"
							       : "not a regular file");
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return refuse(w, -EACCES, "not executable");
	fd = open_regular(path, st);
	if (fd >= 0)
		return fd;
	if (fd == -EINVAL)
		return refuse(w, -EACCES, "not a regular file");
	if (fd == -EACCES)
		return refuse(w, -EPERM, "not readable");
	return refuse(w, fd, "can't be opened: %s", strerror(-fd));
}

/* The word after #!, cut out as binfmt_script does. NULL: there is none. */
static char *script_interp(char *head)
{
	char *p = head + 2 + strspn(head + 2, " \t");

	p[strcspn(p, " \t\n")] = 0;
	return *p ? p : NULL;
}

static int check_path(const char *path, int depth, const struct why *w);

static int check_script(char *head, int depth, const struct why *w)
{
	char *interp = script_interp(head);
	char reason[256] = "";
	struct why inner = { reason, sizeof(reason) };
	int err;

	if (!interp)
		return refuse(w, -ENOEXEC, "a script that names no interpreter after #!");
	if (depth == SCRIPT_DEPTH)
		return refuse(w, -ELOOP, "too many scripts that are interpreters of scripts");
	err = check_path(interp, depth + 1, &inner);
	if (err)
		refuse(w, err, "its interpreter %s: %s", interp, reason);
	return err;
}

static int check_content(int fd, const struct stat *st, int depth, const struct why *w)
{
	struct elf_file f = { .fd = fd, .size = (uint64_t)st->st_size };
	char head[SCRIPT_HEAD + 1];
	ssize_t n = pread(fd, head, SCRIPT_HEAD, 0);

	if (n < 0)
		return refuse(w, -errno, "can't be read: %s", strerror(errno));
	head[n] = 0;
	if (n >= 2 && head[0] == '#' && head[1] == '!')
		return check_script(head, depth, w);
	if (n < SELFMAG || memcmp(head, ELFMAG, SELFMAG))
		return refuse(w, -ENOEXEC, n ? "neither an ELF program nor a #! script"
					     : "an empty file");
	return check_elf(&f, w);
}

static int check_path(const char *path, int depth, const struct why *w)
{
	struct stat st;
	int fd, err;

	fd = open_program(path, &st, w);
	if (fd < 0)
		return fd;
	err = check_content(fd, &st, depth, w);
	if (!err)
		err = check_privileges(fd, &st, w);
	close(fd);
	return err;
}

PVAS_PUBLIC int pvas_program_check(const char *path, char *why, size_t len)
{
	struct why w = { why, len };
	int saved = errno;
	int err;

	pvas_clear_error();
	if (why && len)
		why[0] = 0;
	err = check_path(path, 0, &w);
	errno = saved;
	return err;
}
