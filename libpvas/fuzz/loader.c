// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzz the ELF checks and the loader's mapping (kmod/pvas_elf.h, loader/map.c).
 *
 * An input is the beginning of a file. Its last byte gives the number of zeros that
 * follow, so that small inputs can have large segments. This file simulates the
 * system: it keeps one range, that of a reservation or of the place that is given, lets only
 * the call fail that the last but one byte chooses, and aborts if the loader
 *  - touches an address outside this range,
 *  - maps twice, where nothing is reserved, or leaves something when it fails there,
 *  - maps a part of the file that does not exist, or
 *  - zeroes memory that is not writable.
 * Small spans are really built, and then compared, byte by byte, with the program
 * headers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/map.h"
#include "loader/sys.h"

#define REQUIRE(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			abort();					\
		}							\
	} while (0)

#define PAGE		4096ULL
#define ARENA		(1ULL << 20)
#define JUNK		0xaa		/* what reserved, unmapped pages hold */
#define ANYWHERE	0x7000000000ULL	/* where mmap() without an address goes */

/* The file */
static const uint8_t *data;
static uint64_t data_len, file_size;

/* The address space: one range, the protection of its pages, and its bytes if small */
static uint64_t res_lo, res_hi;
static uint8_t *arena;
static uint8_t rights[ARENA / PAGE];
static int calls, fail_at;
static int keeps;		/* an munmap() has failed */

#define MAPPED 0x80

static int small(void)
{
	return res_hi - res_lo <= ARENA;
}

static uint8_t *at(uint64_t addr)
{
	return arena + (addr - res_lo);
}

static uint8_t *page_rights(uint64_t addr)
{
	return &rights[(addr - res_lo) / PAGE];
}

static void require_inside(uint64_t addr, uint64_t len)
{
	REQUIRE(addr % PAGE == 0 && len % PAGE == 0 && len);
	REQUIRE(addr >= res_lo && addr < res_hi && len <= res_hi - addr);
}

static int fails(void)
{
	return ++calls == fail_at;
}

/* ---- the system ---- */

static int out_of_range(uint64_t addr, uint64_t len)
{
	return addr + len > PVAS_ELF_ADDR_MAX || addr + len < addr;
}

static void begin_range(uint64_t lo, uint64_t len)
{
	res_lo = lo;
	res_hi = lo + len;
	if (small()) {
		memset(arena, JUNK, len);
		memset(rights, 0, len / PAGE);
	}
}

static uint64_t reserve(uint64_t len, int flags)
{
	uint64_t addr = ANYWHERE + PAGE * (data_len % 777);

	REQUIRE(res_lo == res_hi);	/* one reservation for each object */
	REQUIRE(flags & MAP_NORESERVE);
	REQUIRE(len && len % PAGE == 0);
	if (out_of_range(addr, len))
		return (uint64_t)-ENOMEM;
	begin_range(addr, len);
	return addr;
}

static void require_free(uint64_t addr, uint64_t len)
{
	uint64_t page;

	for (page = addr; small() && page < addr + len; page += PAGE)
		REQUIRE(!(*page_rights(page) & MAPPED));
}

static void fill_file(uint64_t addr, uint64_t len, uint64_t off)
{
	uint64_t n = off < data_len ? data_len - off : 0;

	if (n > len)
		n = len;
	if (n)
		memcpy(at(addr), data + off, n);
	memset(at(addr) + n, 0, len - n);
}

__u64 pvas_sys_mmap(__u64 addr, __u64 len, int prot, int flags, __u64 fd, __u64 off)
{
	REQUIRE(flags & MAP_PRIVATE);
	if (fails())
		return (__u64)-ENOMEM;
	if (!addr)
		return reserve(len, flags);
	if (out_of_range(addr, len))
		return (uint64_t)-ENOMEM;
	require_inside(addr, len);
	REQUIRE(!(flags & MAP_FIXED) != !(flags & MAP_FIXED_NOREPLACE));
	if (flags & MAP_FIXED_NOREPLACE)
		require_free(addr, len);
	if (flags & MAP_ANONYMOUS) {
		REQUIRE((int)fd == -1);
	} else {
		REQUIRE((int)fd == 3 && off % PAGE == 0);
		/* Each page holds at least one byte of the file: no SIGBUS. */
		REQUIRE(off < file_size && len - PAGE < file_size - off);
	}
	if (!small())
		return addr;
	memset(page_rights(addr), prot | MAPPED, len / PAGE);
	if (flags & MAP_ANONYMOUS)
		memset(at(addr), 0, len);
	else
		fill_file(addr, len, off);
	return addr;
}

int pvas_sys_munmap(__u64 addr, __u64 len)
{
	require_inside(addr, len);
	if (fails()) {
		keeps = 1;
		return -ENOMEM;
	}
	if (small()) {
		memset(page_rights(addr), 0, len / PAGE);
		memset(at(addr), JUNK, len);
	}
	return 0;
}

int pvas_sys_mprotect(__u64 addr, __u64 len, int prot)
{
	require_inside(addr, len);
	REQUIRE(len == PAGE);
	if (fails())
		return -EACCES;
	if (small()) {
		REQUIRE(*page_rights(addr) & MAPPED);
		*page_rights(addr) = (uint8_t)(prot | MAPPED);
	}
	return 0;
}

