/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A boot sector whose guest never leaves its memory alone: it fills 1 MiB to 13 MiB with
 * words that are all different, then changes a word of every page of the first 4 MiB of
 * them with each tick of its timer, 18 times a second: in between it leaves the CPU to
 * the machine around it. At 0x8000 stands how often it has been through.
 */
	.code16
	.text
	.globl	_start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	$0x2401, %ax		/* A20 on */
	int	$0x15
	lgdt	gdt_where
	lidt	idt_where
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmp	$8, $flat

	.code32
flat:
	movw	$16, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movl	$0x7c00, %esp
	cld
	movl	$0x100000, %edi
	movl	$0xc00000 / 4, %ecx
	movl	$1, %eax
fill:
	imull	$1664525, %eax, %eax
	addl	$1013904223, %eax
	stosl
	loop	fill
	movl	$0, 0x8000
	movb	$0xfe, %al		/* no interrupt but the timer's */
	outb	%al, $0x21
	sti
pass:
	movl	$0x100000, %edi
	movl	$0x400000 / 4096, %ecx
touch:
	addl	%ecx, 8(%edi)
	addl	$4096, %edi
	loop	touch
	incl	0x8000
	hlt
	jmp	pass

tick:
	pushl	%eax
	movb	$0x20, %al
	outb	%al, $0x20
	popl	%eax
	iret

	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9a000000ffff	/* code, all of the memory */
	.quad	0x00cf92000000ffff	/* data, the same */
gdt_where:
	.word	. - gdt - 1
	.long	gdt

	.balign	8
idt:
	.fill	8, 8, 0
	.word	tick, 8, 0x8e00, 0	/* where the BIOS has put the timer */
idt_where:
	.word	. - idt - 1
	.long	idt

	.org	510
	.word	0xaa55
