#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# MPI_Neighbor_alltoall with 6, 5 and 8 neighbors over four shaped devices between two network
# namespaces, beside Open MPI's own: medians in ms, and theirs / ours, with the paper's model for
# whole messages on one device each.
#
#	make -C coll_glue all bench && coll_glue/bench/devices.sh [SAMPLES [RATE [BYTES]...]]

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
B=${O:-$top/build}
samples=${1:-15} rate=${2:-100mbit}
bytes=("${@:3}")
[ ${#bytes[@]} -gt 0 ] || bytes=(1024 16384 65536 131072 262144 1048576 4194304)
devices=4
export OMPI_MCA_coll_pvas_when_oversubscribed=1

echo "| neighbors | bytes | coll/pvas, ms | without it, ms | ratio | model |"
echo "| --- | --- | --- | --- | --- | --- |"
for n in ${NEIGHBORS:-6 5 8}; do
	LIMIT=600 "$top/coll_glue/tests/two-nets" $((n + 1)) $devices "$rate" \
		"$B/coll_glue/bench/devices" "$samples" "${bytes[@]}" ||
		{ echo "devices.sh: $n neighbors: failed" >&2; exit 1; }
done | awk -v c=$devices '{
	rounds = int(($1 + c - 1) / c)
	printf "| %d | %d | %s | %s | %s | %.2f |\n", $1, $2, $3, $4, $5, rounds * c / $1
}'