void pvas_sys_zero(__u64 addr, __u64 len)
{
	REQUIRE(len && len < PAGE && (addr + len) % PAGE == 0);
	require_inside(addr & ~(PAGE - 1), PAGE);
	if (small()) {
		REQUIRE(*page_rights(addr) & PROT_WRITE);
		memset(at(addr), 0, len);
	}
}

long pvas_sys_pread(int fd, void *buf, __u64 len, __u64 off)
{
	uint64_t n = off < data_len ? data_len - off : 0;

	REQUIRE((int)fd == 3 && !(off >> 63));
	if (off >= file_size)
		return 0;
	if (len > file_size - off)
		len = file_size - off;
	if (n > len)
		n = len;
	if (n)
		memcpy(buf, data + off, n);
	memset((char *)buf + n, 0, len - n);
	return (long)len;
}

long pvas_sys_size(int fd)
{
	REQUIRE(fd == 3);
	return (long)file_size;
}

/* ---- the oracle ---- */

static int all_zero(const uint8_t *p, uint64_t n)
{
	return !n || (!*p && !memcmp(p, p + 1, n - 1));
}

static void check_segment(const struct pvas_object *o, const Elf64_Phdr *p)
{
	uint64_t addr = o->bias + p->p_vaddr;
	uint64_t n = p->p_offset < data_len ? data_len - p->p_offset : 0;
	uint64_t page;
	int want = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
		   (p->p_flags & PF_X ? PROT_EXEC : 0);

	for (page = addr & ~(PAGE - 1); page < addr + p->p_memsz; page += PAGE)
		REQUIRE(*page_rights(page) == (want | MAPPED));
	if (n > p->p_filesz)
		n = p->p_filesz;
	REQUIRE(!n || !memcmp(at(addr), data + p->p_offset, n));
	REQUIRE(all_zero(at(addr) + n, p->p_memsz - n));
}

static void check_object(const struct pvas_object *o)
{
	uint64_t page, mapped = 0, wanted = 0;
	unsigned int i;

	REQUIRE(o->bias % o->image.align == 0);
	REQUIRE(o->bias + o->image.lo >= res_lo && o->bias + o->image.hi <= res_hi);
	if (!small())
		return;
	for (i = 0; i < o->head.e_phnum; i++) {
		const Elf64_Phdr *p = &o->ph[i];

		if (p->p_type != PT_LOAD || !p->p_memsz)
			continue;
		check_segment(o, p);
		wanted += (((p->p_vaddr & (PAGE - 1)) + p->p_memsz + PAGE - 1) / PAGE);
	}
	/* Nothing else is mapped, apart from reserved pages. */
	for (page = res_lo; page < res_hi; page += PAGE)
		mapped += !!*page_rights(page);
	REQUIRE(mapped == wanted);
}

static void reset(void)
{
	res_lo = res_hi = 0;
	calls = keeps = 0;
}

static void map_at(struct pvas_object *o)
{
	uint64_t lo, hi, page;
	int err;

	/* As the module does: somewhere in a partition, aligned as required. */
	o->bias = 0x6400000000ULL - (o->image.lo & ~(o->image.align - 1));
	lo = o->bias + o->image.lo;
	hi = o->bias + o->image.hi;
	begin_range(lo, hi - lo);
	err = pvas_object_map_at(o);
	REQUIRE(err <= 0);
	if (!err)
		check_object(o);
	for (page = lo; err && !keeps && small() && page < hi; page += PAGE)
		REQUIRE(!*page_rights(page));
}

static void map_twice(struct pvas_object *o)
{
	char path[PATH_MAX];
	int err;

	if (o->image.interp_len && !pvas_object_interp(o, path))
		REQUIRE(strlen(path) < PATH_MAX);
	reset();
	map_at(o);
	reset();
	err = pvas_object_map_anywhere(o);
	REQUIRE(err <= 0);
	if (!err)
		check_object(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
	static Elf64_Phdr ph[PVAS_ELF_PHNUM_MAX];
	struct pvas_object o = { .fd = 3, .ph = ph };

	if (len < 2)
		return 0;
	if (!arena)
		arena = malloc(ARENA);
	data = input;
	data_len = len - 2;
	file_size = data_len + (uint64_t)input[len - 1] * 5000;
	fail_at = input[len - 2];
	if (!pvas_object_read(&o))
		map_twice(&o);
	return 0;
}

#ifdef REPLAY
/* Without libFuzzer: run the files in argv. */
int main(int argc, char **argv)
{
	static uint8_t buf[1 << 20];
	int i;

	for (i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "re");
		size_t n;
		uint8_t *exact;

		REQUIRE(f);
		n = fread(buf, 1, sizeof(buf), f);
		fclose(f);
		exact = malloc(n);	/* of that size, so that ASan sees overruns */
		memcpy(exact, buf, n);
		LLVMFuzzerTestOneInput(exact, n);
		free(exact);
	}
	printf("libpvas fuzz corpus: %d inputs replayed\n", argc - 1);
	return 0;
}
#endif
