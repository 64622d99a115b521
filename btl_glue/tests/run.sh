#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# MPI programs as tasks of one space, over the BTL pvas.
#
#	make -s -C btl_glue all tests && btl_glue/tests/run.sh
#	selftests/vm/run -- btl_glue/tests/run.sh		# with the module
#
# With /dev/pvas ranks are started by mpirun and pvasexec, else on the user
# backend. Names as arguments run only those tests. The last line is the sum.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
bin=$B/btl_glue/tests
longest=$((8 << 20)) tiny=4100 rounds=60 init_ms='2 10 20 30 40 60 80 100'
if [ -e /dev/pvas ]; then
	longest=100000 tiny=300 rounds=12 init_ms='300 900'
fi
# shellcheck source=btl_glue/tests/mpilib
. "$here/mpilib"
only=("$@")
# Collective operations are made of messages here, and these go through the BTL.
export OMPI_MCA_coll=^pvas OMPI_MCA_pml=ob1

segv_ends() { tasks 3 OMPI_MCA_opal_signal=6 early segv 2>&1 | grep -q 'died from signal 11'; }
wild_ends() { tasks 3 OMPI_MCA_opal_signal=6 early wild 2>&1 | grep -q 'died from signal 11'; }

# most_held N: of all ranks, and of the one that had most, after 30 all-to-alls
most_held()
{
	tasks "$1" ../bench/memory space 30 | awk '{ print $5, $6 }'
}

# in_shm N: what vader has there, likewise
in_shm()
{
	mpi -n "$1" --mca btl self,vader "$B/btl_glue/bench/memory" processes 30 |
		awk '{ print 1024 * $3 }'
}

# A quarter of vader's memory, and no more for a rank of 64 than for one of 4, but for
# the fragments that one needs and the other does not
lean()
{
	local all most least=0 theirs n

	for n in 4 16 64; do
		read -r all most < <(most_held $n)
		theirs=$(in_shm $n)
		echo "$n ranks: ${all:=0} bytes, ${most:=0} of one; vader $theirs"
		[ "$all" -gt 0 ] && [ $((4 * all)) -le "${theirs:-0}" ] || return 1
		[ "$least" -gt 0 ] || least=$most
		[ $((100 * most)) -le $((115 * least)) ] || return
	done
}

# A rank of Open MPI takes up to 500 memory maps, of which a space has a limited number..
MAPS=800

# The bytes of the rank that had most, within a tenth of what pvas-scale computes
model()
{
	local most wanted limit n

	read -r limit </proc/sys/vm/max_map_count
	for n in 4 9 16 25 36 64 100 144 225; do
		[ $((n * MAPS)) -le "$limit" ] || { echo "$n ranks: vm.max_map_count"; break; }
		read -r _ most < <(most_held $n)
		wanted=$("$B/scale/pvas-scale" memory --model pvas --ranks $n --csv | sed -n '2s/.*,//p')
		echo "$n ranks: ${most:=0} bytes, model ${wanted:=0}"
		[ $((10 * most)) -ge $((9 * wanted)) ] && [ $((10 * most)) -le $((11 * wanted)) ] &&
			[ "$wanted" -gt 0 ] || return
	done
}

