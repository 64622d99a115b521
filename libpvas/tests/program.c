// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_program_find and pvas_program_check: their result for each kind of file. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

FIXTURE(dir)
{
	char path[64];
	char file[128];
	char why[256];
	char buf[4096];
};

FIXTURE_SETUP(dir)
{
	strcpy(self->path, "/tmp/pvas-program-XXXXXX");
	ASSERT_NE(mkdtemp(self->path), NULL);
	snprintf(self->file, sizeof(self->file), "%s/prog", self->path);
	/* A test may drop root, and must still have access. */
	chmod(self->path, 0755);
}

FIXTURE_TEARDOWN(dir)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", self->path);
	if (system(cmd))
		abort();
}

static void put(const char *path, const void *data, size_t len, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, mode) || close(fd))
		abort();
}

static char ls[1 << 20];	/* the bytes of /bin/ls */
static size_t ls_len;

static Elf64_Ehdr *load_ls(void)
{
	int fd = open("/bin/ls", O_RDONLY);

	ls_len = (size_t)read(fd, ls, sizeof(ls));
	close(fd);
	return (Elf64_Ehdr *)ls;
}

static Elf64_Phdr *ls_phdr(unsigned int type)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)ls;
	Elf64_Phdr *p = (Elf64_Phdr *)(ls + e->e_phoff);

	while (p->p_type != type)
		p++;
	return p;
}

#define CHECK(path_, err_, why_)					\
	do {								\
		memset(self->why, 'x', sizeof(self->why));		\
		EXPECT_EQ(pvas_program_check(path_, self->why, sizeof(self->why)), err_); \
		EXPECT_STREQ(self->why, why_);				\
		EXPECT_EQ(pvas_program_check(path_, NULL, 0), err_);	\
	} while (0)

/* Write the bytes that load_ls() read, with the changes made since. */
#define CHECK_LS(err_, why_)						\
	do {								\
		put(self->file, ls, ls_len, 0755);			\
		CHECK(self->file, err_, why_);				\
	} while (0)

TEST_F(dir, good)
{
	CHECK("/bin/ls", 0, "");
	CHECK("/bin/bash", 0, "");
	CHECK("/lib64/ld-linux-x86-64.so.2", 0, "");
	load_ls();
	CHECK_LS(0, "");
}

TEST_F(dir, files)
{
	CHECK("/no/such/file", -ENOENT, "not found");
	CHECK("/etc/passwd/x", -ENOTDIR, "Not a directory");
	CHECK("/tmp", -EACCES, "is a directory");
	CHECK("/dev/null", -EACCES, "not a regular file");
	put(self->file, "x", 1, 0644);
	CHECK(self->file, -EACCES, "not executable");
	put(self->file, "", 0, 0755);
	CHECK(self->file, -ENOEXEC, "an empty file");
	put(self->file, "hello", 5, 0755);
	CHECK(self->file, -ENOEXEC, "neither an ELF program nor a #! script");
}

TEST_F(dir, elf_headers)
{
	load_ls()->e_type = ET_EXEC;
	CHECK_LS(-ENOEXEC, "not a position-independent executable (ET_EXEC): relink with -pie");
	load_ls()->e_type = ET_REL;
	CHECK_LS(-ENOEXEC, "an object or core file, not a program");
	load_ls()->e_machine = EM_386;
	CHECK_LS(-ENOEXEC, "is for machine i386");
	load_ls()->e_machine = EM_AARCH64;
	CHECK_LS(-ENOEXEC, "is for machine aarch64");
	load_ls()->e_machine = 4242;
	CHECK_LS(-ENOEXEC, "is for machine number 4242");
	load_ls()->e_ident[EI_CLASS] = ELFCLASS32;
	CHECK_LS(-ENOEXEC, "is for machine x32 (a 32-bit program)");
	load_ls()->e_ident[EI_DATA] = ELFDATA2MSB;
	CHECK_LS(-ENOEXEC, "is for another machine (big-endian)");
	load_ls()->e_entry = 0;
	CHECK_LS(-ENOEXEC, "a shared library, not a program (no entry point)");
	load_ls()->e_phentsize = 1;
	CHECK_LS(-ENOEXEC, "malformed ELF header");
	load_ls()->e_entry = -1ULL;
	CHECK_LS(-ENOEXEC, "malformed or truncated ELF file");
	load_ls();
	ls_len = 5000;
	CHECK_LS(-ENOEXEC, "malformed or truncated ELF file");
	ls_len = 63;
	CHECK_LS(-ENOEXEC, "truncated ELF header");
	ls_len = 100;
	CHECK_LS(-ENOEXEC, "malformed or truncated ELF file");
}

