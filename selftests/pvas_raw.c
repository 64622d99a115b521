// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spaces made by the ABI alone, without libpvas: see pvas_test.h.
 *
 * The creator of a space may have nothing else mapped. So it prepares its last system
 * calls as a list, and a stub in its only executable page does them one by one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pvas_test.h"

/*
 * The puppet, which is what the spaces here have for a loader: a loop that waits
 * for a system call in its slot, does it and stores the result. %rdi is struct
 * pvas_start; the index is at offset 12. It looks every two milliseconds: no
 * memory is shared with the test, which writes by /proc/PID/mem.
 *
 * pt_make does one call after the other, the slots lie in a row from %rdi on.
 */
_Static_assert(offsetof(struct pvas_start, index) == 12, "the stub reads it there");
_Static_assert(sizeof(struct pt_slot) == 128, "the stub multiplies by it");
_Static_assert(offsetof(struct pt_slot, ret) == 64, "the stub stores there");
__asm__(".pushsection .rodata\n"
	"	.globl pt_stub, pt_stub_end, pt_make\n"
	"pt_stub:\n"
	"	mov 12(%rdi), %r15d\n"
	"	shl $7, %r15\n"
	"	add $0x10100000, %r15\n"
	"1:	mov (%r15), %edx\n"
	"	cmp $1, %edx\n"
	"	je 2f\n"
	"	mov $35, %eax\n"	/* nanosleep */
	"	lea 9f(%rip), %rdi\n"
	"	xor %esi, %esi\n"
	"	syscall\n"
	"	jmp 1b\n"
	"2:	call 8f\n"
	"	movl $2, (%r15)\n"
	"	jmp 1b\n"
	"pt_make:\n"
	"	mov %rdi, %r15\n"
	"3:	call 8f\n"
	"	add $128, %r15\n"
	"	jmp 3b\n"
	"8:	mov 8(%r15), %rax\n"
	"	mov 16(%r15), %rdi\n"
	"	mov 24(%r15), %rsi\n"
	"	mov 32(%r15), %rdx\n"
	"	mov 40(%r15), %r10\n"
	"	mov 48(%r15), %r8\n"
	"	mov 56(%r15), %r9\n"
	"	syscall\n"
	"	mov %rax, 64(%r15)\n"
	"	ret\n"
	"	.balign 8\n"
	"9:	.quad 0, 2000000\n"
	"pt_stub_end:\n"
	".popsection\n");
extern const char pt_stub[], pt_stub_end[], pt_make[];

void pt_raw_init(struct pt_raw *raw, unsigned int shift)
{
	memset(raw, 0, sizeof(*raw));
	raw->fd = pt_open();
	raw->create.size = sizeof(raw->create);
	raw->create.shift = shift;
	raw->create.loader = PT_STUB_AT;
	raw->create.table = PT_TABLE_AT;
	raw->create.table_entries = PT_TABLE_ENTRIES;
	raw->create.flags = PVAS_CREATE_KILL_ON_CLOSE;
}

#define TABLE_LEN	(PT_TABLE_ENTRIES * sizeof(struct pvas_part))
#define SLOTS_LEN	(PT_SLOTS * sizeof(struct pt_slot))	/* two pages */
#define STACK_AT	(PT_TABLE_AT + TABLE_LEN + 0x10000UL)	/* of the creator's last steps */
#define STACK_LEN	4096UL

/* Where things are in the creator's PT_DATA_AT. */
struct making {
	struct pvas_create create;
	struct pvas_create first;
	char key[PVAS_KEY_MAX];
	char nth_text[16], nth_left[16];
	char go;
	struct pt_slot step[64];
};

static void *map_at(unsigned long at, size_t len)
{
	void *p = mmap((void *)at, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void add_step(struct making *m, unsigned int *n, long nr, long a, long b, long c, long d)
{
	struct pt_slot *slot = &m->step[(*n)++];

	*slot = (struct pt_slot){ .nr = nr, .args = { a, b, c, d } };
}

static bool is_kept(const struct pt_raw *raw, const char *line, unsigned long lo)
{
	return strstr(line, "[vdso]") || strstr(line, "[vvar") || strstr(line, "[vsyscall]") ||
	       (lo >= PT_STUB_AT && lo < PT_STUB_AT + 4096) ||
	       (lo >= PT_SLOTS_AT && lo < PT_DATA_AT + PT_DATA_LEN) ||
	       (lo >= PT_TABLE_AT && lo < STACK_AT + STACK_LEN) ||
	       (raw->user && lo == (unsigned long)raw->user) || (raw->keep && lo == raw->keep);
}

/* A space is to hold nothing else: unmap what lies between what it keeps. */
static void add_unmaps(const struct pt_raw *raw, struct making *m, unsigned int *n)
{
	unsigned long lo, hi, from = 4096;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &lo, &hi) != 2 || !is_kept(raw, line, lo))
			continue;
		if (lo > from && lo < 1UL << 47)
			add_step(m, n, SYS_munmap, from, lo - from, 0, 0);
		if (lo < 1UL << 47)
			from = hi;
	}
	add_step(m, n, SYS_munmap, from, (1UL << 47) - 4096 - from, 0, 0);
}

