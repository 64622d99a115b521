#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Collective operations beside Open MPI's own: medians in microseconds, and medians of ratios.
#
#	make -C coll_glue all bench && coll_glue/bench/collectives.sh RANKS RUNS [OPERATION | BYTES]...
#
#	ours	coll/pvas
#	vader	what Open MPI chooses without it (coll/tuned, libnbc, basic), over vader
#	btl	the same, over btl/pvas
#	again	coll/pvas once more, which shows the noise
#
# A run has ours, a rival and ours again in turns, in one job.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
n=$1 runs=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_coll_pvas_when_oversubscribed=${OMPI_MCA_coll_pvas_when_oversubscribed:-1}

for ((i = 1; i <= runs; i++)); do
	for btl in vader pvas; do
		OMPI_MCA_btl=self,$btl timeout 600 "$B/pvasrun/pvasrun" --backend user -n "$n" \
			"$B/coll_glue/bench/collectives" "$@" | sed "s/^/$btl /"
	done
done | awk '
	function median(list,    v, k, i, j, t) {
		k = split(list, v)
		for (i = 2; i <= k; i++)
			for (j = i; j > 1 && v[j] < v[j - 1]; j--) {
				t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
			}
		return k % 2 ? v[(k + 1) / 2] : (v[k / 2] + v[k / 2 + 1]) / 2
	}
	{
		row = $2 " | " $3
		if (!(row in seen)) { seen[row] = 1; rows[++nr] = row }
		ours[row] = ours[row] " " $4
		other[row, $1] = other[row, $1] " " $5
		ratio[row, $1] = ratio[row, $1] " " $4 / $5
		again[row] = again[row] " " $4 / $6
	}
	END {
		print "| operation | bytes | ours, us | vader, us | btl, us | ours / vader | ours / btl | ours / again |"
		print "| --- | --- | --- | --- | --- | --- | --- | --- |"
		for (r = 1; r <= nr; r++) {
			row = rows[r]
			printf "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", row, median(ours[row]),
				median(other[row, "vader"]), median(other[row, "pvas"]),
				median(ratio[row, "vader"]), median(ratio[row, "pvas"]), median(again[row])
		}
	}'
