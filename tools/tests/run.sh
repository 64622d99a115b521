#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests the statements of doc/tools.md about perf, valgrind and the sanitizers.
#
# BACKEND	user (natively) or kernel (on a machine with the module)
# O		where things are built

BACKEND=${BACKEND:?user or kernel?}
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd) || exit 1
O=$(readlink -f "${O:-$top/build}")
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
cd "$T" || exit 1

says() { grep -qE -- "$2" "$T/out"; verdict $? "$1"; }
says_not() { ! grep -qE -- "$2" "$T/out"; verdict $? "$1"; }
run() { timeout 120 "$@" >"$T/out" 2>&1; }
tasks() { run "$O/pvasrun/pvasrun" --backend "$BACKEND" -q -n 2 "$@"; }
build() { gcc -g -O1 -pie -fPIE "$@" "$top/tools/tests/twirl.c"; }

build -DTWIRL=twirl -o twirl && build -DTWIRL=whirl -o whirl && build -DTWIRL=twirl -fsanitize=undefined -o ubsan &&
	build -DTWIRL=twirl -fsanitize=address -o asan || exit 1

# ---- perf: each task's samples have its own program's names ----

if run perf record -q -e cpu-clock -o none.data true; then
	run perf record -q -e cpu-clock -F 200 -o all.data "$O/pvasrun/pvasrun" --backend "$BACKEND" -q \
		-n 2 ./twirl : -n 1 ./whirl
	says "the job runs under perf" '^done'
	run perf report -i all.data --stdio --sort comm,dso,symbol
	says "a task's symbols" '^ +[0-9.]+% +twirl +twirl +\[\.\] twirl'
	says "the other program's" '^ +[0-9.]+% +whirl +whirl +\[\.\] whirl'
	says_not "none without a name" '^ +[1-9][0-9.]+% +[tw][a-z]*irl .*(\[unknown\]|\[\.\] 0x)'
else
	skip "perf: it can't record here ($(tail -n 1 "$T/out" | cut -c1-60))"
fi

# ---- the sanitizers ----

tasks ./ubsan overflow
says "UBSan finds an overflow" 'twirl\.c:[0-9]+:[0-9]+: runtime error: signed integer overflow'
says "and the task goes on" '^done'
tasks ./asan heap
says "ASan says that it can't" 'Shadow memory range interleaves with an existing memory mapping'
run ./asan heap
says "but it can outside" 'heap-buffer-overflow'

# ---- the heap ----

LD_PRELOAD=libc_malloc_debug.so.0 GLIBC_TUNABLES=glibc.malloc.check=3 tasks ./twirl heap
says "glibc's heap check" 'free\(\): invalid pointer'
tasks valgrind -q ./twirl heap
says "valgrind, in plain processes" 'Invalid write of size'
says "which end well" '^done'

sum_up
