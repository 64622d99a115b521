/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PVAS_LOADER_BIN is the flat binary that the Makefile builds from this folder. */
	.section .rodata
	.balign	16
	.globl	pvas_blob, pvas_blob_end
	.hidden	pvas_blob, pvas_blob_end
	.type	pvas_blob, @object
pvas_blob:
	.incbin	PVAS_LOADER_BIN
pvas_blob_end:
	.size	pvas_blob, . - pvas_blob

	.section .note.GNU-stack, "", @progbits
