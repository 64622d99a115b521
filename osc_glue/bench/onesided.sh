#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One-sided operations between two ranks beside Open MPI's own: medians in nanoseconds, and
# medians of the ratios of one round.
#
#	make -C osc_glue all bench && osc_glue/bench/onesided.sh ROUNDS [create]
#
#	ours	osc/pvas
#	rdma	osc/rdma over btl/pvas
#	vader	osc/rdma over vader, started by mpirun
#	sm	osc/sm, which has no windows of memory that the program has
#	again	osc/pvas once more, which shows the noise
#
# In a round each has a job of its own, one after another.

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
rounds=${1:?rounds}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# tasks NAME [VARIABLE=VALUE]...
tasks()
{
	env "${@:2}" timeout 100 "$B/pvasrun/pvasrun" --backend user -n 2 \
		"$B/osc_glue/bench/onesided" $kind | sed "s/^/$1 /"
}

kind=${2:-}
for ((i = 1; i <= rounds; i++)); do
	tasks ours
	tasks rdma OMPI_MCA_osc=rdma OMPI_MCA_btl=self,pvas
	timeout 100 mpirun.openmpi -n 2 --mca btl self,vader --mca osc rdma \
		"$B/osc_glue/bench/onesided" $kind | sed "s/^/vader /"
	[ "$kind" ] || tasks sm OMPI_MCA_osc=sm
	tasks again
	echo round
done | awk '
	function median(list,    v, k, i, j, t) {
		k = split(list, v)
		for (i = 2; i <= k; i++)
			for (j = i; j > 1 && v[j] < v[j - 1]; j--) {
				t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
			}
		return k ? v[int((k + 1) / 2)] : 0
	}
	# Others cannot do each operation on each window.
	function figure(list, form) { return list == "" ? "-" : sprintf(form, median(list)) }
	NF == 3 {
		if (!($2 in seen)) { seen[$2] = 1; rows[++nr] = $2 }
		all[$2, $1] = all[$2, $1] " " $3
		now[$2, $1] = $3
	}
	$1 == "round" {
		for (key in now) {
			split(key, part, SUBSEP)
			if (part[2] != "ours" && now[part[1], "ours"])
				ratio[key] = ratio[key] " " now[part[1], "ours"] / now[key]
		}
		split("", now)
	}
	END {
		split("ours rdma vader sm again", name)
		print "| operation | ours, ns | rdma, ns | vader, ns | sm, ns | ours / rdma | ours / vader | ours / sm | ours / again |"
		print "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
		for (r = 1; r <= nr; r++) {
			o = rows[r]
			printf "| %s", o
			for (i = 1; i <= 4; i++)
				printf " | %s", figure(all[o, name[i]], "%.0f")
			for (i = 2; i <= 5; i++)
				printf " | %s", figure(ratio[o, name[i]], "%.2f")
			print " |"
		}
	}'
