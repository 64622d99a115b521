// SPDX-License-Identifier: GPL-2.0-only
/*
 * CREATE without libpvas. The creator of a space may have private anonymous memory in
 * partition 0, and the vdso, but nothing else: this program is copied there for the tasks,
 * and a loop without a stack does the creator's last calls one by one. They unmap all else
 * and make the space; the ones that follow attack it.
 */
#include <elf.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/pvas.h>

#include "hostile.h"

#define STUB_AT		0x10000000UL
#define STEPS_AT	0x11000000UL
#define TABLE_AT	0x20000000UL
#define PROGRAM_AT	0x30000000UL
#define KEPT_END	0x38000000UL
#define TABLE_ENTRIES	8192UL
#define TABLE_LEN	(TABLE_ENTRIES * sizeof(struct pvas_part))
#define LOOP_OFFSET	64
#define MAX_STEPS	48
#define USER_END	((1UL << 47) - PAGE)

/* In partition 0, where the creator's program is no more. */
struct steps {
	struct op_entry step[MAX_STEPS];
	struct pvas_create create;
	struct pvas_spawn spawn;
	struct pvas_destroy destroy;
	char key[16], path[16];
	char *argv[2];
	uint64_t pause[2];
	unsigned int n;
};

extern const char __ehdr_start[], _end[], hostile_steps[], hostile_steps_end[];
__asm__(".pushsection .rodata\n"
	"hostile_steps:\n"
	"1:	mov (%rbx), %rax\n"
	"	mov 8(%rbx), %rdi\n"
	"	mov 16(%rbx), %rsi\n"
	"	mov 24(%rbx), %rdx\n"
	"	mov 32(%rbx), %r10\n"
	"	mov 40(%rbx), %r8\n"
	"	mov 48(%rbx), %r9\n"
	"	syscall\n"
	"	mov %rax, 56(%rbx)\n"
	"	add $64, %rbx\n"
	"	jmp 1b\n"
	"hostile_steps_end:\n"
	".popsection\n");
_Static_assert(offsetof(struct op_entry, ret) == 56, "the loop stores there");
_Static_assert(sizeof(struct op_entry) == 64, "the loop goes on there");

static void *map_at(uint64_t at, size_t len)
{
	long p = raw6(SYS_mmap, at, len, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return p == (long)at ? (void *)p : NULL;
}

static struct op_entry *add(struct steps *s, uint64_t nr, uint64_t a, uint64_t b, uint64_t c,
			    uint64_t d)
{
	struct op_entry *step = &s->step[s->n < MAX_STEPS - 1 ? s->n++ : s->n];

	*step = (struct op_entry){ .nr = nr, .args = { a, b, c, d }, .ret = 1 };
	return step;
}

/* ---- the program of the tasks ---- */

static void relocate(uintptr_t old, uintptr_t new, const Elf64_Rela *rela, size_t n)
{
	for (; n--; rela++)
		if (ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE ||
		    ELF64_R_TYPE(rela->r_info) == R_X86_64_IRELATIVE)
			*(uintptr_t *)(new + rela->r_offset) += new - old;
}

/* As libc has left it at its start, the table's addresses may be absolute or not. */
static void relocate_all(uintptr_t old, uintptr_t new, const Elf64_Dyn *dyn)
{
	uintptr_t rela = 0, plt = 0;
	size_t len = 0, plt_len = 0;

	for (; dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_RELA: rela = dyn->d_un.d_ptr; break;
		case DT_RELASZ: len = dyn->d_un.d_val; break;
		case DT_JMPREL: plt = dyn->d_un.d_ptr; break;
		case DT_PLTRELSZ: plt_len = dyn->d_un.d_val; break;
		}
	}
	rela += rela < old ? old : 0;
	plt += plt < old ? old : 0;
	relocate(old, new, (const Elf64_Rela *)rela, len / sizeof(Elf64_Rela));
	/* Some linkers have it in the other table, too. */
	if (plt_len && (plt < rela || plt >= rela + len))
		relocate(old, new, (const Elf64_Rela *)plt, plt_len / sizeof(Elf64_Rela));
}

