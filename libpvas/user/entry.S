/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: functions for stay_signal.c and stay_task.c that no compiler can make */
#include "linux_names.h"

	.text

#define FUNCTION(name)			\
	.hidden	name;			\
	.globl	name;			\
	.type	name, %function;	\
name

#ifdef __aarch64__

FUNCTION(user_stay_return):
	mov	x8, __NR_rt_sigreturn
	svc	#0
	.size	user_stay_return, . - user_stay_return

/* The argument is passed on. */
FUNCTION(user_stay_call):
	stp	x29, x30, [sp, #-16]!
	mov	x29, sp
	mov	sp, x1
	blr	x2
	mov	sp, x29
	ldp	x29, x30, [sp], #16
	ret
	.size	user_stay_call, . - user_stay_call

FUNCTION(user_stay_make_call):
	mov	x16, x1
	mov	x1, xzr
	mov	x2, xzr
	mov	x3, xzr
	mov	x8, __NR_rt_sigaction
	br	x16
	.size	user_stay_make_call, . - user_stay_make_call

#else

FUNCTION(user_stay_return):
	movl	$__NR_rt_sigreturn, %eax
	syscall
	.size	user_stay_return, . - user_stay_return

/* The argument is passed on. */
FUNCTION(user_stay_call):
	pushq	%rbp
	movq	%rsp, %rbp
	movq	%rsi, %rsp
	call	*%rdx
	movq	%rbp, %rsp
	popq	%rbp
	ret
	.size	user_stay_call, . - user_stay_call

FUNCTION(user_stay_make_call):
	movq	%rsi, %r8
	xorl	%esi, %esi
	xorl	%edx, %edx
	xorl	%r10d, %r10d
	movl	$__NR_rt_sigaction, %eax
	jmp	*%r8
	.size	user_stay_make_call, . - user_stay_make_call

#endif

	.section .note.GNU-stack, "", %progbits
