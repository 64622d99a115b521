// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Run a program through the loader without the module: simulate the kernel.
 *
 *	run_loader [--misalign | --occupy | --nostack | --noaux | --late | --never]
 *		   program [argument...]
 *
 * It maps a partition, a space header and the blob into this process, builds a stack
 * with struct pvas_start as the module would, and jumps to the loader. There are no
 * bounds: the kernel chooses the addresses of the interpreter and of all that the
 * program maps. Everything else is as in a task.
 *
 * --misalign	give a load bias that the program's alignment forbids
 * --occupy	map a page in the program's span first
 * --nostack	don't pass the bounds of the stack
 * --noaux	no AT_EXECFD
 * --late	complete the space header some time after the jump
 * --never	don't complete it
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../kmod/pvas_elf.h"
#include "header.h"
#include "loader/blob.h"
#include "rseq.h"

#define SHIFT		36
#define INDEX		100
#define GEN		5
#define BASE		((uint64_t)INDEX << SHIFT)
#define STACK_TOP	(BASE + (1ULL << SHIFT))
#define STACK_SIZE	(8UL << 20)
#define HEADER		0x10000000UL
#define LOADER		0x0f000000UL

static int misalign, occupy, nostack, noaux, late, never;

static void *map_at(uint64_t at, size_t len, int prot)
{
	void *p = mmap((void *)at, len, prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("run_loader: mmap");
		exit(125);
	}
	return p;
}

#define LATE_STACK	65536

static int publish_late(void *h)
{
	usleep(200000);
	pvas_header_publish(h, 7, 1, 2046);
	return 0;
}

/* As the creator of a space that is found by its key: a process that shares this memory. */
static void publish(struct pvas_header *h)
{
	char *stack;

	if (never)
		return;
	if (!late) {
		pvas_header_publish(h, 7, 1, 2046);
		return;
	}
	stack = malloc(LATE_STACK);
	if (!stack || clone(publish_late, stack + LATE_STACK, CLONE_VM, h) < 0)
		exit(125);
}

static struct pvas_header *make_header(void)
{
	size_t len = pvas_header_length(pvas_header_entries(SHIFT));
	struct pvas_header *h = map_at(HEADER, len, PROT_READ | PROT_WRITE);
	struct pvas_part *part;

	pvas_header_init(h, SHIFT);
	madvise(h, len, MADV_WIPEONFORK);
	publish(h);
	part = pvas_header_part(h, INDEX);
	part->gen = GEN;
	part->pid = getpid();
	part->state = PVAS_PART_RUNNING;
	return h;
}

static void make_loader(void)
{
	size_t len = pvas_blob_end - pvas_blob;
	char *p = map_at(LOADER, (len + 4095) & ~4095UL, PROT_READ | PROT_WRITE);

	memcpy(p, pvas_blob, len);
	mprotect(p, (len + 4095) & ~4095UL, PROT_READ | PROT_EXEC);
}

/* The module's decision. A bad file gets the default, because the loader is tested. */
static uint64_t choose_load(int fd)
{
	struct pvas_elf_image img = { .lo = 0, .hi = 4096, .align = 4096 };
	Elf64_Phdr ph[PVAS_ELF_PHNUM_MAX];
	uint64_t at = BASE + (2UL << 20);
	struct stat st;
	Elf64_Ehdr e;

	if (!fstat(fd, &st) && pread(fd, &e, sizeof(e), 0) == sizeof(e) &&
	    !pvas_elf_check_ehdr(&e) &&
	    pread(fd, ph, pvas_elf_phdrs_size(&e), (off_t)e.e_phoff) > 0)
		pvas_elf_check_phdrs(&e, ph, (uint64_t)st.st_size, &img);
	if (misalign)
		at += 4096;
	if (occupy)
		map_at(at + img.hi - img.lo - 4096, 4096, PROT_NONE);
	return at - (img.lo & ~(img.align - 1));
}

/* ---- the stack, from the top down ---- */

static char *sp;

static void *push(const void *data, size_t len)
{
	sp -= len;
	memcpy(sp, data, len);
	return sp;
}

static char *push_string(const char *s)
{
	return push(s, strlen(s) + 1);
}

static uint64_t *push_strings(char **strings, uint64_t *out)
{
	for (; *strings; strings++)
		*out++ = (uint64_t)push_string(*strings);
	*out++ = 0;
	return out;
}

