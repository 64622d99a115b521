#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# gcc compiles and links as a task; what it made runs as a task.
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"
need gcc

cat >prog.c <<'END'
#include <stdio.h>
#include <math.h>
int main(int argc, char **argv)
{
	double s = 0;
	for (int i = 1; i < 10000; i++)
		s += sin(i) / i;
	printf("%s %d %.9f\n", argv[argc - 1], argc, s);
	return 6;
}
END
# Debian's gcc and cc1 are not position-independent and so can't be tasks themselves;
# they run as a task's children. The assembler and the linker can be both.
refused()
{
	[ "$(od -An -tu2 -j16 -N2 "$(readlink -f "$(command -v gcc)")" | tr -d ' ')" = 2 ] || {
		run 1 gcc --version
		return
	}
	run 1 gcc --version 2>err && return 1
	cat err
	grep -q 'not a position-independent executable' err
}
try "gcc itself, unless it is a PIE, is refused with the reason" refused
try "gcc compiles and links" run 1 sh -c 'gcc -O1 -Wall -o prog prog.c -lm; exit $?'
same "what it made runs" ./prog x y
gcc -S -O1 prog.c
try "the assembler" run 1 as -o prog.o prog.s
same "its output" sh -c 'gcc -c -o want.o prog.s && cmp prog.o want.o && echo same'
try "two at once" run 2 sh -c 'gcc -c -O1 -o $PVAS_RANK.o prog.c; test -s $PVAS_RANK.o'
sum_up