# of_version OFFSET VALUE PROGRAM [ARGUMENT]...: with a copy of the component whose struct
# has this number there: 0 the interface's major version, 32 Open MPI's minor one
of_version()
{
	local at start offset component=$B/btl_glue/mca_btl_pvas.so

	cp "$component" "$T" || return
	read -r at < <(readelf -sW "$component" | awk '$8 == "mca_btl_pvas_component" { print $2; exit }')
	read -r start offset < <(readelf -SW "$component" |
		sed -n 's/^ *\[ *[0-9]*\] \.data  *[A-Z]* *//p')
	# shellcheck disable=SC2059
	printf "\\x$(printf %02x "$2")" | dd of="$T/mca_btl_pvas.so" bs=1 conv=notrunc status=none \
		seek=$((16#$at - 16#${start% *} + 16#${offset%% *} + $1)) || return
	tasks 2 OMPI_MCA_mca_base_component_path="$T:SYSTEM_DEFAULT" "${@:3}"
}

# All parameters, but those that choose who is used and what Open MPI itself refuses
parameters()
{
	ompi_info --param btl pvas --level 9 --parsable |
		sed -n 's/^mca:btl:pvas:param:\(btl_pvas_[a-z_]*\):value:.*/OMPI_MCA_\1/p' |
		grep -vE '_(exclusivity|flags|get_limit|put_limit|eager_limit)$'
}

# all_are VALUE: each parameter; each_is VALUE...: one after the other, which takes minutes
all_are()
{
	local settings

	mapfile -t settings < <(parameters)
	[ ${#settings[@]} -gt 12 ] && tasks 2 "${settings[@]/%/=$1}" alltoall "$tiny"
}

each_is()
{
	local name value

	for value; do
		for name in $(parameters); do
			tasks 2 "$name=$value" alltoall "$tiny" || { echo "$name=$value"; return 1; }
		done
	done
}

# Functions and variables shared between files are mca_btl_pvas_*, as in Open MPI's components.
convention()
{
	local file names objects=()

	for file in "$here"/../*.c; do
		file=${file##*/}
		objects+=("$B/btl_glue/${file%.c}.o")
	done
	names=$(nm --defined-only --extern-only "${objects[@]}" | awk 'NF == 3 { print $3 }')
	[ "$(wc -l <<<"$names")" -ge 30 ] || return
	! grep -vE '^mca_btl_pvas(_|$)' <<<"$names"
}

[ -x "$bin/ring" ] || { echo "run.sh: no tests built (make -C btl_glue all tests)" >&2; exit 1; }

# The ring buffer alone
for how in kill single many; do
	try records-$how	"$bin/records" $how
done
try distance		"$bin/distance"
try ring		tasks 4 ring 50
try counters		tasks 3 counters
try alltoall		tasks 2 alltoall "$longest"
try alltoall-4		tasks 4 alltoall 10000
try late-finalize	tasks 2 late
try limits-differ	tasks 2 OMPI_MCA_btl_pvas_queue_size=1 OMPI_MCA_btl_pvas_fbox_threshold=0 \
			limits_differ
try tiny-queue		tasks 2 OMPI_MCA_btl_pvas_queue_size=1 \
			OMPI_MCA_btl_pvas_fbox_threshold=0 alltoall "$tiny"
try tiny-box		tasks 3 OMPI_MCA_btl_pvas_fbox_size=1 OMPI_MCA_btl_pvas_fbox_max=1 \
			OMPI_MCA_btl_pvas_fbox_threshold=2 alltoall 4100
says clamped 'btl_pvas_fbox_size is 8192, not 5000 .whole pages' \
			tasks 2 OMPI_MCA_btl_pvas_fbox_size=5000 ring 5
try long-copies	tasks 3 OMPI_MCA_btl_pvas_copy_limit=4200 \
			OMPI_MCA_btl_pvas_fbox_threshold=2 alltoall "$tiny"
try few-fragments	tasks 3 OMPI_MCA_btl_pvas_free_list_max=2 alltoall "$tiny"
try mixed-sizes	tasks 3 mixed "$rounds"
try mixed-tiny		tasks 3 OMPI_MCA_btl_pvas_fbox_size=1 OMPI_MCA_btl_pvas_fbox_max=1 \
			OMPI_MCA_btl_pvas_queue_size=1 OMPI_MCA_btl_pvas_free_list_max=2 \
			OMPI_MCA_btl_pvas_fbox_threshold=2 OMPI_MCA_btl_pvas_fbox_idle=1 \
			mixed "$rounds"
try window		tasks 2 limits window
for what in packed contiguous header; do
	try starve-$what	tasks 3 starve $what
done
try too-long		tasks 2 OMPI_MCA_btl_pvas_copy_limit=4200 OMPI_MCA_btl_pvas_fbox_size=4096 \
			limits long
try touch		tasks 2 OMPI_MCA_btl_pvas_share_limit=32768 \
			OMPI_MCA_btl_pvas_first_touch=1 touch
says chain 'the first handler was called'	tasks 2 chain
try send-only		tasks 2 OMPI_MCA_btl_pvas_flags=send alltoall 40000
try rma		tasks 2 rma
try rma-rdma		tasks 2 OMPI_MCA_osc=rdma rma
try rma-pt2pt		tasks 2 OMPI_MCA_osc=pt2pt rma
try truncate		tasks 2 truncate
try truncate-long	tasks 2 OMPI_MCA_btl_pvas_eager_limit=20000 truncate 12000
try idle		tasks 3 OMPI_MCA_btl_pvas_fbox_idle=50 idle
try idle-keep		tasks 2 OMPI_MCA_btl_pvas_fbox_idle=0 idle keep
try threads		tasks 2 threads "$rounds"
# More ranks than natively are too many for a virtual machine.
[ $backend = kernel ] || try lean lean
[ $backend = kernel ] || try model model
# Without us: Open MPI's own ways must be found.
try plain		mpi -n 2 "$bin/counters" none
# Nor is there another way. What Open MPI says of it mpirun 4.1.4 at times loses.
bad unreachable		mpi -n 2 --mca btl pvas,self "$bin/counters" none
try excluded		tasks 2 OMPI_MCA_btl=self,vader counters none
if [ $backend = kernel ]; then
	# Ranks that share no space speak through vader, also with those that do.
	E=$B/pvasrun/pvasexec
	try mixed	mpi -n 2 "$E" "$bin/alltoall" 10000 : -n 2 "$bin/alltoall" 10000
	try two-spaces	mpi -n 2 "$E" --key one "$bin/alltoall" 10000 : \
			-n 2 "$E" --key two "$bin/alltoall" 10000
else
	try convention	convention
	try mixed-7	tasks 7 mixed "$rounds"
	# On a loaded machine, boxes would be idle long enough to be given back.
	try boxes	tasks 7 OMPI_MCA_btl_pvas_fbox_idle=0 limits boxes
	try decoy	tasks 3 OMPI_MCA_btl=pvas,self OMPI_MCA_btl_pvas_queue_size=28672 \
			decoy
	# A task's child is in no space, and each pvasrun has a space of its own.
	R=("$B/pvasrun/pvasrun" --backend user)
	try mixed	timeout -k 5 "$LIMIT" "${R[@]}" -n 2 "$bin/alltoall" 300 : \
			-n 2 sh -c "$bin/alltoall 300; exit \$?"
	fails no-space 'unable to reach each other' \
			env OMPI_MCA_btl=pvas,self timeout -k 5 "$LIMIT" "${R[@]}" \
			-n 2 sh -c "$bin/ring 5; exit \$?"
	try two-spaces	mpi -n 1 "${R[@]}" --mpi none -n 1 "$bin/alltoall" "$tiny" : \
			-n 1 sh -c "${R[*]} --mpi none -n 1 sleep 1 : -n 1 $bin/alltoall $tiny"
	says other-interface 'uses an MCA interface that is not recognized' of_version 0 3 counters none
	says other-version 'built for Open MPI 4.9, not for this 4' of_version 32 9 counters none
	try same-version	of_version 32 1 counters
	says no-copies 'copy_limit is 128, not 0' tasks 2 OMPI_MCA_btl_pvas_copy_limit=0 alltoall "$tiny"
	says no-fragments 'free_list_max is 2, not 0' \
			tasks 2 OMPI_MCA_btl_pvas_free_list_max=0 alltoall "$tiny"
	says no-sending 'max_send_size is 4224, not 0' \
			tasks 2 OMPI_MCA_btl_pvas_max_send_size=0 alltoall "$tiny"
	fails no-eager 'eager limit minimum' tasks 2 OMPI_MCA_btl_pvas_eager_limit=0 ring
	for value in 0 4294967295 nonsense; do
		try "all-$value"	all_are $value
	done
	# Only if asked for by its name
	[ ${#only[@]} -eq 0 ] || LIMIT=60 try each-value \
			each_is -1 0 1 4294967295 99999999999999999999 nonsense 1k ''
fi
for how in exit kill send receive medium finalize; do
	bad early-$how	tasks 3 early $how
done
if [ $backend = user ]; then
	# Each call of the progress function takes a time slice.
	fails lost	'btl pvas: rank 2 on this node ended before MPI_Finalize' \
			tasks 3 OMPI_MCA_mpi_yield_when_idle=1 lost
	for how in get atomic; do
		bad early-$how	tasks 3 OMPI_MCA_osc=rdma early $how
	done
	# Nobody ends the others but they themselves.
	options=(--no-kill)
	fails offer 'was killed, and we go on' tasks 2 OMPI_MCA_btl_pvas_watch_peers=0 offer
	fails reused 'ended before MPI_Finalize' tasks 3 OMPI_MCA_btl_pvas_queue_size=28672 reused
	for how in exit kill send receive medium; do
		bad alone-$how	tasks 3 early $how
	done
	for how in get atomic; do
		bad alone-$how	tasks 3 OMPI_MCA_osc=rdma early $how
	done
	options=()
fi
# A signal that was sent, where Open MPI has no handler for it below ours
try early-segv	segv_ends
try early-wild	wild_ends
# Between all steps of MPI_Init
for ms in $init_ms; do
	bad "early-$ms"	tasks 3 early "$ms"
done

sum_up
