#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One job of as many ranks as a large node has processors: begin, a ring, each to
# each, end. Where /dev/pvas is, for example:
#
#	selftests/vm/run --cpus 1 --mem 8192 --timeout 3500 -- selftests/mpi/many.sh 240
#
# One processor, because an emulated one costs more than it brings: they wait for
# each other in turn. The user backend runs it anywhere: BACKEND=user many.sh 64.

# Before common, which has a shorter one
PVAS_LIMIT=${PVAS_LIMIT:-3400}
# shellcheck source=selftests/mpi/common
. "$(dirname "$(readlink -f "$0")")/common"

backend=${BACKEND:-kernel}
ranks=${1:-240}
limit=/proc/sys/vm/max_map_count
[ "$backend" = user ] || [ -c /dev/pvas ] ||
	{ skip "many" "no /dev/pvas: the module is not loaded"; sum_up; exit; }

# The machine's own limit: pvasrun says what it has to be, and so it is made.
"$pvasrun" --backend "$backend" --timeout 0.1 -n "$ranks" "$bin/many" >"$out" 2>&1
wanted=$(sed -n 's/^pvasrun: vm.max_map_count is .*sysctl vm.max_map_count=\([0-9]*\))$/\1/p' "$out")
if [ -n "$wanted" ] && ! echo "$wanted" >$limit; then
	skip "many" "vm.max_map_count is $(cat $limit), $wanted are needed, and this is not root"
	sum_up
	exit
fi

# Components that need no network and no accelerator, and start in seconds when emulated
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,pvas OMPI_MCA_osc=pt2pt OMPI_MCA_coll=basic,libnbc,tuned
export OMPI_MCA_io=ompio OMPI_MCA_op=^avx OMPI_MCA_rcache=grdma OMPI_MCA_allocator=basic,bucket
begin=$SECONDS
timeout -k 5 "$PVAS_LIMIT" "$pvasrun" -q --backend "$backend" -n "$ranks" "$bin/many" "$ranks" \
	>"$out" 2>&1 </dev/null
status=$?
grep -v " ranks, " "$out" | sed 's/^/# /'
grep -qx "$ranks ranks, 0 wrong" "$out" || status=1
verdict $status "$ranks ranks: begin, a ring, each to each, end ($((SECONDS - begin)) s)"
if [ "$backend" = kernel ]; then
	! grep -q . /proc/pvas
	verdict $? "no space is left"
fi
sum_up
