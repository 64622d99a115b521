#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two ranks over pvas (user backend), beside the same bare copies and vader in
# its three ways. Sample by sample in turn; see p2p.h.
#
#	make -s -C btl_glue all tests bench && btl_glue/bench/p2p.sh [SAMPLES [SIZE]...]
#
# RAW=FILE keeps all samples. WITH=VARIABLE=VALUE adds pvas with that set.

here=$(dirname "$(readlink -f "$0")")
B=${O:-$here/../../build}/btl_glue
samples=${1:-21}
shift
sizes=${*:-0 8 64 1024 2048 4096 16384 65536 262144 1048576 8388608}
page=$(mktemp) || exit 1
jobs=()
trap 'rm -f "$page"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mca_base_component_path=$B:SYSTEM_DEFAULT
# Waiting for a turn is asleep: there are never more ranks than processors.
export OMPI_MCA_mpi_yield_when_idle=0

# job KIND ARGUMENT...: a pair of ranks in the background
job()
{
	timeout "${LIMIT:-300}" "$B/tests/pmixrun" "$1" 2 "$B/bench/p2p" "$page" "${@:2}" &
	jobs+=($!)
}

# vader WAY PLACE
vader()
{
	OMPI_MCA_btl_vader_single_copy_mechanism=$1 OMPI_MCA_btl=^pvas job plain "$2"
}

rivals=(pvas memcpy vader cma none)
[ -z "${WITH:-}" ] || rivals+=(with)
"$B/bench/table" new "$page" "$samples" "$sizes" "${rivals[@]}" || exit 1
job user 0 memcpy
OMPI_MCA_btl=^pvas job plain 2
vader cma 3
vader none 4
[ -z "${WITH:-}" ] || (export "${WITH?}" && exec "$B/tests/pmixrun" user 2 "$B/bench/p2p" "$page" 5) &
status=0
for pid in "${jobs[@]}"; do
	wait "$pid" || status=1
done
[ -z "${RAW:-}" ] || "$B/bench/table" raw "$page" >"$RAW"
[ $status = 0 ] && "$B/bench/table" show "$page" && exit
echo "p2p.sh: a job failed (see above)" >&2
exit 1
