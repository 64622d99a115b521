#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The collective component pvas, with MPI programs as tasks of one space.
#
#	make -s -C coll_glue all tests && coll_glue/tests/run.sh
#	selftests/vm/run -- coll_glue/tests/run.sh		# with the module
#
# Names as arguments run only those tests. The last line is the sum.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
bin=$B/coll_glue/tests
rounds=10
[ ! -e /dev/pvas ] || rounds=3
# shellcheck source=btl_glue/tests/mpilib
. "$top/btl_glue/tests/mpilib"
only=("$@")
# libpmix 5 takes this name for its own, and pvasrun finds the component.
[ ! -e "$B/btl_glue/mca_smsc_pvas.so" ] || unset OMPI_MCA_mca_base_component_path

# Operations on so many elements: 1 is posted, 200 go through the ring, 40000 are read in place.
dies() { fails "$1-$2-$3" "$named" tasks 3 die "${@:2}"; }
named=''

# Ranks with different parameters do not use the component, and one says why.
other_settings()
{
	timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend user \
		-n 1 -x OMPI_MCA_coll_pvas_share=1 "$bin/selected" none : -n 1 "$bin/selected" none
}

# The same on several nodes: no rank may wait for one that does not use the component.
other_nodes_settings()
{
	timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend user -x OMPI_MCA_coll_pvas_node_ranks=2 \
		-n 2 "$bin/nodes" unused 10 3000 : \
		-n 2 -x OMPI_MCA_coll_pvas_segment=1000 "$bin/nodes" unused 10 3000
}

# A command on one processor, with all that it starts
on_one()
{
	local first

	first=$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')
	(taskset -pc "$first" $BASHPID >/dev/null && "$@")
}

