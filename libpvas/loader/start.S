/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entries of the blob, at the offsets in loader/blob.h: 0 for a task, 16 for the
 * process that becomes a space, 32 for the return from a signal handler, 48 for a reader.
 */
#include "linux_names.h"

#ifdef __aarch64__

	.section .text.start, "ax", %progbits
	.globl	_start
	.type	_start, %function
_start:
	b	task
	.balign	16, 0
	b	convert
	.balign	16, 0
	b	restore
	.balign	16, 0
	b	reader
	.balign	16, 0

/* A task: as below, with x0, sp, x2 and x3. x16 keeps the program's address. */
task:
	mov	x29, xzr
	mov	x30, xzr
	mov	x19, sp
	mov	x1, sp
	bl	pvas_loader_main
	mov	sp, x19
	mov	x16, x0
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	mov	x\n, xzr
	.endr
	.irp	n, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
	mov	x\n, xzr
	.endr
	br	x16
	.size	_start, . - _start

	.type	convert, %function
convert:
	mov	x29, xzr
	bl	pvas_convert_main
	brk	#0
	.size	convert, . - convert

	.type	reader, %function
reader:
	mov	x29, xzr
	bl	pvas_reader_main
	brk	#0
	.size	reader, . - reader

/* A call that failed can't be made again: its first argument was in x0, as its result is. */
	.type	restore, %function
restore:
	mov	x8, #__NR_rt_sigreturn
	svc	#0
	brk	#0
	.size	restore, . - restore

#else

	.section .text.start, "ax", @progbits
	.globl	_start
	.type	_start, @function
_start:
	jmp	task
	.balign	16, 0xcc
	jmp	convert
	.balign	16, 0xcc
	jmp	restore
	.balign	16, 0xcc
	jmp	reader
	.balign	16, 0xcc

/*
 * A task: %rsp = System V process stack, %rdi = struct pvas_start *, and of the user backend, or
 * 0: %rdx = struct pvas_loading *, %rcx = an address for the interpreter (main.c). On the way out
 * the registers are as the ABI promises a program: %rdx = 0 (no function to register
 * with atexit), the others cleared, without values of the loader.
 */
task:
	xorl	%ebp, %ebp
	movq	%rsp, %rbx
	movq	%rsp, %rsi
	andq	$-16, %rsp
	call	pvas_loader_main
	movq	%rbx, %rsp
	/* All registers are cleared: keep the address in the red zone, safe from signals. */
	movq	%rax, -8(%rsp)
	xorl	%eax, %eax
	xorl	%ebx, %ebx
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	xorl	%esi, %esi
	xorl	%edi, %edi
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	xorl	%r10d, %r10d
	xorl	%r11d, %r11d
	xorl	%r12d, %r12d
	xorl	%r13d, %r13d
	xorl	%r14d, %r14d
	xorl	%r15d, %r15d
	cld
	jmp	*-8(%rsp)
	.size	_start, . - _start

/* %rdi = struct pvas_convert_request *, %rsp = top of the scratch stack; no return. */
	.type	convert, @function
convert:
	xorl	%ebp, %ebp
	andq	$-16, %rsp
	call	pvas_convert_main
	ud2
	.size	convert, . - convert

/* User backend: the arguments of pvas_reader_main(), %rsp = top of its stack; no return. */
	.type	reader, @function
reader:
	xorl	%ebp, %ebp
	andq	$-16, %rsp
	call	pvas_reader_main
	ud2
	.size	reader, . - reader

/*
 * User backend: a signal handler without SA_RESTART returns here instead of to libc's
 * restorer; %rsp = struct ucontext. If the signal arrives before the worker has taken
 * the call, the kernel makes the call fail with EINTR. None of these calls fails with
 * EINTR otherwise, and programs don't expect it: so restart the call. Its number is
 * not in the context, but in the instruction before the syscall, in all of libc's
 * functions: movl $nr, %eax; syscall.
 */
#define UC_RAX		144
#define UC_RIP		168
#define EINTR		4
#define MOVL_EAX	0xb8
#define SYSCALL		0x050f
#define CALL_LEN	7

	.type	restore, @function
restore:
	cmpq	$-EINTR, UC_RAX(%rsp)
	jne	1f
	movq	UC_RIP(%rsp), %rsi
	/* %rax can be -4 by chance: do not read across a page, which may be unmapped. */
	movl	%esi, %eax
	andl	$4095, %eax
	cmpl	$CALL_LEN, %eax
	jb	1f
	cmpb	$MOVL_EAX, -CALL_LEN(%rsi)
	jne	1f
	cmpw	$SYSCALL, -2(%rsi)
	jne	1f
	movl	-CALL_LEN + 1(%rsi), %ecx
	leaq	restarted(%rip), %rdx
3:
	movzwl	(%rdx), %eax
	testl	%eax, %eax
	jz	1f
	addq	$2, %rdx
	cmpl	%eax, %ecx
	jne	3b
	movq	%rcx, UC_RAX(%rsp)
	subq	$2, UC_RIP(%rsp)
1:
	movl	$__NR_rt_sigreturn, %eax
	syscall
	ud2
	.size	restore, . - restore

/*
 * All that filter.c sends to workers, but io_uring_enter and process_madvise, which fail
 * with EINTR by themselves
 */
	.balign	2
restarted:
	.short	__NR_mmap, __NR_mprotect, __NR_munmap, __NR_brk, __NR_rt_sigaction, __NR_mremap
	.short	__NR_madvise, __NR_shmat, __NR_shmdt, __NR_pkey_mprotect, __NR_mbind
	.short	__NR_mlock, __NR_mlock2, __NR_munlock, __NR_mlockall, __NR_munlockall
	.short	__NR_remap_file_pages, __NR_migrate_pages, __NR_set_mempolicy_home_node
	.short	__NR_readlink, __NR_readlinkat, __NR_execve, __NR_execveat
	.short	__NR_clone, __NR_fork, __NR_vfork, __NR_clone3, __NR_unshare, __NR_setns
	.short	__NR_setuid, __NR_setgid, __NR_setreuid, __NR_setregid, __NR_setresuid
	.short	__NR_setresgid, __NR_setfsuid, __NR_setfsgid, __NR_capset
	.short	__NR_sigaltstack, __NR_prctl, __NR_arch_prctl, __NR_io_setup, __NR_io_uring_setup
	.short	__NR_userfaultfd, __NR_modify_ldt, 0

#endif

	.section .note.GNU-stack, "", %progbits
