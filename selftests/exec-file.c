// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of an exec into a space: what is refused, with which error, for whatever
 * is wrong with it, its interpreter or its size.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

TASK(exit_7)
{
	_exit(7);
}

/* this very program as a task */
PVAS_TEST(runs)
{
	struct pvas_space *space = PT_SPACE();

	EXPECT_EQ(0, pt_run_path(space, pt_self(), "succeed"));
	EXPECT_EQ(7, pt_run_path(space, pt_self(), "exit_7"));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

/* missing, not executable, a directory, through a file, a name too long */
PVAS_TEST(no_such_program)
{
	struct pvas_space *space = PT_SPACE();
	char longname[5000];

	memset(longname, 'x', sizeof(longname));
	longname[0] = '/';
	longname[sizeof(longname) - 1] = '\0';
	EXPECT_EQ(-ENOENT, pt_run_path(space, "/nonexistent", NULL));
	EXPECT_EQ(-EACCES, pt_run_path(space, "/tmp", NULL));
	EXPECT_EQ(-ENOTDIR, pt_run_path(space, "/etc/passwd/x", NULL));
	EXPECT_EQ(-ENAMETOOLONG, pt_run_path(space, longname, NULL));
	EXPECT_EQ(-EACCES, pt_run_path(space, pt_copy_file("noexec", pt_self(), 0600), NULL));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

/* a script runs in the space: its interpreter is the program */
PVAS_TEST(script)
{
	struct pvas_space *space = PT_SPACE();
	char text[4200];
	int n;

	n = snprintf(text, sizeof(text), "#!%s --task\n", pt_self());
	/* Its name follows: the task function is not found, and the exit status says so. */
	EXPECT_EQ(1, pt_run_path(space, pt_put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!/bin/sh\nexit 9\n");
	EXPECT_EQ(9, pt_run_path(space, pt_put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!/nonexistent\n");
	EXPECT_EQ(-ENOENT, pt_run_path(space, pt_put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!%s\n", pt_beside("nopie"));
	EXPECT_EQ(-ENOEXEC, pt_run_path(space, pt_put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!\n");
	EXPECT_EQ(-ENOEXEC, pt_run_path(space, pt_put_file("s", text, n, 0755), NULL));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

#define EHDR(member) offsetof(Elf64_Ehdr, member), sizeof(((Elf64_Ehdr *)0)->member)
#define PHDR(member) offsetof(Elf64_Phdr, member), sizeof(((Elf64_Phdr *)0)->member)

static const struct {
	const char *what;
	int type;	/* -1: the ELF header; else the first program header of this type */
	size_t off, len;
	uint64_t value;
} corruptions[] = {
	{ "magic", -1, 0, 1, 0x7e },
	{ "32 bits", -1, EI_CLASS, 1, ELFCLASS32 },
	{ "big endian", -1, EI_DATA, 1, ELFDATA2MSB },
	{ "ident version", -1, EI_VERSION, 1, 9 },
	{ "ET_EXEC", -1, EHDR(e_type), ET_EXEC },
	{ "ET_REL", -1, EHDR(e_type), ET_REL },
	{ "ET_CORE", -1, EHDR(e_type), ET_CORE },
	{ "aarch64", -1, EHDR(e_machine), EM_AARCH64 },
	{ "i386", -1, EHDR(e_machine), EM_386 },
	{ "no machine", -1, EHDR(e_machine), 0 },
	{ "version", -1, EHDR(e_version), 0 },
	{ "e_phentsize 0", -1, EHDR(e_phentsize), 0 },
	{ "e_phentsize 32", -1, EHDR(e_phentsize), 32 },
	{ "e_phentsize 57", -1, EHDR(e_phentsize), 57 },
	{ "e_phnum 0", -1, EHDR(e_phnum), 0 },
	{ "e_phnum 65535", -1, EHDR(e_phnum), 65535 },
	{ "e_phoff in the middle of things", -1, EHDR(e_phoff), 3 },
	{ "e_phoff beyond the end", -1, EHDR(e_phoff), 1ULL << 40 },
	{ "e_phoff negative", -1, EHDR(e_phoff), -8ULL },
	{ "e_phoff overflows", -1, EHDR(e_phoff), (1ULL << 63) - 8 },
	{ "e_entry outside", -1, EHDR(e_entry), 1ULL << 46 },
	{ "e_entry 0", -1, EHDR(e_entry), 0 },
	{ "load: filesz > memsz", PT_LOAD, PHDR(p_memsz), 1 },
	{ "load: memsz huge", PT_LOAD, PHDR(p_memsz), -1ULL },
	{ "load: vaddr + memsz overflows", PT_LOAD, PHDR(p_vaddr), -4096ULL },
	{ "load: vaddr kernel", PT_LOAD, PHDR(p_vaddr), 0xffffffff80000000ULL },
	{ "load: not the first", PT_LOAD, PHDR(p_vaddr), 1ULL << 30 },
	{ "load: offset off the page", PT_LOAD, PHDR(p_offset), 8 },
	{ "load: offset beyond the end", PT_LOAD, PHDR(p_offset), 1ULL << 40 },
	{ "load: offset negative", PT_LOAD, PHDR(p_offset), -4096ULL },
	{ "load: alignment 3", PT_LOAD, PHDR(p_align), 3 },
	{ "interp: empty", PT_INTERP, PHDR(p_filesz), 0 },
	{ "interp: one byte", PT_INTERP, PHDR(p_filesz), 1 },
	{ "interp: 5000 bytes", PT_INTERP, PHDR(p_filesz), 5000 },
	{ "interp: not terminated", PT_INTERP, PHDR(p_filesz), 10 },
	{ "interp: beyond the end", PT_INTERP, PHDR(p_offset), 1ULL << 40 },
	{ "interp: negative", PT_INTERP, PHDR(p_offset), -8ULL },
	{ "two interps", PT_GNU_STACK, PHDR(p_type), PT_INTERP },
};

static int run_bytes(struct pvas_space *space, const char *elf, size_t len)
{
	return pt_run_path(space, pt_put_file("prog", elf, len, 0700), "succeed");
}

/* each header field spoilt in turn: ENOEXEC */
PVAS_TEST(corrupted_headers)
{
	struct pvas_space *space = PT_SPACE();
	size_t len, i;
	char *good = pt_slurp(pt_self(), &len);
	char *bad = malloc(len);

	ASSERT_NE(NULL, good);
	ASSERT_EQ(0, run_bytes(space, good, len));
	for (i = 0; i < PT_ARRAY_SIZE(corruptions); i++) {
		char *at = bad;

		memcpy(bad, good, len);
		if (corruptions[i].type >= 0)
			at = (char *)pt_find_phdr(bad, corruptions[i].type);
		ASSERT_NE(NULL, at);
		memcpy(at + corruptions[i].off, &corruptions[i].value, corruptions[i].len);
		EXPECT_EQ(-ENOEXEC, run_bytes(space, bad, len)) TH_LOG("%s", corruptions[i].what);
	}
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	EXPECT_EQ(0, run_bytes(space, good, len));
	pvas_space_destroy(space);
}

/* cut off anywhere before the end of what is to be loaded: ENOEXEC */
PVAS_TEST(truncated)
{
	struct pvas_space *space = PT_SPACE();
	size_t len, i;
	char *good = pt_slurp(pt_self(), &len);
	size_t cuts[] = { 0, 1, 3, 4, 16, 63, 64, 65, 64 + 56 - 1, 64 + 56, 64 + 3 * 56, 800, 4096,
			  8192 };

	ASSERT_NE(NULL, good);
	for (i = 0; i < PT_ARRAY_SIZE(cuts); i++) {
		EXPECT_EQ(-ENOEXEC, run_bytes(space, good, cuts[i])) TH_LOG("%zu bytes", cuts[i]);
	}
	pvas_space_destroy(space);
}

/* bytes without any sense: ENOEXEC, and no other format runs them */
PVAS_TEST(not_elf)
{
	struct pvas_space *space = PT_SPACE();
	char junk[4096];
	size_t i;

	for (i = 0; i < sizeof(junk); i++)
		junk[i] = i * 7 + 1;
	EXPECT_EQ(-ENOEXEC, run_bytes(space, junk, sizeof(junk)));
	EXPECT_EQ(-ENOEXEC, run_bytes(space, "echo hello\n", 11));
	pvas_space_destroy(space);
}

/* missing: ENOENT; a directory, not executable: EACCES; malformed: ELIBBAD */
PVAS_TEST(interpreter)
{
	struct pvas_space *space = PT_SPACE();
	size_t len;
	char *ld = pt_slurp("/lib64/ld-linux-x86-64.so.2", &len);
	char *prog = pt_slurp(pt_self(), &len);
	char ip[64];

	ASSERT_NE(NULL, ld);
	EXPECT_EQ(-ENOENT, pt_run_path(space, pt_with_interp("p", "/none"), NULL));
	EXPECT_EQ(-EACCES, pt_run_path(space, pt_with_interp("p", "/tmp"), NULL));
	snprintf(ip, sizeof(ip), "%s/i", pt_tmpdir());

	ASSERT_NE(NULL, pt_put_file("i", ld, 64, 0755));
	EXPECT_EQ(-ELIBBAD, pt_run_path(space, pt_with_interp("p", ip), NULL));
	ASSERT_NE(NULL, pt_put_file("i", "", 0, 0755));
	EXPECT_EQ(-ELIBBAD, pt_run_path(space, pt_with_interp("p", ip), NULL));
	ASSERT_NE(NULL, pt_put_file("i", "#!/bin/sh\n", 10, 0755));
	EXPECT_EQ(-ELIBBAD, pt_run_path(space, pt_with_interp("p", ip), NULL));
	ASSERT_NE(NULL, pt_put_file("i", ld, 64, 0644));
	EXPECT_EQ(-EACCES, pt_run_path(space, pt_with_interp("p", ip), NULL));
	/* An interpreter that has one itself. */
	ASSERT_NE(NULL, pt_put_file("i", prog, len, 0755));
	EXPECT_EQ(-ELIBBAD, pt_run_path(space, pt_with_interp("p", ip), NULL));
	((Elf64_Ehdr *)ld)->e_machine = EM_AARCH64;
	ASSERT_NE(NULL, pt_put_file("i", ld, 4096, 0755));
	EXPECT_EQ(-ELIBBAD, pt_run_path(space, pt_with_interp("p", ip), NULL));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));

	/* And a good one at another place. */
	ASSERT_NE(NULL, pt_copy_file("i", "/lib64/ld-linux-x86-64.so.2", 0755));
	EXPECT_EQ(0, pt_run_path(space, pt_with_interp("p", ip), "succeed"));
	pvas_space_destroy(space);
}

/* a program that needs more than its partition has: ENOMEM */
PVAS_TEST(too_big)
{
	struct pvas_space *space = PT_SPACE_OF(4UL << 30);
	size_t len;
	char *elf = pt_slurp(pt_self(), &len);
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	Elf64_Phdr *p = pt_find_phdr(elf, PT_LOAD), *last = p;

	for (; p < (Elf64_Phdr *)(elf + e->e_phoff) + e->e_phnum; p++)
		if (p->p_type == PT_LOAD)
			last = p;
	last->p_memsz = 5UL << 30;
	EXPECT_EQ(-ENOMEM, run_bytes(space, elf, len));
	last->p_memsz = 1UL << 46;
	EXPECT_EQ(-ENOMEM, run_bytes(space, elf, len));
	last->p_memsz = 1UL << 30;
	EXPECT_EQ(0, run_bytes(space, elf, len));
	pvas_space_destroy(space);
}

PT_MAIN()
