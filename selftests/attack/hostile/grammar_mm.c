// SPDX-License-Identifier: GPL-2.0-only
/*
 * All calls that change mappings, at all addresses. Not here: calls that store
 * to an address (any task may store anywhere in its space), and those that act
 * on the whole mm by design (mlockall, PR_SET_MDWE: see doc/reliability.md).
 */
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

#define NR_MSEAL		462
#define NR_MAP_SHADOW_STACK	453
#define NR_HOME_NODE		450
#define PR_SET_VMA_		0x53564d41

enum arg {
	END, ADDR, LEN, PROT, ADVICE, MREMAP, MAPFLAGS, FD, ZERO, NUL, SMALL, OUT, SHMFLAGS, SHMID,
	MSYNC, POLICY, MINUS1, MASK, ONE,
};

static const struct mm_call {
	unsigned int nr;
	unsigned int weight;
	unsigned char args[6];
} calls[] = {
	{ SYS_munmap,		6, { ADDR, LEN } },
	{ SYS_mremap,		8, { ADDR, LEN, LEN, MREMAP, ADDR } },
	{ SYS_mprotect,		6, { ADDR, LEN, PROT } },
	{ SYS_pkey_mprotect,	2, { ADDR, LEN, PROT, MINUS1 } },
	{ SYS_madvise,		8, { ADDR, LEN, ADVICE } },
	{ SYS_mlock,		6, { ADDR, LEN } },
	{ SYS_mlock2,		3, { ADDR, LEN, ONE } },
	{ SYS_munlock,		3, { ADDR, LEN } },
	{ SYS_mbind,		3, { ADDR, LEN, POLICY, MASK, SMALL, SMALL } },
	{ NR_HOME_NODE,		2, { ADDR, LEN, ZERO, ZERO } },
	{ SYS_brk,		3, { ADDR } },
	{ SYS_remap_file_pages, 3, { ADDR, LEN, ZERO, SMALL, ZERO } },
	{ SYS_mmap,		10, { ADDR, LEN, PROT, MAPFLAGS, MINUS1, ZERO } },
	{ SYS_mmap,		3, { ADDR, LEN, PROT, MAPFLAGS, FD, ZERO } },
	{ SYS_shmat,		2, { SHMID, ADDR, SHMFLAGS } },
	{ SYS_shmdt,		3, { ADDR } },
	{ NR_MSEAL,		3, { ADDR, LEN, ZERO } },
	{ SYS_io_setup,		3, { SMALL, OUT } },
	{ NR_MAP_SHADOW_STACK,	2, { ADDR, LEN, ZERO } },
	{ SYS_move_pages,	1, { ZERO, ONE, OUT, NUL, OUT, ZERO } },
	{ SYS_msync,		2, { ADDR, LEN, MSYNC } },
	{ SYS_mincore,		1, { ADDR, LEN, OUT } },
	{ SYS_process_madvise,	2, { FD, OUT, ONE, ADVICE, ZERO } },
};

static const unsigned int advices[] = {
	MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK,
	MADV_KEEPONFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_MERGEABLE, MADV_DONTDUMP, MADV_COLD,
	MADV_PAGEOUT, MADV_DONTNEED, MADV_DONTNEED, 22, 23, 24, 25, 102, 103, MADV_SEQUENTIAL,
};

static const unsigned int mapflags[] = {
	MAP_FIXED, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_GROWSDOWN, MAP_GROWSDOWN | MAP_FIXED,
	MAP_32BIT, MAP_LOCKED, MAP_POPULATE, MAP_NORESERVE, MAP_HUGETLB, 0, MAP_STACK,
};