static int creator(struct pt_raw *raw, int answer, int go)
{
	char *stub = map_at(PT_STUB_AT, 4096);
	struct making *m = map_at(PT_DATA_AT, PT_DATA_LEN);
	unsigned int n = 0;
	size_t i;
	int err;

	if (!stub || !m || !map_at(PT_SLOTS_AT, SLOTS_LEN) ||
	    !map_at(PT_TABLE_AT, TABLE_LEN) || !map_at(STACK_AT, STACK_LEN))
		return -ENOTSUP;
	memcpy(stub, pt_stub, pt_stub_end - pt_stub);
	mprotect(stub, 4096, PROT_READ | PROT_EXEC);
	m->create = raw->create;
	if (m->create.key && !(m->create.key >> 47) && m->create.key_len <= sizeof(m->key))
		m->create.key = (uint64_t)memcpy(m->key, (void *)m->create.key, m->create.key_len);
	if (raw->user)
		memcpy(raw->user, &raw->create, sizeof(raw->create));
	if (raw->user)
		mprotect(raw->user, 4096, PROT_READ);
	err = raw->prepare ? raw->prepare(raw->prepare_arg) : 0;
	if (err)
		return err;
	if (!raw->as_is) {
		/* The kernel writes there when it likes. */
		syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, 32,
			RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
		add_unmaps(raw, m, &n);
	}
	if (raw->first) {
		m->first = raw->first->create;
		add_step(m, &n, SYS_ioctl, raw->first->fd, PVAS_IOC_CREATE, (long)&m->first, 0);
	}
	if (raw->nth_fd) {
		strcpy(m->nth_text, raw->nth_text);
		add_step(m, &n, SYS_pwrite64, raw->nth_fd, (long)m->nth_text,
			 strlen(m->nth_text), 0);
	}
	add_step(m, &n, SYS_ioctl, raw->fd, PVAS_IOC_CREATE,
		 (long)(raw->user ? raw->user : &m->create), 0);
	err = n - 1;
	if (raw->nth_fd) {
		add_step(m, &n, SYS_pread64, raw->nth_fd, (long)m->nth_left, 15, 0);
		add_step(m, &n, SYS_pwrite64, raw->nth_fd, (long)"0", 1, 0);
		m->step[n - 1].args[1] = (long)strcpy(&m->nth_text[14], "0");
	}
	m->step[62].nr = err;
	m->step[62].ret = n;
	for (i = 0; i < raw->n_after; i++)
		m->step[n++] = raw->after[i];
	add_step(m, &n, SYS_write, answer, (long)m, sizeof(*m), 0);
	add_step(m, &n, SYS_read, go, (long)&m->go, 1, 0);
	add_step(m, &n, SYS_exit_group, 0, 0, 0, 0);
	__asm__ volatile("movq %0, %%rsp\n\tjmpq *%1" : :
			 "r"(STACK_AT + STACK_LEN), "r"(PT_STUB_AT + (pt_make - pt_stub)),
			 "D"(m->step) : "memory");
	__builtin_unreachable();
}

static int read_all(int fd, void *buf, size_t len)
{
	size_t have = 0;
	ssize_t n;

	while (have < len && (n = read(fd, (char *)buf + have, len - have)) > 0)
		have += n;
	return have == len ? 0 : -ECHILD;
}

/* Of the space: of all that its mm has, for as long as it lives. */
static int open_mem(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int creator_says(struct pt_raw *raw, pid_t pid, int answer)
{
	struct making m;
	size_t i;
	int err;

	memset(&m, 0, sizeof(m));
	/* An error before its last steps comes alone. */
	if (read_all(answer, &m, sizeof(m)))
		return m.create.size == -1U ? (int)m.create.flags : -ECHILD;
	err = m.step[m.step[62].nr].ret;
	memcpy(raw->nth_left, m.nth_left, sizeof(raw->nth_left));
	for (i = 0; i < raw->n_after; i++)
		raw->after_ret[i] = m.step[m.step[62].ret + i].ret;
	if (err)
		return err;
	raw->create = m.create;
	raw->mem = open_mem(pid);
	raw->data = calloc(1, PT_DATA_LEN);
	return raw->mem < 0 || !raw->data ? -ENOTSUP : 0;
}

int pt_raw_create(struct pt_raw *raw)
{
	struct pvas_create failed = { .size = -1U };
	int answer[2], go[2], err;
	pid_t pid;

	if (pipe2(answer, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		close(go[1]);
		failed.flags = creator(raw, answer[1], go[0]);
		_exit(write(answer[1], &failed, sizeof(failed)) != sizeof(failed));
	}
	close(answer[1]);
	close(go[0]);
	err = creator_says(raw, pid, answer[0]);
	close(answer[0]);
	raw->creator = pid;
	raw->go = go[1];
	if (err || !raw->lives)
		pt_raw_let_go(raw);
	return err;
}

int pt_raw_let_go(struct pt_raw *raw)
{
	close(raw->go);
	return pt_wait(raw->creator);
}

int pt_raw_make(struct pt_raw *raw)
{
	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	return pt_raw_create(raw);
}

void pt_raw_close(struct pt_raw *raw)
{
	close(raw->fd);
	if (raw->mem > 0)
		close(raw->mem);
	free(raw->data);
	memset(raw, 0, sizeof(*raw));
	raw->fd = -1;
}
