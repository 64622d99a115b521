// SPDX-License-Identifier: GPL-2.0-only
/* One attacking process: how it chooses, does and logs ops. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../left.h"
#include "hostile.h"

unsigned int pick(struct actor *a, unsigned int below)
{
	return rnd(&a->rng, below);
}

uint64_t log_slot(const struct actor *a)
{
	return PAGE + (uint64_t)(a->pid % LOG_SLOTS) * sizeof(struct op_log);
}

void log_entry(struct actor *a, const struct op_entry *op)
{
	uint64_t slot = log_slot(a);
	uint32_t head[6] = {
		a->pid, a->session, a->plan, raw6(SYS_getuid, 0, 0, 0, 0, 0, 0), a->number,
		a->log_n + 1,
	};

	raw6(SYS_pwrite64, BOARD_FD, (uintptr_t)op, sizeof(*op),
	     slot + offsetof(struct op_log, ops) + a->log_n % LOG_OPS * sizeof(*op), 0, 0);
	raw6(SYS_pwrite64, BOARD_FD, (uintptr_t)head, sizeof(head), slot, 0, 0);
	a->log_n++;
}

void count_exec(struct actor *a, size_t offset)
{
	uint32_t n = 0;

	raw6(SYS_pread64, BOARD_FD, (uintptr_t)&n, sizeof(n), log_slot(a) + offset, 0, 0);
	n++;
	raw6(SYS_pwrite64, BOARD_FD, (uintptr_t)&n, sizeof(n), log_slot(a) + offset, 0, 0);
}

void note(struct actor *a, unsigned int what, uint64_t v)
{
	struct op_entry op = { .nr = 1000 + what, .args = { v } };

	log_entry(a, &op);
}

/* Logged before, for a call may not return, and after, with its result. */
long call(struct actor *a, uint64_t nr, uint64_t arg0, uint64_t arg1, uint64_t arg2,
	  uint64_t arg3, uint64_t arg4, uint64_t arg5)
{
	struct op_entry op = { .nr = nr, .args = { arg0, arg1, arg2, arg3, arg4, arg5 }, .ret = 1 };

	log_entry(a, &op);
	op.ret = raw6(nr, arg0, arg1, arg2, arg3, arg4, arg5);
	a->log_n--;
	log_entry(a, &op);
	return op.ret;
}

void keep_fd(struct actor *a, long fd)
{
	unsigned int i;

	if (fd < 0 || fd >= OWN_FDS)
		return;
	if (a->n_fds < N_FDS) {
		a->fds[a->n_fds++] = fd;
		return;
	}
	i = pick(a, N_FDS);
	if (a->fds[i] != a->ring.fd && a->fds[i] != a->uffd)
		raw6(SYS_close, a->fds[i], 0, 0, 0, 0, 0);
	a->fds[i] = fd;
}

int any_fd(struct actor *a)
{
	return a->n_fds ? a->fds[pick(a, a->n_fds)] : -1;
}

/* Mappings in other partitions, as far as maps tells. */
static void look_for_peers(struct actor *a)
{
	static char buf[1 << 16];
	char *at = buf;
	struct map_line line;

	a->n_peers = 0;
	read_proc("/proc/self/maps", buf, sizeof(buf));
	while (next_map(&at, &line) && a->n_peers < MAX_PEERS) {
		if (line.start >= a->base && line.start < a->end)
			continue;
		a->peers[a->n_peers].start = line.start;
		a->peers[a->n_peers++].end = line.end;
	}
}

/* Often one of the first peer's, the bystander: its mappings are few among all. */
static uint64_t peer_addr(struct actor *a)
{
	unsigned int i, n, first = 0;
	uint64_t start;

	if (!a->n_peers || !pick(a, 100))
		look_for_peers(a);
	if (!a->n_peers)
		return (uintptr_t)a->arena;
	while (first < a->n_peers - 1 && a->peers[first].start >> 32 == 0)
		first++;
	for (n = 1; first + n < a->n_peers &&
	     a->peers[first + n].start - a->peers[first].start < 1ULL << 36; n++)
		;
	i = pick(a, 2) ? first + pick(a, n) : pick(a, a->n_peers);
	start = a->peers[i].start;
	switch (pick(a, 4)) {
	case 0: return a->peers[i].end - PAGE;
	case 1: return start + pick(a, (a->peers[i].end - start) / PAGE + 1) * PAGE;
	default: return start;
	}
}