TEST_F(dir, interpreter)
{
	Elf64_Phdr *p;

	load_ls();
	p = ls_phdr(PT_INTERP);
	strcpy(ls + p->p_offset, "/lib/x");
	CHECK_LS(-ENOENT, "interpreter /lib/x not found");
	strcpy(ls + p->p_offset, "/etc/passwd");
	CHECK_LS(-EACCES, "interpreter /etc/passwd not executable");
	strcpy(ls + p->p_offset, "/tmp");
	CHECK_LS(-EACCES, "interpreter /tmp is not a regular file");
	strcpy(ls + p->p_offset, "/bin/bash");	/* which has an interpreter itself */
	CHECK_LS(-ELIBBAD, "interpreter /bin/bash is malformed");
	ls[p->p_offset] = 0;
	CHECK_LS(-ENOEXEC, "malformed interpreter path");
	ls[p->p_offset] = '/';
	ls[p->p_offset + p->p_filesz - 1] = 'x';
	CHECK_LS(-ENOEXEC, "malformed interpreter path");
}

/* Not even for a moment: to open it would let its writer go on. */
TEST_F(dir, interpreter_is_not_opened)
{
	char top[] = "/tmp/pvas-XXXXXX", name[24], why[128], event[512];
	int seen = inotify_init1(IN_NONBLOCK);

	ASSERT_NE(mkdtemp(top), NULL);
	snprintf(name, sizeof(name), "%s/f", top);	/* not longer than ls' interpreter */
	ASSERT_EQ(mkfifo(name, 0777), 0);
	ASSERT_GE(inotify_add_watch(seen, name, IN_OPEN), 0);
	load_ls();
	strcpy(ls + ls_phdr(PT_INTERP)->p_offset, name);
	snprintf(why, sizeof(why), "interpreter %s is not a regular file", name);
	CHECK_LS(-EACCES, why);
	EXPECT_LT(read(seen, event, sizeof(event)), 0);
	close(seen);
	unlink(name);
	rmdir(top);
}

/* Names in it are another user's choice, and the reason is printed on a terminal. */
TEST_F(dir, reasons_are_printable)
{
	const char head[] = "#!/x\033[2J\a\177\n";

	put(self->file, head, sizeof(head) - 1, 0755);
	CHECK(self->file, -ENOENT, "its interpreter /x?[2J??: not found");
	load_ls();
	strcpy(ls + ls_phdr(PT_INTERP)->p_offset, "/x\n\033[2J");
	CHECK_LS(-ENOENT, "interpreter /x??[2J not found");
}

TEST_F(dir, privileges)
{
	load_ls();
	put(self->file, ls, ls_len, 04755);
	CHECK(self->file, -EPERM, "set-uid");
	put(self->file, ls, ls_len, 02755);
	CHECK(self->file, -EPERM, "set-gid");
	put(self->file, ls, ls_len, 02745);	/* no group x: no privilege */
	CHECK(self->file, 0, "");
	if (geteuid())
		SKIP(return, "needs root to drop it");
	put(self->file, ls, ls_len, 0711);
	ASSERT_EQ(seteuid(65534), 0);
	CHECK(self->file, -EPERM, "not readable");
	ASSERT_EQ(seteuid(0), 0);
	put(self->file, ls, ls_len, 0744);
	ASSERT_EQ(seteuid(65534), 0);
	CHECK(self->file, -EACCES, "not executable");
	ASSERT_EQ(seteuid(0), 0);
}

TEST_F(dir, scripts)
{
	char text[256], why[300];

	put(self->file, "#!/bin/sh\n", 10, 0755);
	CHECK(self->file, 0, "");
	put(self->file, "#! \t/bin/bash -e\necho", 20, 0755);
	CHECK(self->file, 0, "");
	put(self->file, "#!/bin/sh", 9, 0755);
	CHECK(self->file, 0, "");
	put(self->file, "#!/no/sh\n", 9, 0755);
	CHECK(self->file, -ENOENT, "its interpreter /no/sh: not found");
	put(self->file, "#!\n", 3, 0755);
	CHECK(self->file, -ENOEXEC, "a script that names no interpreter after #!");
	snprintf(text, sizeof(text), "#!%s\n", self->file);
	put(self->file, text, strlen(text), 0755);
	EXPECT_EQ(pvas_program_check(self->file, why, sizeof(why)), -ELOOP);
}