static uint64_t value(struct actor *a, enum arg arg)
{
	switch (arg) {
	case ADDR:	return any_addr(a);
	case LEN:	return any_len(a);
	case PROT:	return pick(a, 8) ? pick(a, 8) : pick(a, 1 << 27);
	case ADVICE:	return advices[pick(a, ARRAY(advices))];
	case MREMAP:	return pick(a, 8);
	case MAPFLAGS:
		return mapflags[pick(a, ARRAY(mapflags))] |
		       (pick(a, 4) ? MAP_PRIVATE : MAP_SHARED) | (pick(a, 5) ? MAP_ANONYMOUS : 0);
	case FD:	return any_fd(a);
	case SMALL:	return pick(a, 5);
	case OUT:	return (uintptr_t)a->scratch;
	case SHMFLAGS:	return pick(a, 2) ? 040000 : pick(a, 8) << 12;
	case SHMID:	return raw6(SYS_shmget, IPC_PRIVATE, PAGE, IPC_CREAT | 0600, 0, 0, 0);
	case MSYNC:	return 1 + pick(a, 7);
	case POLICY:	return pick(a, 6);
	case MASK:	return (uintptr_t)a->scratch + 2 * PAGE;
	case MINUS1:	return -1;
	case ONE:	return 1;
	default:	return 0;
	}
}

/* By int 0x80 a call can name the low 4 GiB only. */
static void call_int80(struct actor *a, const uint64_t arg[6])
{
	static const unsigned int numbers[] = {
		91 /* munmap */, 125 /* mprotect */, 163 /* mremap */, 219 /* madvise */,
		150 /* mlock */, 45 /* brk */, 245 /* io_setup */, 192 /* mmap2 */,
	};
	unsigned int nr = numbers[pick(a, ARRAY(numbers))];
	long ret;

	note(a, N_INT80, nr);
	__asm__ volatile("int $0x80" : "=a"(ret)
			 : "a"((uint64_t)nr), "b"(arg[0]), "c"(arg[1]), "d"(arg[2]), "S"(arg[3]),
			   "D"(arg[4]) : "r8", "r9", "r10", "r11", "memory");
}

static const struct mm_call *choose(struct actor *a)
{
	unsigned int i, sum = 0, at;

	for (i = 0; i < ARRAY(calls); i++)
		sum += calls[i].weight;
	at = pick(a, sum);
	for (i = 0; at >= calls[i].weight; i++)
		at -= calls[i].weight;
	return &calls[i];
}

static void forget_shm(uint64_t id)
{
	raw6(SYS_shmctl, id, IPC_RMID, 0, 0, 0, 0);
}

