#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The point-to-point component pvas, with MPI programs as tasks of one space.
#
#	make -s -C pml_glue all tests && pml_glue/tests/run.sh
#	selftests/vm/run -- pml_glue/tests/run.sh		# with the module
#
# Names as arguments run only those tests. The last line is the sum.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
bin=$B/pml_glue/tests
# shellcheck source=btl_glue/tests/mpilib
. "$top/btl_glue/tests/mpilib"
only=("$@")

# Its receivers have little room, so that every message meets a full ring or is left in place.
tiny=(OMPI_MCA_pml_pvas_ring_size=1024 OMPI_MCA_pml_pvas_unexpected_max=2000)
many=100000
[ $backend = user ] || many=10000
# Nothing is copied early.
never=(OMPI_MCA_pml_pvas_copy_limit=0 OMPI_MCA_pml_pvas_unexpected_limit=0)

# One rank with a component of another version
other_version()
{
	timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend user \
		-n 1 -x OMPI_MCA_mca_base_component_path="$B/pml_glue/other:$B/btl_glue:SYSTEM_DEFAULT" \
		"$bin/selected" none : -n 1 "$bin/selected" none
}

# One rank that did not choose it
not_everywhere()
{
	timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend user \
		-n 1 -x OMPI_MCA_pml=ob1 "$bin/selected" none : -n 1 "$bin/selected" none
}

# The third of four ranks has another component, and the ranks before it don't look further.
finalized()
{
	timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend user \
		-n 2 "$bin/finalized" : -n 1 -x OMPI_MCA_pml=ob1 "$bin/finalized" : \
		-n 1 "$bin/finalized"
}

# No data of the program that followed
becomes()
{
	failed_with 'rank 1 on this node ended before MPI_Finalize' tasks 2 becomes "$1" &&
		! grep 'data of the program' "$T/said"
}

# Functions and variables shared between files are mca_pml_pvas_*, or those of the other components.
convention()
{
	local names

	names=$(nm --defined-only --extern-only "$B"/pml_glue/*.o | awk 'NF == 3 { print $3 }')
	[ "$(wc -l <<<"$names")" -ge 30 ] || return
	! grep -vE '^mca_(pml|btl|coll)_pvas(_|$)' <<<"$names"
}

parameters()
{
	OMPI_MCA_pml='' ompi_info --param pml pvas --level 9 | grep -q pml_pvas_unexpected_max
}

[ -x "$bin/calls" ] || { echo "run.sh: no tests built (make -C pml_glue all tests)" >&2; exit 1; }

unset OMPI_MCA_pml
try by-default		tasks 2 selected
try ob1			tasks 2 OMPI_MCA_pml=ob1 selected none
try excluded		tasks 2 OMPI_MCA_pml=^pvas,cm,ucx,monitoring selected none
try others-excluded	tasks 2 OMPI_MCA_pml=^cm,ucx,monitoring selected
export OMPI_MCA_pml=pvas
try selected		tasks 3 selected
try first-of-two	tasks 2 OMPI_MCA_pml=pvas,ob1 selected
try alone		tasks 1 selected
try plain		mpi -n 2 "$bin/selected" none
try parameters		parameters
for n in 2 3; do
	try "calls-$n"	tasks $n calls
done
for n in 1 2 3 4 7; do
	try "special-$n" tasks $n special
	try "order-$n"	tasks $n order 8
	try "comms-$n"	tasks $n comms 10
done
try types		tasks 2 types
try types-shared	tasks 2 OMPI_MCA_pml_pvas_share_limit=64 \
			OMPI_MCA_pml_pvas_share_piece=4096 types
try order-tiny		tasks 3 "${tiny[@]}" order 4
try order-never		tasks 3 "${never[@]}" order 8
try types-never		tasks 2 "${never[@]}" types
try shared-copies	tasks 2 OMPI_MCA_pml_pvas_share_limit=4096 \
			OMPI_MCA_pml_pvas_share_piece=4096 OMPI_MCA_pml_pvas_first_touch=1 special
try flood		tasks 2 flood $many 3000000
try flood-4		tasks 4 flood $many 3000000
try threads		tasks 2 threads 200
try threads-3		tasks 3 "${tiny[@]}" threads 60
try freed		tasks 2 freed
try callback		tasks 2 callback
try stopped		tasks 3 die stop 1
# Collective operations of Open MPI itself, with their negative tags
try collectives		tasks 4 OMPI_MCA_coll=^pvas order 3
if [ $backend = user ]; then
	try convention	convention
	try calls-tiny	tasks 3 "${tiny[@]}" calls
	says version	'not used with rank [01], which has another version' other_version
	try not-everywhere not_everywhere
	try finalized	finalized
	# Each call of the progress function takes a time slice.
	fails lost	'pml pvas: rank 2 on this node ended before MPI_Finalize' \
			tasks 3 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml_pvas_spin=1 \
			OMPI_MCA_btl=self,vader OMPI_MCA_coll=^pvas lost
	# Nobody ends the others but they themselves.
	options=(--no-kill)
	for seed in 1 2 3 4 5; do
		fails "killed-$seed" 'rank 2 on this node ended before MPI_Finalize' \
				tasks 3 die kill $seed
	done
	fails exec	'rank 1 on this node ended before MPI_Finalize' tasks 2 die exec 6
	# The program that follows has the addresses of the one before it.
	options+=(--no-aslr)
	for how in send early bcast receive; do
		try "becomes-$how" becomes $how
	done
	options=(--no-kill)
	fails replaced	'rank 1 on this node ended before MPI_Finalize' tasks 2 die replace 1
	# Each place of the protocol: points.sh without arguments
	try points	"$here/points.sh" 2
	fails over-vader 'pml pvas: rank 2 on this node ended before MPI_Finalize' \
			tasks 3 OMPI_MCA_btl=self,vader die kill 7
	fails noticed	'pml pvas: rank 7 on this node ended before' tasks 8 noticed receive
	fails noticed-coll 'coll pvas: rank 7 on this node ended before' \
			tasks 8 OMPI_MCA_pml=ob1 noticed ibarrier
	options=()
fi

sum_up