/* As execve(): the kernel reads 256 bytes of a script, and runs no path that may be cut there. */
TEST_F(dir, long_interpreter)
{
	char cut[512], text[600], *argv[] = { self->file, NULL };
	struct pvas_space *s;
	pid_t pid;
	int ret;

	/* The first 254 bytes of a path of 300 name a program that succeeds. */
	snprintf(cut, sizeof(cut), "%s/%0*d", self->path, (int)(253 - strlen(self->path)), 0);
	ASSERT_EQ(strlen(cut), 254);
	ASSERT_EQ(symlink("/bin/true", cut), 0);
	snprintf(text, sizeof(text), "#!%s%046d\n", cut, 0);
	put(self->file, text, strlen(text), 0755);
	pid = fork();
	if (!pid)
		_exit(execve(self->file, argv, environ) == -1 && errno == ENOEXEC ? 77 : 1);
	EXPECT_EQ(end_of(pid), 77 << 8);
	ASSERT_EQ(pvas_space_create(&s, &(struct pvas_create_attr){
			.size = sizeof(struct pvas_create_attr), .backend = PVAS_BACKEND_USER }), 0)
		TH_LOG("%s", pvas_error_get());
	ret = pvas_task_spawn(s, PVAS_ANY, self->file, argv, environ, NULL, &pid);
	EXPECT_EQ(ret, -ENOEXEC);
	if (ret > 0)
		end_of(pid);
	/* A byte less, with a blank behind: all of the path has been read. */
	snprintf(text, sizeof(text), "#!%.253s -x%046d\n", cut, 0);
	ASSERT_EQ(rename(cut, memcpy(self->buf, text + 2, 253)), 0);
	put(self->file, text, strlen(text), 0755);
	ret = pvas_task_spawn(s, PVAS_ANY, self->file, argv, environ, NULL, &pid);
	EXPECT_GT(ret, 0);
	EXPECT_EQ(ret > 0 ? end_of(pid) : ret, 0);
	pvas_space_destroy(s);
}

TEST_F(dir, reason_is_cut_to_the_buffer)
{
	char why[6] = "xxxxx";

	EXPECT_EQ(pvas_program_check("/no/such", why, sizeof(why)), -ENOENT);
	EXPECT_STREQ(why, "not f");
	EXPECT_EQ(pvas_program_check("/no/such", why, 0), -ENOENT);
	EXPECT_STREQ(why, "not f");
}

TEST_F(dir, find)
{
	char path[512], dir2[80], small[8];

	EXPECT_EQ(pvas_program_find("ls", "/nowhere:/bin:/usr/bin", self->buf, 4096), 0);
	EXPECT_STREQ(self->buf, "/bin/ls");
	EXPECT_EQ(pvas_program_find("/bin/ls", "", self->buf, 4096), 0);
	EXPECT_STREQ(self->buf, "/bin/ls");
	EXPECT_EQ(pvas_program_find("ls", NULL, self->buf, 4096), 0);
	EXPECT_EQ(pvas_program_find("no-such", "/bin:/usr/bin", self->buf, 4096), -ENOENT);
	EXPECT_EQ(pvas_program_find("", "/bin", self->buf, 4096), -ENOENT);
	EXPECT_EQ(pvas_program_find("./no", "/bin", self->buf, 4096), -ENOENT);
	EXPECT_EQ(pvas_program_find("ls", "/bin", small, sizeof(small)), 0);
	EXPECT_EQ(pvas_program_find("lsx", "/bin", small, sizeof(small)), -ENAMETOOLONG);
	EXPECT_EQ(pvas_program_find("/bin/lsx", NULL, small, sizeof(small)), -ENAMETOOLONG);

	/* A file that can't be executed hides none further on; if there is none, -EACCES. */
	put(self->file, "x", 1, 0644);
	snprintf(path, sizeof(path), "%s:/bin", self->path);
	EXPECT_EQ(pvas_program_find("prog", path, self->buf, 4096), -EACCES);
	snprintf(dir2, sizeof(dir2), "%s/d", self->path);
	ASSERT_EQ(mkdir(dir2, 0755), 0);
	snprintf(path, sizeof(path), "%s/ls", self->path);
	ASSERT_EQ(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s:/bin", self->path);
	EXPECT_EQ(pvas_program_find("ls", path, self->buf, 4096), 0);
	EXPECT_STREQ(self->buf, "/bin/ls");

	/* An empty element means the working directory. */
	put(self->file, "x", 1, 0755);
	ASSERT_EQ(chdir(self->path), 0);
	EXPECT_EQ(pvas_program_find("prog", ":/bin", self->buf, 4096), 0);
	EXPECT_STREQ(self->buf, "prog");
	EXPECT_EQ(pvas_program_find("prog", "/bin:", self->buf, 4096), 0);
	EXPECT_EQ(pvas_program_find("prog", "/bin::/sbin", self->buf, 4096), 0);
	EXPECT_EQ(pvas_program_find("prog", "/bin", self->buf, 4096), -ENOENT);
	ASSERT_EQ(chdir("/"), 0);
}

TEST_HARNESS_MAIN
