#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The parameter refuse_ia32: a task has no ia32 system call, others have all.

. "$(dirname "$0")/common"

ko=$PVAS_BUILD/$(uname -r)/pvas.ko
need_root
[ -e "$ko" ] || skip_all "no $ko"
ia32=$PVAS_BUILD/selftests/attack/ia32
$ia32 getpid >/dev/null || skip_all "this kernel has no int 0x80"

check "in a task, by default" task "$ia32" getpid
reload refuse_ia32=1
check "the parameter can be read" grep -qx Y /sys/module/pvas/parameters/refuse_ia32
check "outside, while no space exists" "$ia32" getpid
for call in getpid brk mmap2 open fork waitpid sigreturn; do
	check "in a task: $call is refused" task "$ia32" "$call" EPERM
done
check "a 64-bit call of the same kind" task /bin/sh -c 'echo $$ >/dev/null'
# While a space exists, a process outside of it is left alone.
"$PVAS_BUILD/pvasrun/pvasrun" --backend kernel -n 1 /bin/sleep 30 &
sleeper=$!
await_spaces 1
check "outside, while a space exists" "$ia32" getpid
kill "$sleeper"
wait "$sleeper"
reload
check "in a task, after it was inserted without" task "$ia32" getpid
end_attack
