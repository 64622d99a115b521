#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The one-sided component pvas, with MPI programs as tasks of one space.
#
#	make -s -C osc_glue all tests && osc_glue/tests/run.sh
#	selftests/vm/run -- osc_glue/tests/run.sh		# with the module
#
# Names as arguments run only those tests. The last line is the sum.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
bin=$B/osc_glue/tests
# shellcheck source=btl_glue/tests/mpilib
. "$top/btl_glue/tests/mpilib"
only=("$@")

# One rank with a component of another version
other_version()
{
	timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend user \
		-n 1 -x OMPI_MCA_mca_base_component_path="$B/osc_glue/other:$B/btl_glue:SYSTEM_DEFAULT" \
		"$bin/selected" none : -n 1 "$bin/selected" none
}

# One rank that does not use it
not_everywhere()
{
	timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend user \
		-n 1 -x OMPI_MCA_osc=^pvas "$bin/selected" none : -n 1 "$bin/selected" none
}

# Functions and variables shared between files are mca_osc_pvas_*, or those of the other components.
convention()
{
	local names

	names=$(nm --defined-only --extern-only "$B"/osc_glue/*.o | awk 'NF == 3 { print $3 }')
	[ "$(wc -l <<<"$names")" -ge 30 ] || return
	! grep -vE '^mca_(osc|btl|coll)_pvas(_|$)' <<<"$names"
}

# Data for memory that its owner has unmapped go nowhere: the origin ends.
unmapped()
{
	! tasks 2 die kill unmapped >"$T/said" 2>&1 && grep -q 'signal 11' "$T/said" && return
	cat "$T/said"
	return 1
}

parameters()
{
	ompi_info --param osc pvas --level 9 | grep -q osc_pvas_poll_interval
}

[ -x "$bin/operators" ] || { echo "run.sh: no tests built (make -C osc_glue all tests)" >&2; exit 1; }

try parameters		parameters
try left-out		tasks 2 OMPI_MCA_osc=^pvas selected none
try not-a-task		mpi -n 2 "$bin/selected" none
for n in 1 2 3 4 7; do
	try "selected-$n"	tasks $n selected
	try "kinds-$n"		tasks $n kinds
	try "operators-$n"	tasks $n operators
	try "epochs-$n"		tasks $n epochs $((240 / n))
done
for n in 1 2 3; do
	try "memory-$n"		tasks $n memory
done
try layouts		tasks 2 layouts
try flushes		tasks 1 flushes
try lengths		tasks 2 lengths
# The second number is a seed.
try atomics-2		tasks 2 atomics 10000 1
try atomics-4		tasks 4 atomics 100 2
try atomics-16		tasks 16 atomics 20 3
try threads-2		tasks 2 threads 60
try threads-4		tasks 4 threads 20
# Fences and windows without coll/pvas, messages over vader
try other-layers	tasks 3 OMPI_MCA_coll=^pvas OMPI_MCA_btl=self,vader epochs 60
for state in exclusive fence put; do
	try "stop-$state"	tasks 3 die stop $state
done
if [ $backend = kernel ]; then
	# Half of the ranks are in no space.
	try mixed	mpi -n 2 "$B/pvasrun/pvasexec" "$bin/selected" none : -n 2 "$bin/selected" none
fi
if [ $backend = user ]; then
	try convention	convention
	says version	'not used with rank [01], which has another version' other_version
	try not-everywhere not_everywhere
	# No other component that could notice first
	alone=(OMPI_MCA_pml=ob1 'OMPI_MCA_btl=self,vader' OMPI_MCA_coll=^pvas)
	# Each call of the progress function takes a time slice.
	fails lost	'osc pvas: rank 2 on this node ended before MPI_Finalize' \
			tasks 3 "${alone[@]}" OMPI_MCA_mpi_yield_when_idle=1 lost
	# Nobody ends the others but they themselves.
	options=(--no-kill)
	for state in exclusive shared lock_all fence start wait free poll put accumulate; do
		fails "kill-$state" 'osc pvas: rank 2 on this node ended before MPI_Finalize' \
				tasks 3 "${alone[@]}" die kill $state
	done
	# At a moment of its own choice: whichever component is just using its memory notices.
	for seed in 1 2 3 4 5; do
		fails "kill-$seed" '(osc|pml|btl) pvas: rank 2 on this node ended before MPI_Finalize' \
				tasks 3 die kill $seed
	done
	bad kill-create	tasks 3 die kill create
	fails exec	'(osc|pml|btl) pvas: rank 1 on this node ended before MPI_Finalize' \
			tasks 2 die exec shared
	options=()
	try unmapped	unmapped
fi

sum_up