/* Copies this program to partition 0; where @entry is then, or 0. */
static uintptr_t copy_program(const void *entry)
{
	uintptr_t old = (uintptr_t)__ehdr_start;
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)old;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(old + head->e_phoff), *dyn = NULL;
	unsigned int i;

	if (!map_at(PROGRAM_AT, (_end - __ehdr_start + PAGE) & ~(PAGE - 1)))
		return 0;
	for (i = 0; i < head->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD)
			memcpy((char *)PROGRAM_AT + ph[i].p_vaddr, (char *)old + ph[i].p_vaddr,
			       ph[i].p_memsz);
		if (ph[i].p_type == PT_DYNAMIC)
			dyn = &ph[i];
	}
	if (!dyn)
		return 0;
	relocate_all(old, PROGRAM_AT, (const Elf64_Dyn *)(old + dyn->p_vaddr));
	return PROGRAM_AT + ((uintptr_t)entry - old);
}

/* Without an entry: exit_group(STUB_EXIT), to be seen by whose program it is. */
static bool write_stub(unsigned char *at, const void *entry)
{
	static const unsigned char leave[] = {
		0xb8, 231, 0, 0, 0, 0xbf, STUB_EXIT, 0, 0, 0, 0x0f, 0x05,
	};
	uintptr_t copy = entry ? copy_program(entry) : 0;

	memcpy(at + LOOP_OFFSET, hostile_steps, hostile_steps_end - hostile_steps);
	if (!entry) {
		memcpy(at, leave, sizeof(leave));
		return true;
	}
	at[0] = 0x48;		/* movabs $copy, %rax; call *%rax */
	at[1] = 0xb8;
	memcpy(at + 2, &copy, 8);
	at[10] = 0xff;
	at[11] = 0xd0;
	return copy;
}

/* ---- the steps ---- */

static bool is_kept(const struct map_line *line)
{
	return line->start >= STUB_AT && line->end <= KEPT_END;
}

static void add_unmaps(struct steps *s)
{
	static char buf[1 << 16];
	struct map_line line;
	uint64_t from = PAGE;
	char *at = buf;

	read_proc("/proc/self/maps", buf, sizeof(buf));
	while (next_map(&at, &line)) {
		if (line.start >= USER_END || (!is_kept(&line) && !line.special && !line.vdso))
			continue;
		if (line.start > from)
			add(s, SYS_munmap, from, line.start - from, 0, 0);
		from = line.end;
	}
	add(s, SYS_munmap, from, USER_END - from, 0, 0);
}

static void add_mm_attack(struct actor *a, struct steps *s)
{
	uint64_t far = (uint64_t)(1 + pick(a, 8)) << PVAS_SHIFT_DEFAULT;
	unsigned int rights = PROT_READ | PROT_WRITE, map = MAP_PRIVATE | MAP_ANONYMOUS;
	static const int advice[] = { MADV_DONTNEED, MADV_MERGEABLE, MADV_HUGEPAGE, MADV_FREE,
				      MADV_POPULATE_WRITE, MADV_DOFORK };

	switch (pick(a, 8)) {
	case 0: add(s, SYS_mmap, far, 4 * PAGE, rights, map | MAP_FIXED | MAP_POPULATE); break;
	case 1: add(s, SYS_mmap, 0, 64 << 20, rights, map | MAP_POPULATE); break;
	case 2: add(s, SYS_brk, PROGRAM_AT + (16 << 20), 0, 0, 0); break;
	case 3: add(s, SYS_mremap, TABLE_AT, TABLE_LEN, 64 << 20, MREMAP_MAYMOVE); break;
	case 4: add(s, SYS_munmap, TABLE_AT, PAGE * pick(a, 64), 0, 0); break;
	case 5: add(s, SYS_mlockall, 1 + pick(a, 3), 0, 0, 0); break;
	case 6: add(s, SYS_mprotect, TABLE_AT, TABLE_LEN, pick(a, 8), 0); break;
	default:
		add(s, SYS_madvise, pick(a, 2) ? TABLE_AT : PROGRAM_AT, TABLE_LEN,
		    advice[pick(a, ARRAY(advice))], 0);
	}
}

