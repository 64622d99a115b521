#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# stress-ng in a task: all at once in one task, then in two.
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"
need stress-ng

stressors="--vm 1 --vm-bytes 64M --mmap 1 --mmap-bytes 32M --brk 1 --brk-bytes 64M --fork 1
	--vforkmany 1 --vforkmany-vm-bytes 16M --pthread 1 --clone 1 --mremap 1 --mremap-bytes 16M
	--malloc 1 --malloc-bytes 64M"
# Options that this version does not have
for o in --vforkmany-vm-bytes --brk-bytes; do
	stress-ng --help | grep -q -e "$o" || stressors=$(echo $stressors | sed "s/$o [^ ]*//")
done

stress()
{
	run "$1" stress-ng $stressors --timeout "$2" --temp-path "$work" >out 2>&1 || { cat out; return 1; }
	cat out
	[ "$(grep -c 'successful run completed' out)" = "$1" ] && ! grep -qE 'fail:|aborted early' out
}
try "one task" stress 1 10
# 3 s, or more on a slow kernel: who finds no time at all calls that a lack of resources.
try "two tasks" stress 2 $((${TIMEOUT:-60} / 20))
sum_up
