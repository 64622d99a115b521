#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two ranks, side by side: pvas (user backend), vader as it comes, vader with
# two copies. Interleaved run by run; prints the median of each over all runs.
#
#	make -C btl_glue all tests bench && btl_glue/bench/p2p.sh [runs]

here=$(dirname "$(readlink -f "$0")")
B=${O:-$here/../../build}/btl_glue
runs=${1:-5}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mca_base_component_path=$B:SYSTEM_DEFAULT

for ((i = 0; i < runs; i++)); do
	timeout "${LIMIT:-120}" "$B/tests/pmixrun" user 2 "$B/bench/p2p" >>"$dir/pvas"
	timeout "${LIMIT:-120}" "$B/tests/pmixrun" plain 2 "$B/bench/p2p" >>"$dir/vader"
	OMPI_MCA_btl_vader_single_copy_mechanism=none \
		timeout "${LIMIT:-120}" "$B/tests/pmixrun" plain 2 "$B/bench/p2p" >>"$dir/none"
done

medians()
{
	sort -k1,1n -k"$2","$2"n "$1" | awk -v c="$2" -v size=-1 '
		$1 != size { if (n) print size, v[int((n + 1) / 2)]; size = $1; n = 0 }
		{ v[++n] = $c }
		END { if (n) print size, v[int((n + 1) / 2)] }'
}

echo "          one-way latency, us            stream, GB/s"
echo "   bytes    pvas   vader    none     pvas   vader    none"
paste -d' ' <(medians "$dir/pvas" 2) <(medians "$dir/vader" 2) <(medians "$dir/none" 2) \
	<(medians "$dir/pvas" 3) <(medians "$dir/vader" 3) <(medians "$dir/none" 3) |
	awk '{ printf "%8d %7.2f %7.2f %7.2f  %7.2f %7.2f %7.2f\n", $1, $2, $4, $6, $8, $10, $12 }'