/* A child or thread goes on with the steps, too: none of them needs a stack. */
static void add_clone(struct actor *a, struct steps *s)
{
	static const unsigned int flags[] = {
		17, CLONE_VM | 17, CLONE_VM | CLONE_VFORK | 17, CLONE_VFORK | 17,
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
		CLONE_NEWTIME | 17, CLONE_NEWUSER | 17,
	};

	add(s, SYS_clone, flags[pick(a, ARRAY(flags))], 0, 0, 0);
}

static void add_attack(struct actor *a, struct steps *s, int fd)
{
	switch (pick(a, 10)) {
	case 0: add_clone(a, s); break;
	case 1: add(s, SYS_ioctl, fd, PVAS_IOC_SPAWN, (uintptr_t)&s->spawn, 0); break;
	case 2: add(s, SYS_ioctl, fd, PVAS_IOC_DESTROY, (uintptr_t)&s->destroy, 0); break;
	case 3: add(s, SYS_unshare, pick(a, 2) ? CLONE_NEWTIME : CLONE_NEWUSER, 0, 0, 0); break;
	case 4: add(s, SYS_setresuid, 1000 + pick(a, 2), -1, -1, 0); break;
	case 5:
		add(s, SYS_execve, (uintptr_t)s->path, (uintptr_t)s->argv, (uintptr_t)&s->argv[1],
		    0);
		break;
	case 6: add(s, SYS_nanosleep, (uintptr_t)s->pause, 0, 0, 0); break;
	default: add_mm_attack(a, s);
	}
}

static void fill(struct actor *a, struct steps *s, int fd, const char *key)
{
	s->create = (struct pvas_create){
		.size = sizeof(s->create), .shift = PVAS_SHIFT_DEFAULT, .loader = STUB_AT,
		.table = TABLE_AT, .table_entries = TABLE_ENTRIES,
		.flags = pick(a, 3) ? PVAS_CREATE_KILL_ON_CLOSE : 0,
	};
	if (key) {
		s->create.flags = PVAS_CREATE_KEY;
		s->create.key = (uintptr_t)strcpy(s->key, key);
		s->create.key_len = strlen(key);
	}
	s->spawn = (struct pvas_spawn){ .size = sizeof(s->spawn), .flags = PVAS_SPAWN_ANY };
	s->destroy = (struct pvas_destroy){ .size = sizeof(s->destroy), .flags = pick(a, 2) };
	strcpy(s->path, "/bin/true");
	s->argv[0] = s->path;
	s->pause[1] = 20000000;
	/* The kernel writes into it whenever it likes. */
	add(s, SYS_rseq, (uintptr_t)__builtin_thread_pointer() + __rseq_offset, 32,
	    RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
	add_unmaps(s);
	add(s, SYS_ioctl, fd, PVAS_IOC_CREATE, (uintptr_t)&s->create, 0);
	/* By this the board counts the spaces. */
	add(s, SYS_pwrite64, BOARD_FD, (uintptr_t)&s->step[s->n - 1], sizeof(s->step[0]),
	    log_slot(a) + offsetof(struct op_log, create));
}

void raw_create(struct actor *a, int fd, const char *key, const void *entry, unsigned int attacks)
{
	unsigned char *stub = map_at(STUB_AT, PAGE);
	struct steps *s = map_at(STEPS_AT, 2 * PAGE);
	unsigned int i, first;

	if (!stub || !s || !map_at(TABLE_AT, TABLE_LEN) || !write_stub(stub, entry))
		return;
	a->pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	note(a, N_CREATE, fd);
	fill(a, s, fd, key);
	first = s->n;
	for (i = 0; i < attacks; i++)
		add_attack(a, s, fd);
	for (i = first; i < s->n; i++)
		log_entry(a, &s->step[i]);
	if (attacks && !pick(a, 4))
		add(s, SYS_pause, 0, 0, 0, 0);
	add(s, SYS_exit_group, 0, 0, 0, 0);
	__asm__ volatile("mov %0, %%rbx\n\tjmp *%1" : :
			 "r"(s->step), "r"(stub + LOOP_OFFSET) : "memory");
	__builtin_unreachable();
}
