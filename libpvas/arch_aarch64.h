/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* aarch64: see arch.h. Compiled, but never run. */
#ifndef PVAS_ARCH_AARCH64_H
#define PVAS_ARCH_AARCH64_H

#include <errno.h>
#include <linux/futex.h>
#include <linux/types.h>
#include <stddef.h>

#include "linux_names.h"

#define PVAS_OLD_CALL(...)

#define PVAS_AUDIT_ARCH		AUDIT_ARCH_AARCH64
#define PVAS_AUDIT_ARCH_32	AUDIT_ARCH_ARM
#define PVAS_NR_PRCTL_32	172
#define PVAS_NR_SECCOMP_32	383

#define PVAS_CALL_LEN		4
#define PVAS_RSEQ_SIGNATURE	0xd428bc00
#define PVAS_MAP_LOW		0	/* there is no such flag */

static inline long pvas_raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

/* They are made by clone(). */
static inline int pvas_is_fork(long nr)
{
	(void)nr;
	return 0;
}

static inline int pvas_is_vfork(long nr)
{
	(void)nr;
	return 0;
}

/* ---- memory ---- */

static inline void pvas_fill_bytes(void *to, int c, size_t n)
{
	__asm__ volatile("cbz %1, 2f\n"
			 "1:\n\t"
			 "strb %w2, [%0], #1\n\t"
			 "subs %1, %1, #1\n\t"
			 "b.ne 1b\n"
			 "2:"
			 : "+r"(to), "+r"(n) : "r"(c) : "cc", "memory");
}

static inline void pvas_copy_bytes(void *to, const void *from, size_t n)
{
	__asm__ volatile("cbz %2, 2f\n"
			 "1:\n\t"
			 "ldrb w9, [%1], #1\n\t"
			 "strb w9, [%0], #1\n\t"
			 "subs %2, %2, #1\n\t"
			 "b.ne 1b\n"
			 "2:"
			 : "+r"(to), "+r"(from), "+r"(n) : : "x9", "cc", "memory");
}

static inline void pvas_code_written(void *from, size_t n)
{
	__builtin___clear_cache((char *)from, (char *)from + n);
}

/* ---- registers ---- */

static inline void *pvas_thread_pointer(void)
{
	void *p;

	__asm__("mrs %0, tpidr_el0" : "=r"(p));
	return p;
}

static inline __u64 pvas_get_thread_base(void)
{
	__u64 base;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(base));
	return base;
}

static inline void pvas_set_thread_base(__u64 base)
{
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(base) : "memory");
}

static inline void pvas_clear_other_bases(void) { }

/* A program sets its base without a call. */
static inline int pvas_sets_base(long nr, __u64 arg)
{
	(void)nr;
	(void)arg;
	return 0;
}

static inline long pvas_get_cpuid(void)
{
	return -ENODEV;
}

static inline void pvas_permit_cpuid(void) { }

/* ---- the context of a signal ---- */

#define PVAS_CONTEXT_IP(uc)	((__u64)(uc)->uc_mcontext.pc)
#define PVAS_CONTEXT_NR(uc)	((long)(uc)->uc_mcontext.regs[8])

/*
 *	adr	x3, .
 *	lsr	x3, x3, #shift
 *	ldr	x16, size
 *	mul	x3, x3, x16
 *	ldr	x16, array
 *	add	x3, x3, x16
 *	ldr	x16, handler
 *	br	x16
 *
 * then the three numbers, and at PVAS_THUNK_CALL, for calls: svc #0; ret
 */
#define PVAS_THUNK_CALL		56
#define PVAS_THUNK_LEN		64

static inline void pvas_make_thunk(unsigned char *code, __u64 handler, __u64 array, __u32 size,
				   unsigned int shift)
{
	const __u32 jump[] = {
		0x10000003, 0xd340fc63 | shift << 16, 0x580000d0, 0x9b107c63,
		0x580000d0, 0x8b100063, 0x580000d0, 0xd61f0200,
	};
	const __u64 numbers[] = { size, array, handler };
	static const __u32 call[] = { 0xd4000001, 0xd65f03c0 };

	__builtin_memcpy(code, jump, sizeof(jump));
	__builtin_memcpy(code + sizeof(jump), numbers, sizeof(numbers));
	__builtin_memcpy(code + PVAS_THUNK_CALL, call, sizeof(call));
}

/* ---- to other code, on another stack ---- */

static inline void __attribute__((noreturn)) pvas_jump(__u64 entry, __u64 stack, long a, long b,
						       long c, long d)
{
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register __u64 x16 __asm__("x16") = entry;

	__asm__ volatile("mov sp, %0\n\t"
			 "br %1"
			 : : "r"(stack), "r"(x16), "r"(x0), "r"(x1), "r"(x2), "r"(x3) : "memory");
	__builtin_unreachable();
}

/* As arch_x86_64.h describes it */
static inline void __attribute__((noreturn)) pvas_begin(const struct pvas_beginning *b, int *start,
							int done)
{
	__u64 b_entry = b->entry, b_sp = b->sp, b_info = b->info;
	__u64 b_mark = b->mark, b_interp = b->interp, b_mask = b->mask;
	register __u64 entry __asm__("x19") = b_entry;
	register __u64 sp __asm__("x20") = b_sp;
	register __u64 info __asm__("x21") = b_info;
	register __u64 mark __asm__("x22") = b_mark;
	register __u64 interp __asm__("x23") = b_interp;
	register __u64 mask __asm__("x24") = b_mask;
	register int *rstart __asm__("x25") = start;
	register long rdone __asm__("x26") = done;

	__asm__ volatile("mov sp, %[sp]\n\t"
			 "msr tpidr_el0, xzr\n\t"
			 "stlr %w[done], [%[start]]\n\t"
			 "mov x0, %[start]\n\t"
			 "mov x1, %[wake]\n\t"
			 "mov x2, #0x7fffffff\n\t"
			 "mov x8, %[futex]\n\t"
			 "svc #0\n\t"
			 "mov x0, xzr\n\t"
			 "mov x8, %[set_tid]\n\t"
			 "svc #0\n\t"
			 "str %[mask], [sp, #-16]!\n\t"
			 "mov x0, %[setmask]\n\t"
			 "mov x1, sp\n\t"
			 "mov x2, xzr\n\t"
			 "mov x3, #8\n\t"
			 "mov x8, %[sigmask]\n\t"
			 "svc #0\n\t"
			 "msr fpcr, xzr\n\t"
			 "msr fpsr, xzr\n\t"
			 "add sp, sp, #16\n\t"
			 "mov x0, %[info]\n\t"
			 "mov x2, %[mark]\n\t"
			 "mov x3, %[interp]\n\t"
			 "br %[entry]"
			 : : [mark] "r"(mark), [interp] "r"(interp), [sp] "r"(sp), [info] "r"(info),
			     [entry] "r"(entry), [mask] "r"(mask), [start] "r"(rstart),
			     [done] "r"(rdone),
			     [futex] "i"(__NR_futex), [wake] "i"(FUTEX_WAKE),
			     [set_tid] "i"(__NR_set_tid_address),
			     [sigmask] "i"(__NR_rt_sigprocmask), [setmask] "i"(2 /* SIG_SETMASK */)
			 : "memory");
	__builtin_unreachable();
}

#endif /* PVAS_ARCH_AARCH64_H */
