// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: which file is the program?
 *
 * There is no execve(), so its steps are here: permissions, #! lines by the kernel's
 * rules, and the same checks of ELF files as the module's. In the new process, after
 * its setup function: raw system calls only.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "privilege.h"
#include "rawsys.h"
#include "child.h"

#define PROC_ROOT	1	/* its inode: PROC_ROOT_INO of the kernel */

static int read_exact(int fd, void *buf, size_t len, uint64_t off)
{
	long n = pvas_raw_pread(fd, buf, len, off);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -ENOEXEC;
}

/* A sandbox may not know faccessat2(). Programs' real and effective ids are the same here. */
static long may_execute(int dir, const char *path)
{
	long err = pvas_raw4(__NR_faccessat2, dir, path, X_OK, AT_EACCESS);

	return err == -ENOSYS || err == -EPERM ? pvas_raw3(__NR_faccessat, dir, path, X_OK) : err;
}

/* The same of an open file; without that call, of the one whose path has been examined */
static long may_execute_open(int fd, const struct stat *now, const struct stat *before)
{
	long err = pvas_raw4(__NR_faccessat2, fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH);

	if (err != -ENOSYS && err != -EPERM)
		return err;
	return now->st_dev == before->st_dev && now->st_ino == before->st_ino ? 0 : -EACCES;
}

static int examine(int dir, const char *path, struct stat *st)
{
	long err = pvas_raw4(__NR_newfstatat, dir, path, st, 0);

	if (!err && !S_ISREG(st->st_mode))
		err = -EACCES;
	return err ? (int)err : (int)may_execute(dir, path);
}

int user_program_look_at(int dir, const char *file)
{
	struct stat st;

	return *file ? examine(dir, file, &st) : 0;
}

/*
 * Open an executable file. Errors are those of execve(), -EPERM if it can't be read, and -EBUSY if
 * a task must not because of locks.
 */
static int open_executable(const struct user_program *prog, int dir, const char *path,
			   struct stat *st)
{
	struct stat before;
	long fd, err;

	err = examine(dir, path, &before);
	if (err)
		return err;
	if (prog->asks && user_program_is_locked(&before))
		return -EBUSY;
	do {
		fd = pvas_raw4(__NR_openat, dir, path,
			       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	} while (fd == -EINTR);
	if (fd < 0)
		return fd == -EACCES ? -EPERM : (int)fd;
	/* The path may name another file by now. */
	err = pvas_raw2(__NR_fstat, fd, st);
	if (!err && !S_ISREG(st->st_mode))
		err = -EACCES;
	if (!err)
		err = may_execute_open(fd, st, &before);
	if (!err)
		return (int)fd;
	pvas_raw1(__NR_close, fd);
	return (int)err;
}

#define EXECVE_CHECK	0x10000	/* AT_EXECVE_CHECK, 6.14 */

/*
 * Would the kernel let it execute this file? Security modules and Landlock may forbid that, and
 * the file may be open for writing. Older kernels don't know the flag, and can't be asked.
 */
static int ask_kernel(const struct user_program *prog, int fd)
{
	char *argv[] = { (char *)"", NULL };
	long err;

	if (!prog->asks)
		return 0;
	err = pvas_raw6(__NR_execveat, fd, (long)"", (long)argv, (long)(argv + 1),
			EXECVE_CHECK | AT_EMPTY_PATH, 0);
	return err == -EINVAL || err == -ENOSYS ? 0 : (int)err;
}

/* ---- ELF ---- */

static int read_image(int fd, uint64_t size, Elf64_Ehdr *head, struct pvas_elf_image *image)
{
	Elf64_Phdr ph[PVAS_ELF_PHNUM_MAX];	/* 64 KiB: a quarter of the stack */
	int err;

	err = read_exact(fd, head, sizeof(*head), 0);
	if (!err)
		err = pvas_elf_check_ehdr(head);
	if (!err)
		err = read_exact(fd, ph, pvas_elf_phdrs_size(head), head->e_phoff);
	if (!err)
		err = pvas_elf_check_phdrs(head, ph, size, image);
	return err;
}

static int check_interp(struct user_program *prog)
{
	const struct pvas_elf_image *image = &prog->image;
	struct pvas_elf_image *interp = &prog->interp;
	char path[PATH_MAX];
	Elf64_Ehdr head;
	struct stat st;
	int err, fd;

	err = read_exact(prog->fd, path, image->interp_len, image->interp_off);
	if (!err)
		err = pvas_elf_check_interp_path(path, image->interp_len);
	if (err)
		return err;
	fd = open_executable(prog, AT_FDCWD, path, &st);
	if (fd < 0)
		return fd;
	err = ask_kernel(prog, fd) ?: read_image(fd, (uint64_t)st.st_size, &head, interp);
	if (err == -ENOEXEC || (!err && interp->interp_len))
		err = -ELIBBAD;
	pvas_raw1(__NR_close, fd);
	return err;
}

/* Tasks can read and write each other, so no program may have privileges of its own. */
static int check_rights(int fd, const struct stat *st)
{
	return pvas_privilege_of(fd, st->st_mode) ? -EPERM : 0;
}

/* The directory itself, not what is in it */
static int is_proc(int fd)
{
	struct statfs fs;
	struct stat st;

	return !pvas_raw2(__NR_fstatfs, fd, &fs) && fs.f_type == PROC_SUPER_MAGIC &&
	       !pvas_raw2(__NR_fstat, fd, &st) && st.st_ino == PROC_ROOT;
}

/*
 * The setup function may have closed the launcher's, and opened something else at its number;
 * and changed the root to a tree of which another user says what is in /proc.
 */
struct user_proc_dir user_program_proc(int starts)
{
	struct user_proc_dir proc = { .fd = user_proc_fd() };

