/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Code that makes system calls, at an address of the caller's choice. */
#ifndef SYSCALL_STUB_H
#define SYSCALL_STUB_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

typedef long (*syscall_stub)(long nr, long a, long b, long c, long d);

/* Returns NULL if something is mapped there. */
static inline syscall_stub make_syscall_stub(uint64_t at)
{
	static const unsigned char code[] = {
		0x48, 0x89, 0xf8,		/* mov %rdi, %rax */
		0x48, 0x89, 0xf7,		/* mov %rsi, %rdi */
		0x48, 0x89, 0xd6,		/* mov %rdx, %rsi */
		0x48, 0x89, 0xca,		/* mov %rcx, %rdx */
		0x4d, 0x89, 0xc2,		/* mov %r8, %r10 */
		0x0f, 0x05, 0xc3,		/* syscall; ret */
	};
	void *p = mmap((void *)at, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != (void *)at)
		return NULL;
	memcpy(p, code, sizeof(code));
	return (syscall_stub)p;
}

#endif /* SYSCALL_STUB_H */
