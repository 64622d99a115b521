/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two ways into the blob. Their offsets are what loader/blob.h says: 0 for
 * a task, 16 for the process that becomes a space.
 */
	.section .text.start, "ax", @progbits
	.globl	_start
	.type	_start, @function
_start:
	jmp	task
	.balign	16, 0xcc
	jmp	make
	.balign	16, 0xcc

/*
 * A task: %rsp = System V process stack, %rdi = struct pvas_start *. What is
 * left of ours on the way out is what the ABI promises a program: %rdx = 0 (no
 * function to register with atexit), the rest cleared, nothing of the loader.
 */
task:
	xorl	%ebp, %ebp
	movq	%rsp, %rbx
	movq	%rsp, %rsi
	andq	$-16, %rsp
	call	pvas_loader_main
	movq	%rbx, %rsp
	/* In the red zone, where signals leave it alone: no register is free. */
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

/* %rdi = struct pvas_make *, %rsp = top of the scratch stack; no way back. */
	.type	make, @function
make:
	xorl	%ebp, %ebp
	andq	$-16, %rsp
	call	pvas_make_main
	ud2
	.size	make, . - make

	.section .note.GNU-stack, "", @progbits
