#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Two ranks over btl/sm: as tasks with smsc/pvas (user backend), beside mpirun with CMA and
# with two copies, and pvas again, which shows the noise. Sample by sample in turn; see
# btl_glue/bench/p2p.h.
#
#	make -s -C smsc_glue all bench && smsc_glue/bench/p2p.sh [SAMPLES [SIZE]...]
#
# WITH=VARIABLE=VALUE adds pvas with that set.

here=$(dirname "$(readlink -f "$0")")
B=${O:-$here/../../build}
samples=${1:-11}
shift
sizes=${*:-0 8 64 1024 4096 16384 65536 262144 1048576 8388608}
page=$(mktemp) || exit 1
jobs=()
trap 'rm -f "$page"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Waiting for a turn is asleep: there are never more ranks than processors.
export OMPI_MCA_mpi_yield_when_idle=0

# job PLACE COMMAND...: a pair of ranks in the background
job()
{
	timeout "${LIMIT:-600}" "${@:2}" "$B/smsc_glue/bench/p2p" "$page" "$1" &
	jobs+=($!)
}

rivals=(pvas memcpy cma none pvas-again)
[ -z "${WITH:-}" ] || rivals+=(with)
pvas=("$B/pvasrun/pvasrun" --backend user --bind-to none -n 2)
"$B/smsc_glue/bench/table" new "$page" "$samples" "$sizes" "${rivals[@]}" || exit 1
for place in "${!rivals[@]}"; do
	case ${rivals[place]} in
	memcpy) ;;	# the first job's
	pvas*) job "$place" "${pvas[@]}" ;;
	with) job "$place" env "$WITH" "${pvas[@]}" ;;
	cma) job "$place" mpirun.openmpi -n 2 --bind-to none --mca pml ob1 --mca btl self,sm --mca smsc cma ;;
	none) job "$place" mpirun.openmpi -n 2 --bind-to none --mca pml ob1 --mca btl self,sm \
		--mca smsc ^cma,xpmem,knem,pvas ;;
	esac
done
status=0
for pid in "${jobs[@]}"; do
	wait "$pid" || status=1
done
[ $status = 0 ] || { echo "p2p.sh: a job failed (see above)" >&2; exit 1; }
"$B/smsc_glue/bench/table" show "$page"
