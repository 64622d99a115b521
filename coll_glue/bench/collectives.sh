#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Collective operations beside Open MPI's own, in turns: medians in microseconds, and medians
# of the ratios of neighbouring runs.
#
#	make -C coll_glue all bench && coll_glue/bench/collectives.sh RANKS RUNS [OPERATION...]
#
#	ours	coll/pvas, under pvasrun		again	the same once more
#	vader	coll/tuned over vader, under mpirun	btl	coll/tuned over btl/pvas, under pvasrun

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
n=$1 runs=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
program=("$B/coll_glue/bench/collectives" "$@")
space=(timeout 600 "$B/pvasrun/pvasrun" --backend user -n "$n")

one_run()	# SYSTEM
{
	case $1 in
	ours | again) "${space[@]}" "${program[@]}" ;;
	btl) OMPI_MCA_coll=^pvas "${space[@]}" "${program[@]}" ;;
	vader) timeout 600 mpirun.openmpi --oversubscribe -n "$n" --mca btl self,vader \
		"${program[@]}" ;;
	esac
}

for ((i = 1; i <= runs; i++)); do
	for system in ours vader btl again; do
		one_run $system | sed "s/^/$i $system /"
	done
done | awk '
	function median(list,    v, k, j, t) {
		k = split(list, v)
		for (i = 2; i <= k; i++)
			for (j = i; j > 1 && v[j] < v[j - 1]; j--) {
				t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
			}
		return k % 2 ? v[(k + 1) / 2] : (v[k / 2] + v[k / 2 + 1]) / 2
	}
	{
		row = $3 " | " $4
		if (!(row in seen)) { seen[row] = 1; rows[++nr] = row }
		us[row, $2] = us[row, $2] " " $5
		at[row, $2, $1] = $5
		if ($2 != "ours")
			ratio[row, $2] = ratio[row, $2] " " at[row, "ours", $1] / $5
	}
	END {
		print "| operation | bytes | ours, us | vader, us | btl, us | ours / vader | ours / btl | ours / again |"
		print "| --- | --- | --- | --- | --- | --- | --- | --- |"
		for (r = 1; r <= nr; r++) {
			row = rows[r]
			printf "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", row, median(us[row, "ours"]),
				median(us[row, "vader"]), median(us[row, "btl"]), median(ratio[row, "vader"]),
				median(ratio[row, "btl"]), median(ratio[row, "again"])
		}
	}'
