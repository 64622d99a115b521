#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# MPICH's example programs (Debian's package mpich-doc), built with Open MPI and
# with MPICH, as tasks of one space and by that MPI's own launcher: both must say
# the same and end alike. Debian has no package with Open MPI's.
#
#	examples.sh [RANKS]...	default: 2 4
#
# BACKEND=user (default; runs anywhere) or kernel

# shellcheck source=selftests/mpi/common
. "$(dirname "$(readlink -f "$0")")/common"

backend=${BACKEND:-user}
[ $# -gt 0 ] || set -- 2 4
src=${EXAMPLES:-/usr/share/doc/mpich/examples}
[ -e "$src/cpi.c" ] || { skip examples "not installed (apt-get install mpich-doc)"; sum_up; exit; }
export OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx
input=$work/input

# Where C++ had it before its standard
printf '%s\n' '#include <iostream>' 'using namespace std;' >"$work/iostream.h"
mkdir "$work/openmpi" "$work/mpich"

# build MPI SOURCE PROGRAM
build()
{
	local compiler=mpicc flags=(-O2 -w -fPIE -pie -I"$work")

	case $2 in
	*.cxx) compiler=mpicxx ;;
	*.f | *.f90) compiler=mpifort; flags+=(-fallow-argument-mismatch) ;;
	esac
	[ -x "$3" ] || "$compiler.$1" "${flags[@]}" -o "$3" "$src/$2" -lm >"$out" 2>&1
}

# f77/hellow.f is f77-hellow, beside hellow
name_of()
{
	local name=${1//\//-}

	echo "${name%.*}"
}

# as_tasks and plainly MPI RANKS COMMAND...: by pvasrun, and by its own launcher
as_tasks()
{
	local ranks=$2

	shift 2
	# Tag the output: programs that write less than a line at a time would mix their words.
	timeout -k 5 "$PVAS_LIMIT" "$pvasrun" -q --tag-output --backend "$backend" -n "$ranks" "$@" \
		<"$input" | sed -E 's/^\[ *[0-9]+\] ?//'
	return "${PIPESTATUS[0]}"
}

plainly()
{
	local mpi=$1 ranks=$2 launcher="$mpirun -q"

	shift 2
	[ "$mpi" = openmpi ] || launcher=mpiexec.mpich
	# shellcheck disable=SC2086 # a list of options
	timeout -k 5 "$PVAS_LIMIT" $launcher -n "$ranks" "$@" <"$input"
}

# Makes outputs comparable: the order of the ranks' lines is random, threads may write without
# a newline between them, and times and the last digits of sums differ.
said()
{
	sed -E '/wall clock/d
		s/(.)(comm_rank=)/\1\n\2/g
		s/(3\.1415926[0-9]{4})[0-9]*/\1/g; s/(Error is:? +)[0-9.e+-]+/\1E/' | sed '/^$/d' | sort
}

# run WAY MPI RANKS NAME [ARGUMENT]...: the output goes to $work/WAY; its exit status
run()
{
	local way=$1 mpi=$2 ranks=$3 name=$4 status

	shift 4
	rm -f "$work/image"
	"$way" "$mpi" "$ranks" "$work/$mpi/$name" "$@" >"$work/raw" 2>"$work/err.$way"
	status=$?
	said <"$work/raw" >"$work/$way"
	[ ! -e "$work/image" ] || wc -lw <"$work/image" >>"$work/$way"
	return $status
}

# same MPI RANKS NAME [ARGUMENT]...: standard output, and whether it succeeds
same()
{
	local status want got

	run as_tasks "$@"
	got=$?
	# Other launchers have no tags for parts of lines, so these may mix once; and a job
	# of mpirun's ended with a SIGSEGV once (not again in 60 runs).
	for _ in 1 2 3; do
		run plainly "$@"
		want=$?
		diff "$work/plainly" "$work/as_tasks" >"$out"
		status=$?
		[ $status -ne 0 ] || [ $want -ne $got ] || break
	done
	[ -s "$work/as_tasks" ] || { status=1; echo "no output" >>"$out"; }
	[ $got -eq $want ] || { status=1; echo "exit status $got, not $want" >>"$out"; }
	[ $status -eq 0 ] || tail -40 "$work/err.as_tasks" >>"$out"
	verdict $status "$1: $3, $2 ranks"
}

# example SOURCE RANKS [ARGUMENT]...: with $mpis; each run is told $lines
example()
{
	local source=$1 ranks=$2 name mpi

	name=$(name_of "$1")
	shift 2
	printf '%s' "$lines" >"$input"
	for mpi in $mpis; do
		if build "$mpi" "$source" "$work/$mpi/$name"; then
			same "$mpi" "$ranks" "$name" "$@"
		else
			verdict 1 "$mpi: $source is built"
		fi
	done
}

# refused SOURCE RANKS: what starts processes ends, and pvasrun says why
refused()
{
	local program

	program=$work/openmpi/$(name_of "$1")
	: >"$input"
	build openmpi "$1" "$program" || { verdict 1 "openmpi: $1 is built"; return; }
	! as_tasks openmpi "$2" "$program" >"$out" 2>&1 &&
		grep -q '^pvasrun: rank .* MPI_Comm_spawn of .*: not supported' "$out"
	verdict $? "openmpi: $1 is refused its children"
}

for ranks; do
	mpis="openmpi mpich" lines=
	example cpi.c "$ranks"
	example hellow.c "$ranks"
	example srtest.c "$ranks"
	example cxx/cxxpi.cxx "$ranks"
	example f77/hellow.f "$ranks"
	example developers/mpiexectest.c "$ranks" one 'two words'
	lines=$'100\n10000\n0\n'
	example icpi.c "$ranks"
	example f90/pi3f90.f90 "$ranks"
	lines=$(printf '%10d\n' 100 10000 0)
	example f77/fpi.f "$ranks"
	# A figure: corners and iterations
	lines=$'-2 -1 1 1 100\n0 0 0 0 0\n'
	example pmandel.c "$ranks" -i -xscale 60 -yscale 40 -out "$work/image"
	# Not with MPICH: Debian's, under its own mpiexec, hangs or aborts in these.
	mpis=openmpi
	example pmandel_fence.c "$ranks" -i -xscale 60 -yscale 40 -out "$work/image"
	lines=$'100\n10000\n0\n'
	example ircpi.c "$ranks"
done
mpis="openmpi mpich" lines=
example developers/threads.c 2
refused parent.c 4
refused spawn_merge_parent.c 2
sum_up
