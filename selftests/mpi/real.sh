#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Real MPI programs, unmodified, as tasks of one space: ours in three languages,
# and Debian's hpcc, NetPIPE and LAMMPS if they are installed.
#
#	real.sh [RANKS]...	default: 2 4 16
#	real.sh hpcc [RANKS]...	only hpcc, at the size of Debian's example
#
# BACKEND=user (default; runs anywhere) or kernel; LAUNCH=pvasrun (default) or
# mpirun, which starts pvasexec (kernel).

# shellcheck source=selftests/mpi/common
. "$(dirname "$(readlink -f "$0")")/common"

backend=${BACKEND:-user}
launch=${LAUNCH:-pvasrun}
only_hpcc=
[ "${1:-}" != hpcc ] || { only_hpcc=1; shift; }
[ $# -gt 0 ] || set -- 2 4 16
pml=ob1
[ ! -e "$O/btl_glue/mca_pml_pvas.so" ] || pml=ob1,pvas
export OMPI_MCA_pml=$pml OMPI_MCA_osc=^ucx OMPI_MCA_mpi_yield_when_idle=1
# No other way than the space: what passes has gone through it.
export OMPI_MCA_btl=self,pvas OMP_NUM_THREADS=2

# start RANKS PROGRAM...: as tasks
start()
{
	local ranks=$1

	shift
	case $launch in
	pvasrun) timeout -k 5 "$PVAS_LIMIT" "$pvasrun" -q --backend "$backend" -n "$ranks" "$@" ;;
	*) timeout -k 5 "$PVAS_LIMIT" $mpirun -n "$ranks" "$pvasexec" "$@" ;;
	esac </dev/null
}

# plainly RANKS PROGRAM...: as processes, by mpirun
plainly()
{
	local ranks=$1

	shift
	# shellcheck disable=SC2086 # a list of options
	OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader timeout -k 5 "$PVAS_LIMIT" $mpirun -n "$ranks" "$@" </dev/null
}

own()	# RANKS
{
	local p begin pml

	for p in nodes hybrid cxx fortran; do
		begin=$SECONDS
		# It counts the BTL's messages.
		[ "$p" = nodes ] && pml=ob1 || pml=$OMPI_MCA_pml
		OMPI_MCA_pml=$pml start "$1" "$bin/$p" >"$out" 2>&1
		verdict $? "$p, $1 ranks ($((SECONDS - begin)) s)"
	done
}

# The example's input on as many ranks: N and NB smaller than there, or as they are
hpcc_input()	# RANKS
{
	if [ "$only_hpcc" ]; then
		"$here/hpcc-input" "$1" 1000 80
	else
		"$here/hpcc-input" "$1" 256 32
	fi >"$work/hpccinf.txt"
}

# It checks its own results.
hpcc_run()	# RANKS
{
	local begin=$SECONDS

	hpcc_input "$1" || { verdict 1 "hpcc's input"; return; }
	rm -f "$work/hpccoutf.txt"
	(cd "$work" && start "$1" hpcc) >"$out" 2>&1
	local status=$?
	cat "$work/hpccoutf.txt" >>"$out" 2>/dev/null
	[ $status -eq 0 ] && grep -q '^Success=1$' "$out" && ! grep -q 'FAILED$' "$out" &&
		grep -q 'PASSED$' "$out" && grep -Eq '^(MPIRandomAccess|MPIFFT|PTRANS)' "$out"
	verdict $? "hpcc${only_hpcc:+ at full size}, $1 ranks ($((SECONDS - begin)) s)"
}

netpipe()
{
	local begin=$SECONDS

	start 2 NPopenmpi -i -u 1000000 -n 5 -o "$work/np.out" >"$out" 2>&1
	local status=$?
	[ $status -eq 0 ] && ! grep -qi 'integrity check failed' "$out" && grep -q ' bytes ' "$out"
	verdict $? "NPopenmpi with its integrity check ($((SECONDS - begin)) s)"
}

energies() { awk '/^ *Step/ { on = 1 } /^Loop/ { on = 0 } on' "$1"; }

lammps()	# RANKS INPUT
{
	local begin=$SECONDS status

	OMP_NUM_THREADS=1 plainly "$1" lmp -in "$here/$2.lmp" -log none >"$work/plain" 2>&1
	OMP_NUM_THREADS=1 start "$1" lmp -in "$here/$2.lmp" -log none >"$out" 2>&1
	status=$?
	energies "$work/plain" >"$work/want"
	energies "$out" >"$work/got"
	[ $status -eq 0 ] && [ "$(wc -l <"$work/want")" -ge 4 ] && cmp -s "$work/want" "$work/got" ||
		{ diff "$work/want" "$work/got" >>"$out"; status=1; }
	verdict $status "lmp $2, $1 ranks: mpirun's energies ($((SECONDS - begin)) s)"
}

# with PROGRAM TEST...
with()
{
	local program=$1

	shift
	if command -v "$program" >/dev/null; then
		"$@"
	else
		skip "$program" "not installed"
	fi
}

if [ "$only_hpcc" ]; then
	for ranks; do
		with hpcc hpcc_run "$ranks"
	done
	sum_up
	exit
fi
with NPopenmpi netpipe
for ranks; do
	own "$ranks"
	with hpcc hpcc_run "$ranks"
	with lmp lammps "$ranks" melt
	with lmp lammps "$ranks" salt
done
sum_up