# Functions and variables shared between files are mca_coll_pvas_*, or those of btl_glue.
convention()
{
	local names

	names=$(nm --defined-only --extern-only "$B"/coll_glue/*.o | awk 'NF == 3 { print $3 }')
	[ "$(wc -l <<<"$names")" -ge 60 ] || return
	! grep -vE '^mca_(coll|btl)_pvas(_|$)' <<<"$names"
}

# nets_dies NAME RANKS DEVICES RANK: RANK ends in the middle, which pvasrun says, and ends the others.
nets_dies()
{
	local dies=$4

	nets "${@:1:3}" OMPI_MCA_coll_pvas_device_latency=0 devices dies "$dies"
}

# nets NAME RANKS DEVICES [VARIABLE=VALUE]... PROGRAM [ARGUMENT]...
nets()
{
	local name=$1 n=$2 devices=$3 vars=() status dies=${dies:-}

	shift 3
	while [[ $1 == *=* ]]; do
		vars+=("$1")
		shift
	done
	[ ${#only[@]} -eq 0 ] || [[ " ${only[*]} " == *" $name "* ]] || return 0
	env "${vars[@]}" "$here/two-nets" "$n" "$devices" any "$bin/$1" "${@:2}" >"$T/out" 2>&1 </dev/null
	status=$?
	if [ -n "$dies" ] && [ $status != 77 ]; then
		[ $status = $((128 + 14)) ] && grep -q "rank $dies (pid .* died from signal 14" "$T/out"
		status=$?
	fi
	if [ $status = 77 ]; then
		skip "$name" "$(tail -n 1 "$T/out")"
	else
		verdict $status "$name"
	fi
	rm -f "$T/out"
}

[ -x "$bin/move" ] || { echo "run.sh: no tests built (make -C coll_glue all tests)" >&2; exit 1; }

# The tests have more ranks than some machines have processors.
try oversubscribed	tasks 3 OMPI_MCA_coll_pvas_oversubscribed=1 selected chosen
try oversubscribed-10	tasks 10 OMPI_MCA_coll_pvas_oversubscribed=1 selected chosen
try oversubscribed-none	tasks 3 OMPI_MCA_coll_pvas_oversubscribed=1 \
			OMPI_MCA_coll_pvas_when_oversubscribed=0 selected none
try as-many		tasks 3 OMPI_MCA_coll_pvas_oversubscribed=0 selected
# Operations passed on and not, in turns
for n in 3 5; do
	try "chosen-move-$n" tasks $n OMPI_MCA_coll_pvas_oversubscribed=1 move $rounds 40000
	try "chosen-neighbors-$n" tasks $n OMPI_MCA_coll_pvas_oversubscribed=1 neighbors $rounds 40000
done
# Counts that differ: error classes, or the end of the job if one rank has passed the operation on
try chosen-unequal	tasks 3 OMPI_MCA_coll_pvas_oversubscribed=1 \
			unequal bcast scatter allgather allgatherv alltoallw allreduce
for what in gather alltoall reduce reduce_scatter reduce_scatter_block scan exscan; do
	for counts in '0 1 20000' '2 20000 1'; do
		# shellcheck disable=SC2086 # rank and counts
		fails "chosen-differ-$what-${counts%% *}" 'another count or datatype than rank' \
			tasks 3 OMPI_MCA_coll_pvas_oversubscribed=1 differ $what $counts
	done
done
# In a bcast the root's length decides, so that whoever has less room says so.
for counts in '0 20000 1' '1 4000 30000' '0 30000 4000' '2 4000 30000' '1 1 4000'; do
	# shellcheck disable=SC2086 # rank and counts
	fails "chosen-differ-bcast-${counts// /-}" 'MPI_ERR_TRUNCATE|another count or datatype than rank' \
		tasks 3 OMPI_MCA_coll_pvas_oversubscribed=1 differ bcast $counts
done
export OMPI_MCA_coll_pvas_when_oversubscribed=1

try selected		tasks 3 selected
try selected-2		tasks 2 selected
try excluded		tasks 3 OMPI_MCA_coll=^pvas selected none
try low-priority	tasks 3 OMPI_MCA_coll_pvas_priority=1 selected none
try not-offered		tasks 2 OMPI_MCA_coll_pvas_priority=-1 selected none
try one			tasks 1 selected none
try plain		mpi -n 2 "$bin/selected" none
# Numbers of ranks up to and above where coll/basic changes its order
for n in 2 3 4 7; do
	try "move-$n"	tasks $n move $rounds
	try "combine-$n" tasks $n combine $rounds
	try "neighbors-$n" tasks $n neighbors $rounds
	for program in move combine neighbors; do
		try "$program-mixed-$n" tasks $n $program $rounds 20000 mixed
	done
done
for program in move combine neighbors; do
	try "$program-nonblocking-5" tasks 5 $program $rounds 30000 nonblocking
done
for program in move combine neighbors; do
	try "$program-persistent-3" tasks 3 $program $((2 * rounds)) 50000 persistent
done
for n in 2 3 9; do
	try "lengths-$n" tasks $n lengths $((rounds * 1000 / n))
done
try persistent-2	tasks 2 persistent
try persistent-5	tasks 5 persistent
try arrays-3		tasks 3 arrays 300
try inflight-2		tasks 2 inflight
try inflight-5		tasks 5 inflight
try all-by-reference	tasks 3 OMPI_MCA_coll_pvas_ring_limit=0 OMPI_MCA_coll_pvas_share=1 move $rounds 5000
try shared-copies	tasks 4 OMPI_MCA_coll_pvas_share_copy=1 OMPI_MCA_coll_pvas_ring_limit=0 \
			OMPI_MCA_coll_pvas_oversubscribed=0 move 4 7000
try all-share		tasks 4 OMPI_MCA_coll_pvas_share=1 combine $rounds 5000
says clamped 'coll_pvas_ring_limit is 16384, not 17000' \
			tasks 2 OMPI_MCA_coll_pvas_ring_limit=17000 move 2
try behind		tasks 3 behind
try ahead		tasks 3 ahead
try ahead-7		tasks 7 ahead
# Copies are shared only if ranks do not outnumber processors.
try late		tasks 2 OMPI_MCA_coll_pvas_oversubscribed=0 late 5000
# Several nodes, which here share a space: ranks of each node together, or dealt out. Other
# components than basic fail with the datatypes of these tests, with or without us.
below=('OMPI_MCA_coll=pvas,basic,libnbc,self,inter' OMPI_MCA_coll_pvas_segment=1000)
for n in 4 7; do
	for program in move combine; do
		try "nodes-$program-$n" tasks $n "${below[@]}" OMPI_MCA_coll_pvas_node_ranks=2 \
			$program $rounds 1 blocking close
		try "nodes-$program-shuffled-$n" tasks $n "${below[@]}" OMPI_MCA_coll_pvas_node_ranks=3 \
			$program $rounds 7000 blocking shuffled close
	done
done
try nodes-used		tasks 5 OMPI_MCA_coll_pvas_node_ranks=2 nodes used
try nodes-chosen	tasks 4 OMPI_MCA_coll_pvas_node_ranks=2 \
			OMPI_MCA_coll_pvas_when_oversubscribed=-1 \
			OMPI_MCA_coll_pvas_oversubscribed=1 nodes chosen
try nodes-alone		tasks 3 OMPI_MCA_coll_pvas_node_ranks=1 nodes unused
try nodes-off		tasks 4 OMPI_MCA_coll_pvas_node_ranks=2 OMPI_MCA_coll_pvas_segment=0 nodes used
try nodes-too-many	tasks 4 OMPI_MCA_coll_pvas_node_ranks=2 OMPI_MCA_coll_pvas_most_ranks=3 nodes unused
try nodes-excluded	tasks 4 OMPI_MCA_coll_pvas_node_ranks=2 OMPI_MCA_coll=^pvas nodes unused
# Over several network devices; messages of any length are cut.
try schedule		"$bin/schedule"
for n in 6 7; do
	nets devices-$n		$n 4 OMPI_MCA_coll_pvas_device_latency=0 devices used
done
nets devices-one-each	7 4 OMPI_MCA_coll_pvas_device_latency=0 OMPI_MCA_coll_pvas_device_ahead=1 devices used
nets devices-pairs	4 2 OMPI_MCA_coll_pvas_device_latency=0 devices used
nets devices-least	7 4 OMPI_MCA_coll_pvas_device_latency=1000000 devices unused 1
nets devices-off	7 4 OMPI_MCA_coll_pvas_device_latency=0 OMPI_MCA_coll_pvas_devices=0 devices unused 1
for rank in 0 3 6; do
	nets_dies devices-dies-$rank 7 4 $rank
done
nets devices-one	4 1 OMPI_MCA_coll_pvas_device_latency=0 devices unused 1
try threads		tasks 2 threads
try together	tasks 3 together
try mismatch		tasks 3 mismatch
try counters		tasks 2 OMPI_MCA_coll_pvas_oversubscribed=0 counters
try unequal		tasks 3 unequal
# On several nodes, where no rank cuts its data, and the component and the BTL below neither stop
# at an error nor store behind a buffer
try unequal-nodes	tasks 4 "${below[@]::1}" OMPI_MCA_coll_pvas_node_ranks=2 \
			OMPI_MCA_coll_pvas_segment=1000000000 OMPI_MCA_btl=self,vader \
			OMPI_MCA_btl_vader_single_copy_mechanism=none \
			OMPI_MCA_smsc=^pvas,cma,knem,xpmem \
			unequal bcast gather gatherv scatter scatterv reduce reduce_scatter \
			reduce_scatter_block alltoallv alltoallw
try roots		tasks 3 roots
try stopped		tasks 3 stopped
try stopped-2		tasks 2 OMPI_MCA_coll_pvas_oversubscribed=0 stopped 700
try fresh		tasks 2 fresh 5000
try yields		tasks 2 OMPI_MCA_coll_pvas_oversubscribed=0 OMPI_MCA_pml=ob1 \
			OMPI_MCA_btl=self,vader yields
# Ranks bound to fewer processors, by themselves or as the job is
bound=(OMPI_MCA_pml=ob1 'OMPI_MCA_btl=self,vader' OMPI_MCA_mpi_yield_when_idle=0)
try occupancy	"$bin/occupancy"
try bound-before	tasks 2 "${bound[@]}" bound before 1
try bound-after		tasks 2 "${bound[@]}" bound after 1
try bound-4-on-2	tasks 4 "${bound[@]}" bound before 2
try bound-job		on_one tasks 2 "${bound[@]}" bound already
try handlers		tasks 2 OMPI_MCA_pml=ob1 OMPI_MCA_opal_signal=6 handlers first
try handlers-pml	tasks 2 OMPI_MCA_opal_signal=6 handlers
# Without btl/pvas, whose progress function watches peers, too
try over-vader		tasks 3 OMPI_MCA_btl=self,vader combine 2
if [ $backend = user ]; then
	try convention	convention
	try move-16	tasks 16 move 2
	try combine-16	tasks 16 combine 3
	try neighbors-16 tasks 16 neighbors 3 1 mixed
	try move-mixed-16 tasks 16 move 2 1 mixed
	try move-33	tasks 33 move 1
	try combine-33	tasks 33 combine 1
	try ranks-33	tasks 33 ranks 2
	try ranks-chosen-33 tasks 33 OMPI_MCA_coll_pvas_when_oversubscribed=-1 ranks 2
	try many	tasks 2 many 10000
	try many-5	tasks 5 many 500
	# 2 GiB are stored, and little more is read.
	if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt $((5 << 20)) ]; then
		LIMIT=400 try large tasks 2 large
	else
		skip large "not enough memory"
	fi
	says nodes-settings 'not used with rank [0-3], which has another version' other_nodes_settings
	says settings 'not used with rank 1, which has another version' other_settings
fi
# pvasrun names the rank that was lost, or, if it is not to, one that waits for it does.
[ $backend != user ] || named='rank [02] \(pid [0-9]+, .* died from signal'
for what in barrier bcast gather scatter allgather alltoall reduce allreduce scan reduce_scatter \
	neighbor_alltoall ineighbor_alltoallw iallreduce ialltoall pallreduce pgather; do
	dies early $what 40000
done
for what in barrier bcast allgather reduce allreduce gather scatter alltoall reduce_scatter; do
	bad "nodes-early-$what" tasks 5 OMPI_MCA_coll_pvas_node_ranks=2 die $what 40000
	bad "nodes-leader-$what" tasks 5 OMPI_MCA_coll_pvas_node_ranks=2 die $what 40000 2
done
if [ $backend = user ]; then
	# Each turn of a waiting rank takes a time slice.
	for what in barrier ibarrier; do
		fails "lost-$what" 'coll pvas: rank 2 on this node ended before MPI_Finalize' \
				tasks 3 OMPI_MCA_coll_pvas_oversubscribed=1 OMPI_MCA_pml=ob1 \
				OMPI_MCA_btl=self,vader OMPI_MCA_smsc=^pvas lost $what
	done
	# Nobody ends the others but they themselves.
	options=(--no-kill)
	named='(coll|pml|btl|smsc) pvas: rank [02] on this node ended before MPI_Finalize'
	for what in barrier bcast gatherv scatterv allgatherv alltoallw reduce allreduce exscan \
		ibarrier ibcast igather iscatterv iallgatherv ialltoallv ireduce ireduce_scatter iscan \
		neighbor_allgather ineighbor_alltoall; do
		for n in 1 200 40000; do
			dies alone $what $n
		done
	done
	# Rank 0 has the memory that all use.
	dies first allreduce 1 0
	dies first bcast 200 0
	fails names-it 'coll pvas: rank 2 on this node ended before MPI_Finalize' \
			tasks 3 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_smsc=^pvas die allreduce 1
	options=()
fi

sum_up
