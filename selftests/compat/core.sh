#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The contents of a task's core file: its own partition and the header, not its peers' memory.
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"
need readelf
case $backend$(uname -r) in
kernel5.*) skip_all "before Linux 5.16 a task has no core file" ;;
esac

pattern=/proc/sys/kernel/core_pattern
switch=/sys/module/pvas/parameters/whole_cores
[ -w $pattern ] && [ -w $switch ] || skip_all "not root: core_pattern is not ours to change"
was=$(cat $pattern)
trap 'echo "$was" >$pattern; echo N >$switch; rm -rf "$T"' EXIT
echo "$T/work/core" >$pattern
ulimit -c unlimited

# shellcheck disable=SC2034 # run uses it
options=(--partition-size 64G)

# dump WHAT: three tasks, of which rank 1, in partition 2, does this when all are there
dump()
{
	rm -f core up.*
	run 3 bash -c ">up.\$PVAS_RANK; [ \$PVAS_RANK != 1 ] || {
		until [ -e up.0 -a -e up.2 ]; do sleep 0.1; done; $1; }; sleep 300 & wait" 2>/dev/null
	[ -s core ]
}

# The partitions (of 64 GiB: nine hexadecimal digits) whose mappings are in the core; the vdso and
# vvar lie within a random TiB below the stack, so from 0x7ef on.
partitions() { readelf -lW core | awk '$1 == "LOAD" { print substr($3, 3, 7) }' | sort -u | grep -v '^00007[ef]\|^f'; }

# bytes PARTITION: how much of it is there
bytes()
{
	readelf -lW core | awk -v p="$1" '$1 == "LOAD" && substr($3, 3, 7) == p { print $5 }' |
		(sum=0; while read -r size; do sum=$((sum + size)); done; echo $sum)
}
holds() { echo "holds $(partitions | paste -sd' '), not $1"; [ "$(partitions | paste -sd' ')" = "$1" ]; }

try "a task that dies of a signal dumps core" dump "kill -SEGV \$\$"
try "its partition and the header" holds "0000000 0000002"
try "the header's memory" test "$(bytes 0000000)" -gt 4096
try "its own memory" test "$(bytes 0000002)" -gt 65536
try "each mapping once" sh -c '[ -z "$(readelf -lW core | awk "/LOAD/ { print \$3 }" | sort | uniq -d)" ]'
try "notes are in order" sh -c 'readelf -n core | grep -q NT_FILE && readelf -n core | grep -q NT_PRSTATUS'
try "no file of a peer in the notes" sh -c '! readelf -n core | grep -q "^ *0x00000010\|^ *0x00000030"'
try "ends where it says" sh -c '! readelf -a core 2>&1 | grep -qi "warning\|error"'

echo Y >$switch
try "dumps with whole_cores" dump "kill -SEGV \$\$"
try "then the whole space" holds "0000000 0000001 0000002 0000003"
echo N >$switch

try "a fork child of a task dumps core" dump "(kill -SEGV \$BASHPID); kill -9 \$\$"
try "its copy of the partition" test "$(bytes 0000002)" -gt 65536

try "nothing is left" ended
sum_up