static uint64_t *add_aux(uint64_t *out, uint64_t type, uint64_t value)
{
	*out++ = type;
	*out++ = value;
	return out;
}

static int inherited(uint64_t type)
{
	switch (type) {
	case AT_PHDR: case AT_PHENT: case AT_PHNUM: case AT_ENTRY: case AT_BASE:
	case AT_EXECFN: case AT_RANDOM: case AT_PLATFORM: case AT_NULL:
		return 0;
	}
	return 1;
}

/* This process's, but with garbage in the entries that the loader must fill in. */
static uint64_t *make_auxv(uint64_t *out, const struct pvas_start *start, const char *program)
{
	char random[16];
	uint64_t aux[2];
	int fd = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);

	while (read(fd, aux, sizeof(aux)) == sizeof(aux))
		if (inherited(aux[0]))
			out = add_aux(out, aux[0], aux[1]);
	close(fd);
	if (getrandom(random, sizeof(random), 0) < 0)
		exit(125);
	out = add_aux(out, AT_PHDR, 0x1111);
	out = add_aux(out, AT_PHENT, 0x2222);
	out = add_aux(out, AT_PHNUM, 0x3333);
	out = add_aux(out, AT_ENTRY, 0x4444);
	out = add_aux(out, AT_BASE, 0x5555);
	out = add_aux(out, AT_EXECFN, (uint64_t)push_string(program));
	out = add_aux(out, AT_RANDOM, (uint64_t)push(random, sizeof(random)));
	out = add_aux(out, AT_PLATFORM, (uint64_t)push_string("x86_64"));
	if (!noaux)
		out = add_aux(out, AT_EXECFD, (uint64_t)start->exec_fd);
	out = add_aux(out, AT_PVAS, (uint64_t)start);
	return add_aux(out, AT_NULL, 0);
}

static uint64_t *make_stack(struct pvas_start *start, char **argv, char **envp)
{
	static uint64_t words[65536];
	uint64_t *out = words;
	struct pvas_start *up;
	size_t len;
	int argc = 0;

	sp = (char *)map_at(STACK_TOP - STACK_SIZE, STACK_SIZE, PROT_READ | PROT_WRITE);
	if (!nostack) {
		start->stack_lo = STACK_TOP - STACK_SIZE;
		start->stack_hi = STACK_TOP;
	}
	sp += STACK_SIZE;
	up = push(start, sizeof(*start));
	while (argv[argc])
		argc++;
	*out++ = (uint64_t)argc;
	out = push_strings(argv, out);
	out = push_strings(envp, out);
	out = make_auxv(out, up, argv[0]);
	len = (char *)out - (char *)words;
	sp = (char *)(((uint64_t)sp - len) & ~15UL);
	return memcpy(sp, words, len);
}

static void __attribute__((noreturn)) jump(uint64_t entry, void *stack, struct pvas_start *start)
{
	/* Garbage where a program might read it: the loader must clear it; none in its arguments */
	__asm__ volatile("movq %0, %%rsp\n\tmovq $-1, %%r14\n\tmovq $-1, %%r15\n\tjmpq *%1"
			 : : "a"(stack), "b"(entry), "D"(start), "d"(0), "c"(0)
			 : "memory", "r14", "r15");
	__builtin_unreachable();
}

static char **options(char **argv)
{
	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		misalign |= !strcmp(*argv, "--misalign");
		occupy |= !strcmp(*argv, "--occupy");
		nostack |= !strcmp(*argv, "--nostack");
		noaux |= !strcmp(*argv, "--noaux");
		late |= !strcmp(*argv, "--late");
		never |= !strcmp(*argv, "--never");
	}
	return argv;
}

int main(int argc, char **argv, char **envp)
{
	struct pvas_start start = {
		.size = sizeof(start), .id = 7, .index = INDEX, .shift = SHIFT, .gen = GEN,
	};
	uint64_t *stack;

	argv = options(argv);
	if (argc < 2 || !*argv)
		return 125;
	start.exec_fd = open(*argv, O_RDONLY | O_CLOEXEC);
	if (start.exec_fd < 0) {
		perror(*argv);
		return 125;
	}
	start.table = make_header()->table;
	start.load = choose_load(start.exec_fd);
	make_loader();
	stack = make_stack(&start, argv, envp);
	pvas_rseq_unregister();
	jump(LOADER + PVAS_BLOB_TASK, stack,
	     (struct pvas_start *)(STACK_TOP - sizeof(struct pvas_start)));
}
