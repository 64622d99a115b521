// SPDX-License-Identifier: LGPL-2.1-or-later
/* kmod/pvas_elf.h: which ELF files can be tasks. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../kmod/pvas_elf.h"
#include "kselftest_harness.h"

#define MIB (1ULL << 20)

/* A small good program: text, data with bss, PT_PHDR, PT_INTERP, PT_GNU_STACK. */
struct sample {
	Elf64_Ehdr e;
	Elf64_Phdr ph[6];
	uint64_t size;
};

enum { TEXT, DATA, PHDR, INTERP, STACK, NOTE };

static struct sample good(void)
{
	struct sample s = { .size = 0x3000 };

	memcpy(s.e.e_ident, ELFMAG "\x02\x01\x01", 7);
	s.e.e_type = ET_DYN;
	s.e.e_machine = EM_X86_64;
	s.e.e_version = EV_CURRENT;
	s.e.e_entry = 0x100;
	s.e.e_phoff = sizeof(s.e);
	s.e.e_phentsize = sizeof(Elf64_Phdr);
	s.e.e_phnum = 6;
	s.ph[TEXT] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, 0, 0, 0, 0x1800, 0x1800, 4096 };
	s.ph[DATA] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_W, 0x1e00, 0x2e00, 0x2e00, 0x400, 0x9000,
				   4096 };
	s.ph[PHDR] = (Elf64_Phdr){ PT_PHDR, PF_R, 64, 64, 64, 6 * 56, 6 * 56, 8 };
	s.ph[INTERP] = (Elf64_Phdr){ PT_INTERP, PF_R, 0x300, 0x300, 0x300, 28, 28, 1 };
	s.ph[STACK] = (Elf64_Phdr){ PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16 };
	s.ph[NOTE] = (Elf64_Phdr){ PT_NOTE, PF_R, 0x350, 0x350, 0x350, 0x20, 0x20, 8 };
	return s;
}

static int check(const struct sample *s, struct pvas_elf_image *img)
{
	int err = pvas_elf_check_ehdr(&s->e);

	return err ? err : pvas_elf_check_phdrs(&s->e, s->ph, s->size, img);
}

