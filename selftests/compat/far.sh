#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Far memory with the module: each task pages its own partition. The tasks are those of
# libpvas/far/tests/job, ordinary programs. FAR_ALL=1: all tests, and FAR_TASKS
# tasks, by default 240 ("make far-kernel").
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"

[ "$backend" = kernel ] || skip_all "libpvas/far/tests/job has these for the user backend"
far=$PVAS_BUILD/libpvasfar
task=$far/tests/task
[ -x "$task" ] || skip_all "no $task"
export FAR_TEST_FILE=$T/records PVAS_FAR_PLUGINS=$far
options=(--mpi none --far-page 64K)
# For the test "device"; it may be part of the kernel.
modprobe fuse 2>/dev/null

# far NAME N [OPTION...]: that test of the program, as N tasks with 16 MiB each
far()
{
	local name=$1 n=$2
	shift 2
	rm -f "$FAR_TEST_FILE"
	options+=(--ram $((16 * n))M "$@")
	report "far: $name $*" "$(run "$n" "$task" "$name" 2>&1 </dev/null || echo "exit status $?")"
	options=(--mpi none --far-page 64K)
}

# refuses NAME WORDS COMMAND...: it ends with status 1 and a line that has these words
refuses()
{
	local name=$1 words=$2 status
	shift 2
	"$@" >"$T/out" 2>&1 </dev/null
	status=$?
	report "far: refused: $name" "$([ $status -eq 1 ] && grep -q -- "$words" "$T/out" ||
		{ echo "exit status $status"; cat "$T/out"; })"
}

# A job of 15 GiB, which has an eighth of that in all
many()
{
	local n=${FAR_TASKS:-240}
	options=(--mpi none --ram $((n * 17 / 2))M)
	report "far: $n tasks" "$(run "$n" "$task" large 2>&1 </dev/null || echo "exit status $?")"
}

if [ "${FAR_ALL:-}" ]; then
	far fill 2 --far "file:$T" --far-protocol r77
	far peer 3 --far "file:$T" --far-page auto
	far peer 3 --far "file:$T"
	far device 1 --far "file:$T" --far-page 4K
	far append 2 --far "file:$T"
	for name in calls waiting file spans stacks remap neighbours madvise mprotect closed messages unmap protection \
			fixed fork exec threads fuzz watched; do
		far "$name" 1
	done
fi
far fill 2 --far "file:$T"
far leaving 2
for name in device heap again; do
	far "$name" 1
done
chmod 666 /dev/pvas
options=(--mpi none --ram 16M)
refuses "no faults of the kernel" "vm.unprivileged_userfaultfd" setpriv --reuid=65534 --regid=65534 --clear-groups \
	--bounding-set=-all "$pvasrun" --backend kernel "${options[@]}" --far-page 64K -n 1 "$task" unmap
options+=(--far-page 1M)
refuses "a budget that is too small" "for each task" run 64 "$task" unmap
options=(--mpi none --ram 16M --far "file:$T/none")
refuses "no such folder" "No such file" run 1 "$task" unmap
[ -z "${FAR_ALL:-}" ] || many
sum_up
