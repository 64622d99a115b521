/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* x86-64: see arch.h. */
#ifndef PVAS_ARCH_X86_64_H
#define PVAS_ARCH_X86_64_H

#include <asm/prctl.h>
#include <linux/futex.h>
#include <linux/types.h>
#include <stddef.h>

#include "linux_names.h"

/* Rows of tables for calls that later architectures do not have */
#define PVAS_OLD_CALL(...)	__VA_ARGS__

#define PVAS_AUDIT_ARCH		AUDIT_ARCH_X86_64
#define PVAS_AUDIT_ARCH_32	AUDIT_ARCH_I386
#define PVAS_NR_PRCTL_32	172
#define PVAS_NR_SECCOMP_32	354

#define PVAS_CALL_LEN		2	/* of the instruction that makes a system call */
#define PVAS_RSEQ_SIGNATURE	0x53053053
#define PVAS_MAP_LOW		MAP_32BIT

static inline long pvas_raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline int pvas_is_fork(long nr)
{
	return nr == __NR_fork;
}

static inline int pvas_is_vfork(long nr)
{
	return nr == __NR_vfork;
}

/* ---- memory ---- */

static inline void pvas_fill_bytes(void *to, int c, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(c) : "memory");
}

static inline void pvas_copy_bytes(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/* After code was written, before it runs */
static inline void pvas_code_written(void *from, size_t n)
{
	(void)from;
	(void)n;
}

/* ---- registers ---- */

/* By it libc finds its thread. */
static inline void *pvas_thread_pointer(void)
{
	void *p;

	__asm__("movq %%fs:0, %0" : "=r"(p));
	return p;
}

/* The register itself, also if there is no thread of libc's */
static inline __u64 pvas_get_thread_base(void)
{
	__u64 base = 0;

	pvas_raw6(__NR_arch_prctl, ARCH_GET_FS, (long)&base, 0, 0, 0, 0);
	return base;
}

static inline void pvas_set_thread_base(__u64 base)
{
	pvas_raw6(__NR_arch_prctl, ARCH_SET_FS, (long)base, 0, 0, 0, 0);
}

static inline void pvas_clear_other_bases(void)
{
	pvas_raw6(__NR_arch_prctl, ARCH_SET_GS, 0, 0, 0, 0, 0);
}

/* Does the call concern the thread's own base registers alone? */
static inline int pvas_sets_base(long nr, __u64 arg)
{
	return nr == __NR_arch_prctl && arg >= ARCH_SET_GS && arg <= ARCH_GET_GS;
}

/* Whether the instruction is permitted; an error if it always is */
static inline long pvas_get_cpuid(void)
{
	return pvas_raw6(__NR_arch_prctl, ARCH_GET_CPUID, 0, 0, 0, 0, 0);
}

static inline void pvas_permit_cpuid(void)
{
	pvas_raw6(__NR_arch_prctl, ARCH_SET_CPUID, 1, 0, 0, 0, 0);
}

/* ---- the context of a signal ---- */

#define PVAS_CONTEXT_IP(uc)	((__u64)(uc)->uc_mcontext.gregs[REG_RIP])
#define PVAS_CONTEXT_NR(uc)	((uc)->uc_mcontext.gregs[REG_RAX])

/*
 *	lea	0(%rip), %rcx
 *	shr	$shift, %rcx
 *	imul	$size, %rcx, %rcx
 *	movabs	$array, %rax
 *	add	%rax, %rcx
 *	movabs	$handler, %rax
 *	jmp	*%rax
 *
 * and at PVAS_THUNK_CALL, for calls: syscall; ret
 */
#define PVAS_THUNK_CALL		48
#define PVAS_THUNK_LEN		(PVAS_THUNK_CALL + 3)

/*
 * @code calls @handler with the fourth argument &array[i], of elements of @size bytes, where i is
 * the index of the partition, of 1 << @shift bytes, that @code lies in.
 */
static inline void pvas_make_thunk(unsigned char *code, __u64 handler, __u64 array, __u32 size,
				   unsigned int shift)
{
	static const unsigned char text[] = {
		0x48, 0x8d, 0x0d, 0, 0, 0, 0, 0x48, 0xc1, 0xe9, 0, 0x48, 0x69, 0xc9, 0, 0, 0, 0,
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0x01, 0xc1,
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0,
	};

	_Static_assert(sizeof(text) <= PVAS_THUNK_CALL, "the call is behind it");
	__builtin_memcpy(code, text, sizeof(text));
	code[10] = (unsigned char)shift;
	__builtin_memcpy(code + 14, &size, sizeof(size));
	__builtin_memcpy(code + 20, &array, sizeof(array));
	__builtin_memcpy(code + 33, &handler, sizeof(handler));
	__builtin_memcpy(code + PVAS_THUNK_CALL, "\x0f\x05\xc3", 3);
}

/* ---- to other code, on another stack ---- */

static inline void __attribute__((noreturn)) pvas_jump(__u64 entry, __u64 stack, long a, long b,
						       long c, long d)
{
	__asm__ volatile("movq %0, %%rsp\n\t"
			 "jmpq *%1"
			 : : "a"(stack), "b"(entry), "D"(a), "S"(b), "d"(c), "c"(d) : "memory");
	__builtin_unreachable();
}

/*
 * On the new stack, first release the thread pointer, then store @done to *@start and wake who
 * waits for that, then set the signal mask, which is pushed to the stack.
 */
static inline void __attribute__((noreturn)) pvas_begin(const struct pvas_beginning *b, int *start,
							int done)
{
	__u64 b_entry = b->entry, b_sp = b->sp, b_info = b->info;
	__u64 b_mark = b->mark, b_interp = b->interp, b_mask = b->mask;
	register __u64 mark __asm__("r8") = b_mark;
	register __u64 interp __asm__("r9") = b_interp;
	register __u64 mask __asm__("rbx") = b_mask;
	register __u64 info __asm__("r12") = b_info;
	register __u64 entry __asm__("r13") = b_entry;
	register int *rstart __asm__("r14") = start;
	register __u64 sp __asm__("r15") = b_sp;
	register long rdone __asm__("r10") = done;

	__asm__ volatile("movq %[sp], %%rsp\n\t"
			 "movl %[arch_prctl], %%eax\n\t"
			 "movl %[set_fs], %%edi\n\t"
			 "xorl %%esi, %%esi\n\t"
			 "syscall\n\t"
			 "movl %%r10d, (%[start])\n\t"
			 "movl %[futex], %%eax\n\t"
			 "movq %[start], %%rdi\n\t"
			 "movl %[wake], %%esi\n\t"
			 "movl $0x7fffffff, %%edx\n\t"
			 "syscall\n\t"
			 "movl %[set_tid], %%eax\n\t"
			 "xorl %%edi, %%edi\n\t"
			 "syscall\n\t"
			 "pushq %[mask]\n\t"
			 "movl %[sigmask], %%eax\n\t"
			 "movl %[setmask], %%edi\n\t"
			 "movq %%rsp, %%rsi\n\t"
			 "xorl %%edx, %%edx\n\t"
			 "movl $8, %%r10d\n\t"
			 "syscall\n\t"
			 "fninit\n\t"
			 "movl $0x1f80, (%%rsp)\n\t"
			 "ldmxcsr (%%rsp)\n\t"
			 "movq $0, (%%rsp)\n\t"
			 "popfq\n\t"
			 "movq %[info], %%rdi\n\t"
			 "movq %[mark], %%rdx\n\t"
			 "movq %[interp], %%rcx\n\t"
			 "jmpq *%[entry]"
			 : : [mark] "r"(mark), [interp] "r"(interp), [sp] "r"(sp), [info] "r"(info),
			     [entry] "r"(entry), [mask] "r"(mask), [start] "r"(rstart), "r"(rdone),
			     [arch_prctl] "i"(__NR_arch_prctl), [set_fs] "i"(ARCH_SET_FS),
			     [futex] "i"(__NR_futex), [wake] "i"(FUTEX_WAKE),
			     [set_tid] "i"(__NR_set_tid_address),
			     [sigmask] "i"(__NR_rt_sigprocmask), [setmask] "i"(2 /* SIG_SETMASK */)
			 : "memory");
	__builtin_unreachable();
}

#endif /* PVAS_ARCH_X86_64_H */