/* Apply the statements to a good program, and expect it to be refused. */
#define REFUSED(change)							\
	do {								\
		struct pvas_elf_image img = { .lo = 77 };		\
		struct sample s = good();				\
									\
		change;							\
		EXPECT_EQ(check(&s, &img), -ENOEXEC) TH_LOG("%s", #change);\
		EXPECT_EQ(img.lo, 77);					\
	} while (0)

#define ACCEPTED(change, img)						\
	do {								\
		struct sample s = good();				\
									\
		memset(&(img), 0, sizeof(img));				\
		change;							\
		EXPECT_EQ(check(&s, &(img)), 0) TH_LOG("%s", #change);	\
	} while (0)

TEST(good_program)
{
	struct pvas_elf_image img;

	ACCEPTED((void)s, img);
	EXPECT_EQ(img.lo, 0);
	EXPECT_EQ(img.hi, 0xc000);
	EXPECT_EQ(img.align, 4096);
	EXPECT_EQ(img.entry, 0x100);
	EXPECT_EQ(img.phdr, 64);
	EXPECT_EQ(img.interp_off, 0x300);
	EXPECT_EQ(img.interp_len, 28);
	EXPECT_EQ(img.stack_exec, 0);
}

TEST(elf_header)
{
	REFUSED(s.e.e_ident[0] = 0);
	REFUSED(s.e.e_ident[1] = 'e');
	REFUSED(s.e.e_ident[2] = 0);
	REFUSED(s.e.e_ident[3] = 0);
	REFUSED(s.e.e_ident[EI_CLASS] = ELFCLASS32);
	REFUSED(s.e.e_ident[EI_CLASS] = 0);
	REFUSED(s.e.e_ident[EI_DATA] = ELFDATA2MSB);
	REFUSED(s.e.e_ident[EI_VERSION] = 0);
	REFUSED(s.e.e_version = 2);
	REFUSED(s.e.e_type = ET_EXEC);
	REFUSED(s.e.e_type = ET_REL);
	REFUSED(s.e.e_type = ET_CORE);
	REFUSED(s.e.e_type = 0xffff);
	REFUSED(s.e.e_machine = EM_386);
	REFUSED(s.e.e_machine = EM_AARCH64);
	REFUSED(s.e.e_phentsize = 0);
	REFUSED(s.e.e_phentsize = 55);
	REFUSED(s.e.e_phentsize = 57);
	REFUSED(s.e.e_phnum = 0);
	REFUSED(s.e.e_phnum = PVAS_ELF_PHNUM_MAX + 1);
	REFUSED(s.e.e_phnum = PN_XNUM);
	REFUSED(s.e.e_phoff = -1ULL);
	REFUSED(s.e.e_phoff = -56ULL * 6);
	REFUSED(s.e.e_phoff = 1ULL << 63);
	REFUSED(s.e.e_phoff = (1ULL << 63) - 56);
	REFUSED(s.e.e_phoff = 0x3000);		/* past the end of the file */
	REFUSED(s.e.e_phoff = 0x3000 - 56 * 6 + 1);
}

TEST(entry)
{
	struct pvas_elf_image img;

	REFUSED(s.e.e_entry = 0x1800);		/* just past the text */
	REFUSED(s.e.e_entry = 0x2f00);		/* in the data */
	REFUSED(s.e.e_entry = -1ULL);
	REFUSED(s.ph[TEXT].p_flags = PF_R);	/* nothing executable */
	ACCEPTED(s.e.e_entry = 0x17ff, img);
	ACCEPTED(s.e.e_entry = 0, img);		/* the text's first byte: unusual, but it exists */
	REFUSED((s.ph[TEXT].p_vaddr = 0x1000, s.ph[TEXT].p_offset = 0,
		 s.ph[DATA].p_vaddr = 0x4e00, s.e.e_entry = 0));	/* a shared library */
}

TEST(segments)
{
	struct pvas_elf_image img;

	REFUSED((s.ph[TEXT].p_type = PT_NOTE, s.ph[DATA].p_type = PT_NOTE));
	REFUSED(s.ph[TEXT].p_filesz = 0x1801);	/* > p_memsz */
	REFUSED(s.ph[DATA].p_memsz = -1ULL);
	REFUSED(s.ph[DATA].p_memsz = -0x2e00ULL);
	REFUSED(s.ph[DATA].p_vaddr = (1ULL << 47) - 0x8fff);
	REFUSED(s.ph[DATA].p_vaddr = -0x1200ULL);
	REFUSED((s.ph[DATA].p_offset = -0x200ULL, s.ph[DATA].p_filesz = 0x300));
	REFUSED(s.ph[DATA].p_filesz = 0x1201);	/* one past the file */
	REFUSED(s.size = 0x21ff);
	REFUSED(s.ph[DATA].p_offset = 0x1e01);	/* not congruent */
	REFUSED(s.ph[DATA].p_align = 3);
	REFUSED(s.ph[DATA].p_align = 4097);
	REFUSED(s.ph[DATA].p_align = -1ULL);
	REFUSED((s.ph[DATA].p_vaddr = 0x1e00));	/* shares a page with the text */
	REFUSED({ Elf64_Phdr t = s.ph[0]; s.ph[0] = s.ph[1]; s.ph[1] = t; });
	ACCEPTED(s.size = 0x2200, img);
	ACCEPTED(s.ph[DATA].p_filesz = 0x1200, img);
	ACCEPTED(s.ph[DATA].p_align = 0, img);
	ACCEPTED(s.ph[DATA].p_align = 1, img);
}

TEST(bss_only_segment)
{
	struct pvas_elf_image img;

	/* Without bytes of the file: its offset does not matter. */
	ACCEPTED((s.ph[DATA].p_filesz = 0, s.ph[DATA].p_offset = -5ULL), img);
	EXPECT_EQ(img.hi, 0xc000);
	/* An empty segment maps nothing, whatever its address. */
	ACCEPTED((s.ph[DATA].p_filesz = 0, s.ph[DATA].p_memsz = 0, s.ph[DATA].p_vaddr = 5), img);
	EXPECT_EQ(img.hi, 0x2000);
}

TEST(span)
{
	struct pvas_elf_image img;

	ACCEPTED((s.ph[TEXT].p_vaddr += 0x400000, s.ph[DATA].p_vaddr += 0x400000,
		  s.e.e_entry += 0x400000), img);
	EXPECT_EQ(img.lo, 0x400000);
	EXPECT_EQ(img.hi, 0x40c000);
	/* PT_PHDR is wrong now: the headers are found by their file offset. */
	EXPECT_EQ(img.phdr, 0x400040);
	ACCEPTED(s.ph[DATA].p_vaddr = (1ULL << 47) - 0x9200, img);
	EXPECT_EQ(img.hi, 1ULL << 47);
}

TEST(alignment)
{
	struct pvas_elf_image img;

	ACCEPTED(s.ph[DATA].p_align = 0x10000, img);
	EXPECT_EQ(img.align, 0x10000);
	ACCEPTED(s.ph[TEXT].p_align = 2 * MIB, img);
	EXPECT_EQ(img.align, 2 * MIB);
	ACCEPTED(s.ph[TEXT].p_align = 1ULL << 63, img);
	EXPECT_EQ(img.align, 2 * MIB);
	ACCEPTED((s.ph[TEXT].p_align = 1, s.ph[DATA].p_align = 0), img);
	EXPECT_EQ(img.align, 4096);
}

TEST(phdr_vaddr)
{
	struct pvas_elf_image img;

	ACCEPTED(s.ph[PHDR].p_vaddr = 0x400, img);	/* moved by a packer */
	EXPECT_EQ(img.phdr, 0x400);
	ACCEPTED(s.ph[PHDR].p_vaddr = 0x900000, img);	/* wrong */
	EXPECT_EQ(img.phdr, 64);
	ACCEPTED(s.ph[PHDR].p_type = PT_NULL, img);
	EXPECT_EQ(img.phdr, 64);
	ACCEPTED((s.ph[PHDR].p_type = PT_NULL, s.e.e_phoff = 0x2300), img);
	EXPECT_EQ(img.phdr, 0);
}

TEST(interpreter)
{
	struct pvas_elf_image img;

	REFUSED(s.ph[INTERP].p_filesz = 0);
	REFUSED(s.ph[INTERP].p_filesz = 1);
	REFUSED(s.ph[INTERP].p_filesz = PATH_MAX + 1);
	REFUSED(s.ph[INTERP].p_offset = 0x3000 - 27);
	REFUSED(s.ph[INTERP].p_offset = -10ULL);
	REFUSED(s.ph[NOTE] = s.ph[INTERP]);	/* two */
	ACCEPTED(s.ph[INTERP].p_offset = 0x3000 - 28, img);
	ACCEPTED(s.ph[INTERP].p_type = PT_NULL, img);
	EXPECT_EQ(img.interp_len, 0);
}

TEST(interp_path)
{
	char path[PATH_MAX + 1];

	memset(path, 'a', sizeof(path));
	EXPECT_EQ(pvas_elf_check_interp_path("/lib/ld.so", 11), 0);
	EXPECT_EQ(pvas_elf_check_interp_path("ld.so", 6), 0);
	EXPECT_EQ(pvas_elf_check_interp_path("/lib/ld.so", 10), -ENOEXEC);
	EXPECT_EQ(pvas_elf_check_interp_path("\0\0", 2), -ENOEXEC);
	EXPECT_EQ(pvas_elf_check_interp_path("", 1), -ENOEXEC);
	EXPECT_EQ(pvas_elf_check_interp_path(path, 0), -ENOEXEC);
	EXPECT_EQ(pvas_elf_check_interp_path(path, PATH_MAX), -ENOEXEC);
	path[PATH_MAX - 1] = 0;
	EXPECT_EQ(pvas_elf_check_interp_path(path, PATH_MAX), 0);
	path[PATH_MAX] = 0;
	EXPECT_EQ(pvas_elf_check_interp_path(path, PATH_MAX + 1), -ENOEXEC);
}

TEST(exec_stack)
{
	struct pvas_elf_image img;

	ACCEPTED(s.ph[STACK].p_flags |= PF_X, img);
	EXPECT_EQ(img.stack_exec, 1);
	ACCEPTED(s.ph[STACK].p_type = PT_NULL, img);
	EXPECT_EQ(img.stack_exec, 0);
}

/* ---- real files, whole, truncated and with every header byte changed ---- */

static const char *const files[] = {
	"/bin/ls", "/bin/bash", "/bin/sh", "/usr/bin/env", "/lib64/ld-linux-x86-64.so.2",
};

static char *slurp(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *p;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	*len = (size_t)st.st_size;
	p = mmap(NULL, *len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static int check_bytes(const char *p, size_t len, struct pvas_elf_image *img)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)p;
	int err;

	if (len < sizeof(*e))
		return -ENOEXEC;
	err = pvas_elf_check_ehdr(e);
	if (err)
		return err;
	if (!pvas_elf_inside(e->e_phoff, pvas_elf_phdrs_size(e), 0, len))
		return -ENOEXEC;
	return pvas_elf_check_phdrs(e, (const Elf64_Phdr *)(p + e->e_phoff), len, img);
}

TEST(real_files)
{
	struct pvas_elf_image img;
	size_t i, len;
	char *p;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		p = slurp(files[i], &len);
		ASSERT_NE(p, NULL) TH_LOG("%s", files[i]);
		EXPECT_EQ(check_bytes(p, len, &img), 0) TH_LOG("%s", files[i]);
		EXPECT_NE(img.phdr, 0);
		EXPECT_EQ(check_bytes(p, 0x1000, &img), -ENOEXEC);
		EXPECT_EQ(check_bytes(p, 63, &img), -ENOEXEC);
		munmap(p, len);
	}
}

/* With any value in one byte, an accepted image still meets its guarantees. */
TEST(mutated_bytes)
{
	struct pvas_elf_image img;
	size_t len, at, end;
	char *p, was;
	int v, accepted = 0;

	p = slurp("/bin/ls", &len);
	ASSERT_NE(p, NULL);
	end = ((Elf64_Ehdr *)p)->e_phoff + pvas_elf_phdrs_size((Elf64_Ehdr *)p);
	for (at = 0; at < end; at++) {
		was = p[at];
		for (v = 0; v < 256; v++) {
			p[at] = (char)v;
			if (check_bytes(p, len, &img))
				continue;
			accepted++;
			if (img.lo >= img.hi || img.hi > PVAS_ELF_ADDR_MAX ||
			    (img.lo | img.hi) % 4096 || img.align < 4096 ||
			    img.align > PVAS_ELF_ALIGN_MAX || img.entry < img.lo ||
			    img.entry >= img.hi ||
			    (img.interp_len && img.interp_off + img.interp_len > len))
				ASSERT_EQ(at, (size_t)-1) TH_LOG("byte %zu = %d", at, v);
		}
		p[at] = was;
	}
	EXPECT_GT(accepted, 1000);
}

TEST_HARNESS_MAIN