/* The kernel looks at the low half of rax only, and so must whoever bounds calls. */
void op_mm(struct actor *a)
{
	const struct mm_call *c = choose(a);
	uint64_t arg[6], nr = c->nr;
	unsigned int i;

	/* Anything with an address outside of the arena is to be refused, if it is not brk. */
	for (i = 0; i < 6; i++)
		arg[i] = value(a, c->args[i]);
	if (!pick(a, 40)) {
		call_int80(a, arg);
		return;
	}
	if (!pick(a, 5))
		nr |= 1ULL << (32 + pick(a, 32));
	/* Above the arena may be our own stack. */
	if (c->args[1] == LEN && arg[0] >= (uintptr_t)a->arena &&
	    arg[0] < (uintptr_t)a->arena + ARENA_PAGES * PAGE && arg[1] < 1ULL << 48 &&
	    arg[1] > ARENA_PAGES * PAGE - (arg[0] - (uintptr_t)a->arena) && pick(a, 50))
		arg[1] = PAGE;
	if (c->nr == SYS_process_madvise) {
		((uint64_t *)a->scratch)[0] = any_addr(a);
		((uint64_t *)a->scratch)[1] = PAGE;
	}
	if (c->nr == SYS_io_setup && pick(a, 2)) {
		/* A check that takes two arguments for a range sees one of the caller's own. */
		((uint64_t *)a->scratch)[0] = 0;
		arg[0] |= a->base & 0xffffffff00000000ULL;
	}
	call(a, nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (c->args[0] == SHMID)
		forget_shm(arg[0]);
}

/*
 * A piece of the stack, which grows, moved to the partition's begin, and grown. A load
 * grows it like a store, and changes nothing if the neighbour has memory there.
 */
static void move_stack(struct actor *a)
{
	char here[64];
	uint64_t page = ((uintptr_t)here & ~(PAGE - 1)) - 32 * PAGE, to;
	int fds[2];
	long ret;

	if (!a->task || raw6(SYS_pipe2, (uintptr_t)fds, O_NONBLOCK, 0, 0, 0, 0))
		return;
	((volatile char *)page)[0] = 1;
	to = a->base + (pick(a, 4) ? 0 : pick(a, 4) * PAGE);
	ret = CALL(a, SYS_mremap, page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	/* write() loads, and can't be killed for it. */
	if (ret > 0)
		CALL(a, SYS_write, fds[1], to - PAGE * (1 + pick(a, 255)), 8);
	raw6(SYS_close, fds[0], 0, 0, 0, 0, 0);
	raw6(SYS_close, fds[1], 0, 0, 0, 0, 0);
}

static void seal(struct actor *a)
{
	uint64_t at = raw6(SYS_mmap, 0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	call(a, NR_MSEAL | (uint64_t)pick(a, 3) << 32, at, PAGE, 0, 0, 0, 0);
}

static void name_area(struct actor *a)
{
	a->scratch[2 * PAGE] = 'n';
	a->scratch[2 * PAGE + 1] = 0;
	CALL(a, SYS_prctl, PR_SET_VMA_, 0, any_addr(a), PAGE, a->scratch + 2 * PAGE);
	a->scratch[2 * PAGE] = 0;
}

/* To places outside all partitions that some other user of the mm needs. */
static void move_out(struct actor *a)
{
	static const uint64_t places[] = { 0x7fffffffe000ULL, 0x7ffffffff000ULL, 0x10000ULL, 0 };
	uint64_t from = (uintptr_t)a->arena + (1 + pick(a, ARENA_PAGES - 1)) * PAGE;

	CALL(a, SYS_mremap, from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
	     places[pick(a, ARRAY(places))]);
}

/* A peer's page by a range that wraps around. */
static void wrap(struct actor *a)
{
	static const unsigned int numbers[] = {
		SYS_mlock, SYS_munlock, SYS_mlock, SYS_mprotect, SYS_madvise, SYS_munmap,
	};

	CALL(a, numbers[pick(a, ARRAY(numbers))], any_addr(a) + pick(a, 3) + 1,
	     -(uint64_t)(pick(a, 3) + 1), pick(a, 2) * 4);
}

/* A peer's page: unmapped by a move of one of the actor's own pages onto it. */
static void move_onto(struct actor *a)
{
	uint64_t from = (uintptr_t)a->arena + pick(a, ARENA_PAGES) * PAGE;

	call(a, SYS_mremap | (uint64_t)pick(a, 3) << 32, from, PAGE, PAGE,
	     MREMAP_MAYMOVE | MREMAP_FIXED, any_addr(a) & ~(PAGE - 1), 0);
}

/* An AIO context whose ring would live as long as the mm. */
static void make_aio(struct actor *a)
{
	static const unsigned int numbers[] = { SYS_io_setup };
	uint64_t high = pick(a, 3) ? 1ULL << (32 + pick(a, 31)) : 0;

	*(uint64_t *)a->scratch = 0;
	call(a, numbers[0] | high, a->base | (1 + pick(a, 8)), (uintptr_t)a->scratch, 0, 0, 0, 0);
	/* As a length it must fit in what begins at the first argument. */
	if (!a->task || pick(a, 2))
		return;
	call(a, SYS_io_setup | high, a->base + (1 + pick(a, 8)), 0x10000000 + 8, 0, 0, 0, 0);
}

void op_mm_sequence(struct actor *a)
{
	static void (*const all[])(struct actor *a) = {
		move_stack, seal, name_area, move_out, wrap, wrap, move_onto, make_aio,
	};

	all[pick(a, ARRAY(all))](a);
}
