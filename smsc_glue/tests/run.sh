#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# MPI programs as tasks of one space, over Open MPI's own btl/sm with the component smsc/pvas.
# Needs Open MPI 5.0 or later.
#
#	make -s -C smsc_glue all tests && smsc_glue/tests/run.sh
#
# Names as arguments run only those tests. The last line is the sum.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
bin=$B/smsc_glue/tests
longest=$((8 << 20)) rounds=60
[ ! -e /dev/pvas ] || longest=100000 rounds=12
# shellcheck source=btl_glue/tests/mpilib
. "$top/btl_glue/tests/mpilib"
only=("$@")
# libpmix 5 takes this name for its own, and pvasrun finds the component.
unset OMPI_MCA_mca_base_component_path
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
R=("$B/pvasrun/pvasrun" --backend user)

# Functions and variables shared between files are mca_smsc_pvas_*, or those of btl_glue.
convention()
{
	local names

	names=$(nm --defined-only --extern-only "$B"/smsc_glue/*.o | awk 'NF == 3 { print $3 }')
	[ "$(wc -l <<<"$names")" -ge 8 ] || return
	! grep -vE '^mca_(smsc|btl)_pvas(_|$)' <<<"$names"
}

# A rank behind a shell is in no space: no peer of it may get a message left in place.
outside()
{
	timeout -k 5 "$LIMIT" "${R[@]}" -x OMPI_MCA_btl=sm,self -n 2 "$bin/$1" "${@:2}" : \
		-n 2 sh -c "$bin/$1 ${*:2}; exit \$?"
}

# Ranks with other settings use another component.
other_settings()
{
	timeout -k 5 "$LIMIT" "${R[@]}" -n 1 -x OMPI_MCA_smsc_pvas_priority=-1 "$bin/alltoall" 40000 : \
		-n 2 "$bin/alltoall" 40000
}

# of_version OFFSET VALUE: with a copy of the component whose struct has this number there
of_version()
{
	local at start offset component=$B/btl_glue/mca_smsc_pvas.so

	read -r at < <(readelf -sW "$component" | awk '$8 == "mca_smsc_pvas_component" { print $2; exit }')
	read -r start offset < <(readelf -SW "$component" |
		sed -n 's/^ *\[ *[0-9]*\] \.data  *[A-Z]* *//p')
	# shellcheck disable=SC2059
	cp "$component" "$T" &&
	printf "\\x$(printf %02x "$2")" | dd of="$T/mca_smsc_pvas.so" bs=1 conv=notrunc status=none \
		seek=$((16#$at - 16#${start% *} + 16#${offset%% *} + $1)) &&
	tasks 2 OMPI_MCA_opal_mca_base_component_path="$T:SYSTEM_DEFAULT" used none
}

[ -x "$bin/used" ] || { echo "run.sh: no tests built (make -C smsc_glue all tests)" >&2; exit 1; }

try used		tasks 2 used
try used-3		tasks 3 used
try in-place		tasks 2 OMPI_MCA_btl_sm_max_inline_send=1200 used map
try excluded		tasks 2 OMPI_MCA_smsc=^pvas used none
try not-offered	tasks 2 OMPI_MCA_smsc_pvas_priority=-1 used none
try plain		mpi -n 2 "$bin/used" none
try ring		tasks 4 ring 50
try alltoall		tasks 2 alltoall "$longest"
try alltoall-4		tasks 4 alltoall 10000
try mixed-sizes	tasks 3 mixed "$rounds"
try threads		tasks 2 threads "$rounds"
if [ $backend = user ]; then
	try convention	convention
	try outside	outside alltoall 40000
	try outside-none outside used none
	try other-settings other_settings
	says other-version 'built for Open MPI [56].9, not for this [56]' of_version 32 9
	try nothing-left equal "$(find /dev/shm -name 'sm_segment*' -o -name 'pvasrun*')" ""
fi
for how in exit kill send receive medium finalize; do
	bad early-$how	tasks 3 early $how
done
if [ $backend = user ]; then
	# Nobody ends the others but they themselves.
	options=(--no-kill)
	for how in exit kill send receive medium; do
		fails alone-$how 'smsc pvas: .* ended (before|while)|without MPI_Finalize' tasks 3 early $how
	done
	options=()
fi

sum_up
