# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# How a rival starts MPI programs. For the sections, after common.sh.

# More ranks than processors yield; Open MPI finds that out by itself under mpirun.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# mpi SYSTEM N COMMAND...: N ranks
mpi()
{
	local mca

	case $1 in
	pvas | pvas-again)
		timeout -k 5 "${LIMIT:-300}" "$B/pvasrun/pvasrun" --backend "${BACKEND:-user}" -q -n "${@:2}"
		return
		;;
	ob1)	# over btl/pvas
		OMPI_MCA_pml=ob1 mpi pvas "${@:2}"
		return
		;;
	vader) mca='self,vader' ;;
	vader-cma | vader-none | vader-xpmem)
		mca="self,vader --mca btl_vader_single_copy_mechanism ${1#vader-}" ;;
	no-segments) mca='self,tcp' ;;
	*) echo "mpi: $1: no such system" >&2; return 1 ;;
	esac
	# shellcheck disable=SC2086 # options
	timeout -k 5 "${LIMIT:-300}" mpirun.openmpi --oversubscribe -n "$2" --mca btl $mca "${@:3}"
}