	if (starts && is_proc(proc.fd))
		return proc;
	proc.fd = (int)pvas_raw4(__NR_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC,
				 0);
	proc.opened = proc.fd >= 0;
	if (proc.opened && !is_proc(proc.fd)) {
		user_program_close_proc(&proc);
		proc = (struct user_proc_dir){ .fd = -ENOENT };
	}
	return proc;
}

void user_program_close_proc(const struct user_proc_dir *proc)
{
	if (proc->opened)
		pvas_raw1(__NR_close, proc->fd);
}

/* "self/fd/FD" */
static void make_link(char link[32], int fd)
{
	char digits[12], *to = stpcpy(link, "self/fd/");
	int n = 0;

	do {
		digits[n++] = '0' + fd % 10;
		fd /= 10;
	} while (fd);
	while (n)
		*to++ = digits[--n];
	*to = 0;
}

/* The kernel's name for an open file, as a link of /proc shows it. */
static void name_of(const struct user_program *prog, char *buf, size_t len)
{
	struct user_proc_dir proc = user_program_proc(!prog->asks);
	char link[32];
	long got;

	make_link(link, prog->fd);
	got = pvas_raw4(__NR_readlinkat, proc.fd, link, buf, len - 1);
	buf[got < 0 ? 0 : got] = 0;
	user_program_close_proc(&proc);
}

static int take_elf(struct user_program *prog, const struct stat *st)
{
	Elf64_Ehdr head;
	int err;

	memset(&prog->interp, 0, sizeof(prog->interp));
	err = read_image(prog->fd, (uint64_t)st->st_size, &head, &prog->image);
	if (!err)
		err = check_rights(prog->fd, st);
	if (!err && prog->image.interp_len)
		err = check_interp(prog);
	prog->phnum = head.e_phnum;
	name_of(prog, prog->exe, sizeof(prog->exe));
	return err;
}

/* ---- #! ---- */

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/*
 * Split "#! interpreter argument" as binfmt_script does: the argument is the rest of the
 * line without trailing blanks. A path that may be longer than what was read is refused.
 */
static int cut_line(char *line, char **interp, char **arg)
{
	char *end = strchrnul(line, '\n');
	char *p = line + 2;
	int is_cut = end == line + USER_SCRIPT_HEAD;

	while (end > p && is_blank(end[-1]))
		end--;
	*end = 0;
	while (is_blank(*p))
		p++;
	if (!*p)
		return -ENOEXEC;
	*interp = p;
	while (*p && !is_blank(*p))
		p++;
	if (is_cut && p == line + USER_SCRIPT_HEAD)
		return -ENOEXEC;
	if (*p)
		*p++ = 0;
	while (is_blank(*p))
		p++;
	*arg = *p ? p : NULL;
	return 0;
}

/* Replace the first argument by interpreter, its argument, and the script's path. */
static int take_script(struct user_program *prog, const char **path)
{
	char *line = prog->lines[prog->depth];
	char *interp, *arg;
	int err;

	if (prog->depth == USER_SCRIPT_DEPTH - 1)
		return -ELOOP;
	err = cut_line(line, &interp, &arg);
	if (err)
		return err;
	prog->depth++;
	if (prog->nr_head)
		prog->nr_head--;
	prog->head[prog->nr_head++] = *path;
	if (arg)
		prog->head[prog->nr_head++] = arg;
	prog->head[prog->nr_head++] = interp;
	*path = interp;
	pvas_raw1(__NR_close, prog->fd);
	return 0;
}

/* Returns 1 for a script: @path is then its interpreter. */
static int try_open(struct user_program *prog, int dir, const char *file, const char **path)
{
	char *line = prog->lines[prog->depth];
	struct stat st;
	long n;

	prog->fd = open_executable(prog, dir, file, &st);
	if (prog->fd < 0)
		return prog->fd;
	n = ask_kernel(prog, prog->fd) ?: pvas_raw_pread(prog->fd, line, USER_SCRIPT_HEAD, 0);
	if (n < 0)
		return (int)n;
	line[n] = 0;
	if (line[0] != '#' || line[1] != '!')
		return take_elf(prog, &st);
	return take_script(prog, path) ?: 1;
}

static int open_at(struct user_program *prog, int dir, const char *file, const char *path)
{
	int ret;

	prog->path = path;
	prog->nr_head = prog->depth = 0;
	ret = try_open(prog, dir, file, &path);
	while (ret == 1)
		ret = try_open(prog, AT_FDCWD, path, &path);
	return ret;
}

int user_program_open(struct user_program *prog, const char *path)
{
	prog->asks = 0;
	return open_at(prog, AT_FDCWD, path, path);
}

/* Not by its path: under a root of another user's, anything could be there. */
int user_program_open_at(struct user_program *prog, int dir, const char *file, const char *path)
{
	struct user_proc_dir proc;
	char link[32];
	int ret;

	prog->asks = 1;
	if (*file || dir < 0)
		return open_at(prog, dir, file, path);
	proc = user_program_proc(0);
	if (proc.fd < 0)
		return proc.fd;
	make_link(link, dir);
	ret = open_at(prog, proc.fd, link, path);
	user_program_close_proc(&proc);
	return ret;
}