static uint64_t edge_addr(struct actor *a)
{
	static const uint64_t fixed[] = {
		0, PAGE, 0x7ffffffff000ULL, 0x7fffffffe000ULL, 0x800000000000ULL,
		0xffff888000000000ULL, ~0ULL, ~0ULL << 12, 0xffffffffff600000ULL, 0x10000000ULL,
	};

	if (!a->task || pick(a, 2))
		return fixed[pick(a, ARRAY(fixed))];
	switch (pick(a, 4)) {
	case 0: return a->base;
	case 1: return a->base - PAGE;
	case 2: return a->end;
	default: return a->end - PAGE;
	}
}

/* One of the actor's own pages, from its arena: without its code and stack it could not go on. */
uint64_t any_addr(struct actor *a)
{
	unsigned int way = pick(a, 20);
	uint64_t at;

	if (a->task && way < 10)
		at = peer_addr(a);
	else if (way < 13)
		at = edge_addr(a);
	else
		at = (uintptr_t)a->arena + pick(a, ARENA_PAGES) * PAGE;
	return pick(a, 8) ? at : at + 1 + pick(a, 64);
}

uint64_t any_len(struct actor *a)
{
	static const uint64_t odd[] = {
		0, 1, ~0ULL, ~0ULL, -PAGE, -PAGE + 1, 1ULL << 36, 1ULL << 32, 1ULL << 47, 2 << 20,
	};

	return pick(a, 3) ? (1 + pick(a, 4)) * PAGE : odd[pick(a, ARRAY(odd))];
}

void actor_init(struct actor *a, unsigned int session, unsigned int plan, unsigned int number,
		uint64_t seed, unsigned int round)
{
	a->pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	a->session = session;
	a->plan = plan;
	a->number = number;
	a->rng = mix(mix(seed, round), mix(session, number));
	a->ring.fd = a->uffd = -1;
	a->log_n = 0;
	a->arena = (char *)raw6(SYS_mmap, 0, ARENA_PAGES * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	a->scratch = (char *)raw6(SYS_mmap, 0, 4 * PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	note(a, N_START, number);
}

static const struct {
	void (*op)(struct actor *a);
	unsigned char weight[BIAS_N];	/* none, mm, ns, ring, pvas, proc, cred */
} ops[] = {
	{ op_mm,	  { 20, 50,  4,  8,  6,  6,  4 } },
	{ op_mm_sequence, {  4,  8,  1,  1,  2,  2,  1 } },
	{ op_uffd,	  {  3,  6,  1,  1,  1,  1,  0 } },
	{ op_ring,	  {  8, 12,  2, 40,  6,  4,  2 } },
	{ op_ns,	  {  3,  0, 12,  1,  2,  2,  6 } },
	{ op_timens,	  {  2,  0, 12,  1,  1,  0,  1 } },
	{ op_cred,	  {  3,  1,  5,  2,  2,  3, 30 } },
	{ op_proc,	  {  5,  2,  3,  4,  4, 30,  4 } },
	{ op_pvas,	  {  8,  2,  4, 10, 40, 10,  6 } },
	{ op_pass,	  {  3,  1,  2,  6,  8,  2,  2 } },
	{ op_scan,	  {  2,  1,  8,  2,  2,  2,  2 } },
	{ op_peek,	  {  3,  1,  2,  1,  2,  2, 10 } },
	{ op_remote,	  {  5,  6,  3,  3,  4,  6,  6 } },
	{ op_settings,	  {  4,  4,  4,  2,  3,  3,  8 } },
};

static void one_op(struct actor *a)
{
	unsigned int i, sum = 0, at;

	for (i = 0; i < ARRAY(ops); i++)
		sum += ops[i].weight[a->bias];
	at = pick(a, sum);
	for (i = 0; at >= ops[i].weight[a->bias]; i++)
		at -= ops[i].weight[a->bias];
	/* These need what only libc sets up. */
	if (a->raw && (ops[i].op == op_proc || ops[i].op == op_pass))
		return;
	ops[i].op(a);
}

void actor_run(struct actor *a, unsigned int n)
{
	while (n--)
		one_op(a);
}
