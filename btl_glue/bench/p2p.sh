#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Two ranks over pvas (user backend), beside the same bare copies and vader in
# two ways: by CMA, its default, and with two copies. Sample by sample in turn; see p2p.h.
# PML=pvas: pml/pvas, and as more rivals ob1 over btl/pvas, and MPICH if it is there; else
# pvas is btl/pvas.
#
#	make -s -C btl_glue all tests bench && btl_glue/bench/p2p.sh [SAMPLES [SIZE]...]
#
# RAW=FILE keeps all samples. WITH=VARIABLE=VALUE adds pvas with that set. CSV=FILE
# DROPPED=FILE: no table, but those two, and more rivals: pvas again, vader as it is.

here=$(dirname "$(readlink -f "$0")")
B=${O:-$here/../../build}
table=$B/btl_glue/bench/table
program=$B/btl_glue/bench/p2p
samples=${1:-21}
shift
sizes=${*:-0 8 64 1024 2048 4096 16384 65536 262144 1048576 8388608}
page=$(mktemp) || exit 1
jobs=()
trap 'rm -f "$page"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Waiting for a turn is asleep: there are never more ranks than processors.
export OMPI_MCA_mpi_yield_when_idle=0

# job PLACE COMMAND...: a pair of ranks in the background
job()
{
	timeout "${LIMIT:-300}" "${@:2}" "$page" "$1" &
	jobs+=($!)
}

# vader PLACE [OPTION]...
vader()
{
	job "$1" mpirun.openmpi -n 2 --bind-to none --mca btl self,vader "${@:2}" "$program"
}

# pvas PLACE [VARIABLE=VALUE]...
pvas()
{
	job "$1" env "OMPI_MCA_pml=$PML" "${@:2}" "$B/pvasrun/pvasrun" --backend user --bind-to none -n 2 \
		"$program"
}

# Each rival's place in a turn is that in this list.
rivals=(pvas memcpy vader-cma vader-none)
if [ "${PML:=ob1}" != ob1 ]; then
	rivals+=(ob1)
	[ ! -x "$B/btl_glue/bench/p2p.mpich" ] || rivals+=(mpich)
fi
[ -z "${WITH:-}" ] || rivals+=(with)
[ -z "${CSV:-}" ] || rivals+=(pvas-again vader)
"$table" new "$page" "$samples" "$sizes" "${rivals[@]}" || exit 1
for place in "${!rivals[@]}"; do
	rival=${rivals[place]}
	case $rival in
	memcpy) ;;	# the first job's
	pvas*) pvas "$place" ;;
	ob1) pvas "$place" OMPI_MCA_pml=ob1 ;;
	mpich) job "$place" mpiexec.mpich -n 2 "$program.mpich" ;;
	with) pvas "$place" "$WITH" ;;
	vader) vader "$place" ;;
	vader-*) vader "$place" --mca btl_vader_single_copy_mechanism "${rival#vader-}" ;;
	esac
done
status=0
for pid in "${jobs[@]}"; do
	wait "$pid" || status=1
done
[ -z "${RAW:-}" ] || "$table" raw "$page" >"$RAW"
[ $status = 0 ] || { echo "p2p.sh: a job failed (see above)" >&2; exit 1; }
[ "${CSV:-}" ] || { "$table" show "$page"; exit; }
"$table" csv "$page" kept >"$CSV" && "$table" csv "$page" dropped >"$DROPPED"
