#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# MPI programs as tasks of one space, over the BTL pvas. Run it where /dev/pvas
# is, for example:
#
#	make -C btl_glue all tests && selftests/vm/run -- btl_glue/tests/run.sh
#
# Names as arguments run only those tests. Last line: "N passed, N failed".
# Exit status 0, 1: some failed, 77: can't be run here.

here=$(dirname "$(readlink -f "$0")")
top=$here/../..
B=${O:-$top/build}
T=$B/btl_glue/tests
EXEC=$B/pvasrun/pvasexec
LIMIT=${LIMIT:-120}		# seconds a test; a virtual machine is slow
MPIRUN="mpirun --allow-run-as-root --oversubscribe --mca btl_vader_backing_directory /tmp"
export OMPI_MCA_mca_base_component_path=$B/btl_glue:SYSTEM_DEFAULT
out=$(mktemp)
trap 'rm -f "$out"' EXIT
passed=0 failed=0
wanted=("$@")

is_wanted()
{
	local w

	[ ${#wanted[@]} -eq 0 ] && return 0
	for w in "${wanted[@]}"; do
		[ "$w" = "$1" ] && return 0
	done
	return 1
}

verdict()	# name ok seconds
{
	if [ "$2" = 0 ]; then
		passed=$((passed + 1))
		echo "ok   $1 (${3} s)"
	else
		failed=$((failed + 1))
		echo "FAIL $1 (${3} s)"
		sed 's/^/     /' "$out" | tail -25
	fi
}

# name, then the arguments of mpirun: must succeed
good()
{
	local name=$1 t=$SECONDS

	shift
	is_wanted "$name" || return
	timeout -k 5 "$LIMIT" $MPIRUN "$@" >"$out" 2>&1
	verdict "$name" $? $((SECONDS - t))
}

# name, a pattern the output must have, arguments: must fail, in time, with no crash of a rank
bad()
{
	local name=$1 pattern=$2 t=$SECONDS status ok=0

	shift 2
	is_wanted "$name" || return
	timeout -k 5 "$LIMIT" $MPIRUN "$@" >"$out" 2>&1
	status=$?
	[ $status -ne 0 ] && [ $((SECONDS - t)) -lt "$LIMIT" ] || ok=1
	grep -Eq "$pattern" "$out" || ok=1
	! grep -Eq "signal 11|Segmentation fault|signal 7|Bus error" "$out" || ok=1
	verdict "$name" $ok $((SECONDS - t))
}

[ -e /dev/pvas ] || { echo "no /dev/pvas: run it in a machine with the module"; exit 77; }
[ -x "$T/ring" ] && [ -x "$EXEC" ] || { echo "not built: make -C btl_glue all tests"; exit 77; }

good ring		-n 4 "$EXEC" "$T/ring" 50
good counters		-n 3 "$EXEC" "$T/counters"
good alltoall		-n 2 "$EXEC" "$T/alltoall"
good alltoall-4		-n 4 "$EXEC" "$T/alltoall" 10000
good tiny-queue		-n 2 --mca btl_pvas_queue_size 1 --mca btl_pvas_fbox_threshold 0 \
			"$EXEC" "$T/alltoall" 10000
good tiny-box		-n 3 --mca btl_pvas_fbox_size 1 --mca btl_pvas_fbox_max 1 \
			--mca btl_pvas_fbox_threshold 2 "$EXEC" "$T/alltoall" 10000
good send-only		-n 2 --mca btl_pvas_flags send "$EXEC" "$T/alltoall" 100000
good rma		-n 2 "$EXEC" "$T/rma"
good rma-rdma		-n 2 --mca osc rdma "$EXEC" "$T/rma"
good threads		-n 2 "$EXEC" "$T/threads"
# Ranks that share no space speak through vader, also with those that do.
good plain		-n 2 "$T/counters" none
good mixed		-n 2 "$EXEC" "$T/alltoall" 10000 : -n 2 "$T/alltoall" 10000
good two-spaces		-n 2 "$EXEC" --key one "$T/alltoall" 10000 : \
			-n 2 "$EXEC" --key two "$T/alltoall" 10000
good excluded		-n 2 --mca btl ^pvas "$EXEC" "$T/counters" none
bad early-exit		'ended before|exited|abort|terminated' -n 3 "$EXEC" "$T/early" exit
bad early-kill		'ended before|exited|abort|terminated' -n 3 "$EXEC" "$T/early" kill
bad early-middle	'ended before|ended while|exited|abort|terminated' \
			-n 3 "$EXEC" "$T/early" middle

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
