#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A rank ends, becomes another program, or stops, at each place of the protocol where others
# could see it half done (../fault_point.h). The others must end soon and say why, or come to
# their end with the right data.
#
#	make -s -C pml_glue all tests && pml_glue/tests/points.sh [SAMPLES [SEED]]
#
# SAMPLES of the places of each rank, at random, for each action; without it, all of them in
# turn. The last line is the sum.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
export B=${O:-$top/build} samples=${1:-all} LIMIT=${LIMIT:-60}
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
RANDOM=${2:-$$}
export T
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mca_base_component_path=$B/pml_glue/points:$B/btl_glue:SYSTEM_DEFAULT
# All messages go through this component. Little room, so that rings are full soon.
export OMPI_MCA_pml=pvas OMPI_MCA_coll=^pvas OMPI_MCA_pml_pvas_ring_size=1024 \
	OMPI_MCA_pml_pvas_unexpected_max=2000 OMPI_MCA_pml_pvas_share_limit=4096 \
	OMPI_MCA_pml_pvas_share_piece=4096
# The sender finds its part of a copy.
export PVAS_TEST_PAUSE='copy shared'

# job PLAN: the three ranks, which nobody ends but they themselves
job()
{
	PVAS_TEST_POINT=$1 timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --no-kill --backend user -n 3 \
		"$B/pml_glue/tests/protocol" 2>&1
}

# good PLAN FILE: is that how it may end?
good()
{
	local victim=${1%%:*} others

	! grep -Eiq 'wrong|signal (11|7|6)' "$2" || return
	grep -q '^point ' "$2" || [ "$(grep -c '^rank [0-2] is done$' "$2")" = 3 ] || return
	others=$(grep -c "^rank [^$victim] is done$" "$2")
	[ "$others" = 2 ] ||
		grep -Eq "(pml|btl) pvas: rank $victim on this node ended before MPI_Finalize" "$2" ||
		# Its peers look for it in MPI_Init, and Open MPI says so in its own words.
		grep -q -e 'PML add procs failed' -e 'at least one MPI process is unreachable' "$2" ||
		# In MPI_Init, and once it has said that it finalizes, it is pvasrun's.
		grep -Pzq "(?s)point [0-9]+ (port|peer) .*rank $victim .* exited without MPI_Finalize" "$2"
}

one()
{
	local file=$T/$1 began=$SECONDS

	job "$1" >"$file"
	if [ $((SECONDS - began)) -ge "$LIMIT" ]; then
		echo "did not end" >>"$file"
	elif good "$1" "$file"; then
		rm "$file"
	fi
}
export -f job good one

# The names in the sources, and what a job reaches
coverage()
{
	local rank

	for rank in 0 1 2; do
		job "$rank:list:0" | sed -n 's/^point [0-9]* //p' >"$T/list-$rank"
	done
	grep -oh 'fault_point("[^"]*' "$here"/../*.[ch] | cut -d'"' -f2 | sort -u >"$T/names"
	sort -u "$T"/list-? | comm -3 - "$T/names" >"$T/missing"
	[ ! -s "$T/missing" ] || { echo "not reached, or unknown:"; cat "$T/missing"; return 1; }
}

# plans ACTION: of all ranks
plans()
{
	local rank most n

	for rank in 0 1 2; do
		most=$(wc -l <"$T/list-$rank")
		if [ "$samples" = all ]; then
			seq -f "$rank:$1:%g" "$most"
			continue
		fi
		for ((n = 0; n < samples; n++)); do
			echo "$rank:$1:$((1 + RANDOM % most))"
		done
	done
}

# together NAME PLAN...: as many at a time as there are processors
together()
{
	local file

	printf '%s\n' "${@:2}" | xargs -P "$(nproc)" -I{} bash -c 'one {}'
	report "$1: $(($# - 1))" "$(
		for file in "$T"/[0-2]:*; do
			[ ! -e "$file" ] || { echo "${file##*/}"; sed 's/^/  /' "$file"; rm "$file"; }
		done
	)"
}

# A rank ends before the others look for it: nobody may take it for one outside of the space.
early()
{
	local place

	place=$(grep -nFx 'processes begun' "$T/list-0" | head -1 | cut -d: -f1)
	PVAS_TEST_PAUSE='processes begun' PVAS_TEST_PAUSE_US=1000000 one "0:kill:$place"
	[ ! -e "$T/0:kill:$place" ] || { cat "$T/0:kill:$place"; rm "$T/0:kill:$place"; return 1; }
}

try coverage coverage
try early early
for action in kill replace; do
	mapfile -t list < <(plans $action | sort -u)
	together $action "${list[@]}"
done
together stop 1:stop:0 0:stop:0 2:stop:0
sum_up
