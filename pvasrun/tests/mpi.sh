#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# MPI programs started by pvasrun: Open MPI over PMIx, MPICH over PMI-1.
#
#	make -C pvasrun mpi && pvasrun/tests/mpi.sh [name]...
#
# BACKEND	passed on as --backend (default: user)
# LIMIT		seconds a job may take, in case it hangs

# Commands of tasks are in single quotes, with the tasks' own variables.
# shellcheck disable=SC2016

top=$(dirname "$(readlink -f "$0")")/../..
B=${O:-$top/build}
BACKEND=${BACKEND:-user}
LIMIT=${LIMIT:-120}
openmpi=$B/pvasrun/tests/rank-openmpi
mpich=$B/pvasrun/tests/rank-mpich
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
# For files of MPI libraries: nothing may be left in it.
export TMPDIR=$T/tmp
mkdir "$TMPDIR"

launch() { timeout -k 5 "$LIMIT" "$B/pvasrun/pvasrun" --backend "$BACKEND" "$@"; }
run() { launch "$@" >"$T/out" 2>"$T/err"; status=$?; }
status_is() { check "exit status $status, not $1" [ "$status" -eq "$1" ]; }
out_has() { check "output has no '$1'" grep -qxE "$1" "$T/out"; }
err_has() { check "error has no '$1'" grep -qE "^pvasrun: $1\$" "$T/err"; }
silent() { check "pvasrun complained" eval '! grep -q ^pvasrun: "$T/err"'; }

# good PROGRAM TEST N: it succeeds, and reports N ranks
good()
{
	run -n "$3" "$1" "$2"
	status_is 0
	silent
	out_has "$2: $3 ranks"
}

each() { "$@" "$openmpi"; "$@" "$mpich"; }

# ---- programs that succeed ----

ring_of() { good "$1" ring 1; good "$1" ring 4; }
test_ring() { each ring_of; }

# Output from before an abort appears, as with mpirun.
test_printed_before_abort()
{
	run -n 2 "$openmpi" print
	status_is 134
	out_has "printed 1"
}

fpe_of() { good "$1" fpe 2; }
test_fpe() { each fpe_of; }

# Neither the server nor the ranks load libraries for what hwloc is told to leave out.
test_loads_little()
{
	LD_DEBUG=files run -n 1 "$openmpi" ring
	status_is 0
	check "loaded" eval '! grep -E "calling init: .*/(libX11|libxml2)\.so" "$T/err"'
	check "libraries of the server's" [ "$(grep -cE 'calling init: .*/libOpenCL\.so' "$T/err")" -le 1 ]
}

alltoall_of() { good "$1" alltoall 3; }
test_alltoall() { each alltoall_of; }

window_of() { good "$1" window 2; }
test_window() { each_on_a_node window_of; }

# Open MPI 5.0 copies once by its own btl/sm, which has its queues there.
btl=pvas
[ ! -e "$B/btl_glue/mca_smsc_pvas.so" ] || btl=sm

test_no_shm()
{
	[ $btl = pvas ] || return 0
	good "$openmpi" no_shm 3
	run --no-btl -n 2 "$openmpi" no_shm
	check "vader is not in its place" grep -q 'something in /dev/shm' "$T/err"
}

# selected PROGRAM SELECTION: with more ranks than processors, which wait in MPI_Init
selected()
{
	good "$1" selection $(($(nproc) + 1))
	out_has "$2"
}

test_selection()
{
	local pml=ob1

	[ ! -e "$B/btl_glue/mca_pml_pvas.so" ] || pml=ob1,pvas
	selected "$openmpi" "btl $btl,self, pml $pml, osc \\^ucx"
	OMPI_MCA_pml=^cm OMPI_MCA_btl=self,vader selected "$openmpi" \
		'btl self,vader, pml \^cm, osc \^ucx'
	# Another Open MPI may be loaded, whose ranks need tcp.
	LD_LIBRARY_PATH=/usr/local/lib selected "$openmpi" "btl $btl,self,tcp, pml ob1, .*"
	selected "$B/pvasrun/tests/rank-rpath" "btl $btl,self,tcp, pml ob1, .*"
}

# --pretend has components for Open MPI 4.1 and a library for MPICH, both made beside these.
no_pretend()
{
	case $(mpicc.openmpi --showme:version) in
	*'Open MPI 4.1'*) return 1 ;;
	esac
	skip "$test" "--pretend is for Open MPI 4.1"
}

# Debian's MPICH 5.0 takes each rank for one on a node of its own, with its own launcher, too.
mpich_knows_nodes()
{
	run_mpich=${run_mpich-$(mpiexec.mpich -n 2 "$mpich" window 2>&1)}
	case $run_mpich in
	*'not in the same shared memory domain'*)
		skip "$test: MPICH" "its own mpiexec takes ranks for those of different nodes"
		return 1
		;;
	esac
}

pmix_version=$(pkg-config --modversion pmix)

# fails_without_pvas REASON COMMAND...: so the test is skipped. Only where an old version is named.
fails_without_pvas()
{
	! "${@:2}" >"$T/out" 2>&1 </dev/null || return 1
	skip "$test" "$1 (so it does without PVAS)"
}
openmpi_run="timeout $LIMIT mpirun --allow-run-as-root --oversubscribe"

# libpmix 4.0 takes no second client in the place of one that has ended.
one_client()
{
	[[ $pmix_version = 4.0.* ]] && fails_without_pvas "libpmix 4.0 refuses a second program in a rank" \
		$openmpi_run -n 2 sh -c "$openmpi ring && exec $openmpi ring"
}

# each, but for an MPICH that can't
each_on_a_node()
{
	"$@" "$openmpi"
	! mpich_knows_nodes || "$@" "$mpich"
}

# pretend PROGRAM WORLD TASKS OPTION: ranks of a job that is larger than this node
pretend()
{
	run --pretend "$4" -n "$3" "$B/pvasrun/tests/$1" "$2" "$3"
	status_is 0
	silent
	out_has "pretend: $2 ranks"
}

# without FILE PROGRAM: a pvasrun that does not find FILE beside it
without()
{
	cp "$B/pvasrun/pvasrun" "$T/pvasrun"
	"$T/pvasrun" --pretend 64 -n 2 "$B/pvasrun/tests/$2" 128 2 >"$T/out" 2>"$T/err"
	status=$?
	status_is 1
	err_has "--pretend: $1.* is missing \(.*\)"
}

test_pretend()
{
	! no_pretend || return
	pretend pretend 2 2 1
	pretend pretend 128 2 64
	pretend pretend 128 2 64:2,full
	pretend pretend 65536 4 16384:4
	# The table of all ranks is there once: at least one map of it in each rank.
	pretend pretend 2097152 4 524288:4
	check "tables are not shared" awk '/^shared maps:/ { exit !($3 >= 4) }' "$T/out"
	run --pretend 64 -n 2 "$B/pvasrun/tests/pretend" 128 2 send
	status_is 17
	check "which ranks" grep -q 'unable to reach each other' "$T/err"
	run --pretend 64 -n 2 "$B/pvasrun/tests/pretend" 128 2 bcast
	check "the root does not exist" grep -q 'the root of a broadcast, rank 127, does not exist' \
		"$T/err"
	without mca_coll_pretend.so pretend
}

test_pretend_mpich()
{
	! no_pretend || return
	if [[ $(mpichversion) = *ch3:* ]]; then
		skip "$test" "--pretend is for MPICH's device ch4:ucx"
		return
	fi
	pretend pretend-mpich 2 2 1
	pretend pretend-mpich 128 2 64
	pretend pretend-mpich 128 2 64:2,full
	pretend pretend-mpich 16384 4 4096
	run --pretend 64 --mpi pmi1 -n 2 "$B/pvasrun/tests/pretend-mpich" 128 2
	status_is 0
	run --pretend 64 -n 2 "$B/pvasrun/tests/pretend-mpich" 128 2 send
	check "MPI_Send succeeded" [ "$status" -ne 0 ]
	check "which rank" grep -qx 'pvasrun --pretend: a message to rank 127, which does not exist' \
		"$T/err"
	run --pretend 3 -n 2 "$B/pvasrun/tests/pretend-mpich" 6 2
	status_is 1
	err_has '--pretend: 6 ranks: with MPICH, NODES and PPN must be powers of two'
	run --pretend 262144 -n 2 "$B/pvasrun/tests/pretend-mpich" 524288 2
	status_is 1
	err_has '--pretend: 524288 ranks: MPICH 4.0 has at most 524287 \(.*\)'
	without pvas_pretend_mpich.so pretend-mpich
}

# libpmix's description of the job is there once: four ranks take at most 1.1 of what one takes.
# once RANKS BYTES [OPTION]...: the ranks have one description of a job of 2048 together, and it
# has at least so many bytes
once()
{
	local n=$1 bytes=$2

	shift 2
	if [[ $pmix_version != 4.2.* ]]; then
		skip "$test" "the component gds/pvas is for libpmix 4.2"
		return
	fi
	run "$@" --pretend $((2048 / n)):$n,full -n $n "$B/pvasrun/tests/job_data" $((2048 / n * n)) $n
	status_is 0
	mv "$T/out" "$T/large"
	run "$@" --pretend 1:$n -n $n "$B/pvasrun/tests/job_data" $n $n
	status_is 0
	check "not once: $(tr '\n' ' ' <"$T/large")" awk -v "n=$n" -v "bytes=$bytes" '
		FNR == NR { small[$1] = $2; next }
		{ sum += $2 - small[$1] } $1 == 0 { first = $2 - small[$1] }
		END { exit !(FNR == n && first > bytes && sum <= 1.1 * first) }' "$T/out" "$T/large"
}

# The kernel's vdso can be where a partition would be, which is skipped then: those behind it
# have not the partition that their rank says. Where it is, is random, and on kernels before 6.12
# never there. Not with the user backend.
has_gap()
{
	run --partition-size 4T --map -n 12 true
	awk '$1 ~ /^[0-9]+$/ && $2 != $1 + 1 { n++ } END { exit !n }' "$T/err"
}

test_gap()
{
	local limit

	[ "$BACKEND" = kernel ] || return 0
	limit=$(ulimit -Ss)
	ulimit -Ss unlimited
	if has_gap || has_gap || has_gap || has_gap; then
		once 12 1e6 --partition-size 4T
	else
		skip "a gap between partitions" "this kernel leaves none"
	fi
	ulimit -Ss "$limit"
}

test_job_data()
{
	! no_pretend || return
	once 4 2e6
	run --pretend 1:4 -n 4 "$B/pvasrun/tests/job_data" 4 4 leave
	status_is 0
	silent
}

names_of() { good "$1" names 2; }
test_names() { each names_of; }

job_of()
{
	run -n 1 "$1" job : -n 2 "$1" job
	status_is 0
	out_has 'job: 3 ranks'
	out_has 'rank 0 appnum 0'
	out_has 'rank 2 appnum 1'
}
test_job() { each_on_a_node job_of; }

# Bound ranks get their locality.
test_place()
{
	local some='(SK[0-9]+:)?(L[1-3][0-9]+:)*(CR[0-9]+:)?HT[0-9]+(-[0-9]+)?:NM[0-9]+'

	run --bind-to core -n 2 "$B/pvasrun/tests/pmix" place
	status_is 0
	check "not each has a place" [ "$(grep -cxE "$some beside $some" "$T/out")" -eq 2 ]
	run --bind-to none -n 2 "$B/pvasrun/tests/pmix" place
	check "those not bound have one" [ "$(grep -cx nowhere "$T/out")" -eq 2 ]
}

# Without a launcher, Open MPI 5.0 leaves its own directory.
forget_singletons() { [ $btl = pvas ] || rm -rf "$TMPDIR"/ompi.*; }

# They would wait for each other for ever.
test_two_kinds()
{
	run -n 1 "$openmpi" ring : -n 1 "$mpich" ring
	status_is 1
	err_has "$mpich is linked with MPICH, $openmpi with Open MPI: .* \(start two jobs\)"
	check "it is one line" [ "$(wc -l <"$T/err")" -eq 1 ]
	run --mpi none -n 1 "$openmpi" ring : -n 1 "$mpich" ring
	status_is 0
	forget_singletons
}

# The rank is not pvasrun's child. A second MPI program can follow the first; not with MPICH,
# neither under its own mpiexec, for MPI_Finalize closes the connection.
behind_a_shell() { run -n 2 sh -c "$1"; status_is 0; silent; out_has 'ring: 2 ranks'; }
test_behind_a_shell()
{
	one_client || behind_a_shell "$openmpi ring && exec $openmpi ring"
	behind_a_shell "$mpich ring && true"
}

# A wrapper that forks: --verbose says that the rank is none of the tasks.
test_behind_a_fork()
{
	run -n 2 timeout "$LIMIT" "$openmpi" ring
	status_is 0
	out_has 'ring: 2 ranks'
	check "nothing is said" eval '! grep -qE "^(pvasrun|libpvas):" "$T/err"'
	run -v -n 2 timeout "$LIMIT" "$openmpi" ring
	status_is 0
	out_has 'ring: 2 ranks'
	check "both are named" [ "$(grep -cE "^libpvas: .*/rank-openmpi \(pid [0-9]+\) is no task: timeout \(pid [0-9]+\), in rank [01], started it as a child" "$T/err")" -eq 2 ]
	run -v -n 2 env A=1 "$openmpi" ring
	status_is 0
	check "these are tasks" eval '! grep -q ^libpvas: "$T/err"'
}

# Behind a program that execs it, a rank is a task, with Open MPI's component in use. One that
# leaves the space is named.
test_after_exec()
{
	local wrapper

	for wrapper in 'env A=1' 'nice' "sh -c exec\\ $openmpi\\ ring"; do
		eval "OMPI_MCA_btl=$btl,self run -n 2 $wrapper $openmpi ring"
		status_is 0
		silent
		out_has 'ring: 2 ranks'
		check "no warning" eval '! grep -q ^libpvas: "$T/err"'
	done
	run -n 2 env A=1 "$mpich" ring
	status_is 0
	out_has 'ring: 2 ranks'
	run -n 2 env PVAS_EXEC=leave "$openmpi" ring
	status_is 0
	out_has 'ring: 2 ranks'
	check "as the user wants" eval '! grep -q ^libpvas: "$T/err"'
	mpicc.openmpi -O1 -fno-pie -no-pie -o "$T/nopie" "$top/pvasrun/tests/mpi/rank.c" -lm
	run -n 2 env A=1 "$T/nopie" ring
	status_is 0
	out_has 'ring: 2 ranks'
	check "both are named" [ "$(grep -cE "^libpvas: rank [01] \(pid [0-9]+\) is no task: $T/nopie runs outside the space: not a position-independent" "$T/err")" -eq 2 ]
	[ "$BACKEND" = kernel ] || return 0
	# and where mpirun starts the ranks
	OMPI_MCA_btl=$btl,self timeout "$LIMIT" mpirun --allow-run-as-root --oversubscribe -n 2 \
		"$B/pvasrun/pvasexec" env A=1 nice "$openmpi" ring >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	out_has 'ring: 2 ranks'
}

test_two_jobs()
{
	launch -n 3 "$openmpi" alltoall >"$T/other" 2>&1 &
	run -n 2 "$openmpi" alltoall
	status_is 0
	out_has 'alltoall: 2 ranks'
	wait $!
	status=$?
	status_is 0
	check "the other job" grep -qx 'alltoall: 3 ranks' "$T/other"
}

# pvasrun in a job of mpirun: it starts a job of its own
test_inside_mpirun()
{
	export -f launch
	export B BACKEND LIMIT
	mpirun --allow-run-as-root --oversubscribe -n 1 bash -c "launch -n 2 $openmpi ring" \
		>"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	out_has 'ring: 2 ranks'
}

# and the other way round
test_mpirun_inside()
{
	run -n 1 mpirun --allow-run-as-root --oversubscribe -n 2 "$openmpi" ring
	status_is 0
	silent
	out_has 'ring: 2 ranks'
	check "it has a place in shared memory" eval '! grep -q shmem "$T/err"'
	run -n 1 mpiexec.mpich -n 2 "$mpich" ring
	status_is 0
	out_has 'ring: 2 ranks'
}

# libpmix 4.0 answers at once that there is no such key.
late_get()
{
	[[ $pmix_version = 4.0.* ]] && fails_without_pvas "libpmix 4.0 has no timeout of a get" \
		$openmpi_run -n 2 "$B/pvasrun/tests/pmix" get
}

# A rank waits with a timeout for data that never arrive.
test_patience()
{
	local what all=(get lookup fence connect)

	! late_get || all=("${all[@]:1}")
	for what in "${all[@]}"; do
		launch -n 2 "$B/pvasrun/tests/pmix" $what >"$T/out.$what" 2>&1 &
	done
	wait
	cat "$T"/out.* >"$T/out"
	for what in "${all[@]}"; do
		out_has "pmix $what: good"
	done
}

test_empty()
{
	run -n 1 "$B/pvasrun/tests/pmix" empty
	status_is 0
	out_has 'pmix empty: good'
}

# Open MPI's messages are printed by the server: each once, unless aggregation is off.
unreachable() { grep -c '^At least one pair of MPI processes' "$T/err"; }

test_messages()
{
	export OMPI_MCA_btl=self
	run -n 3 "$openmpi" ring
	[ $status -eq 14 ] || status_is 1	# in Open MPI 5.0
	check "not said once" [ "$(unreachable)" -eq 1 ]
	# The first rank that fails ends the others, which may not have printed it by then.
	for _ in 1 2 3 4 5; do
		OMPI_MCA_orte_base_help_aggregate=0 run -n 3 "$openmpi" ring
		[ "$(unreachable)" -le 1 ] || break
	done
	# 5.0 has no such parameter.
	[ $btl = sm ] || check "not said more than once" [ "$(unreachable)" -gt 1 ]
	unset OMPI_MCA_btl
	run -n 2 "$B/pvasrun/tests/pmix" log
	status_is 0
	out_has 'pmix log: good'
	out_has 'to stdout'
	check "the output is wrong" diff <(printf '%s\n' 'from b' 'to stderr' 'a, once' 'a, each time' b \
		'no topic' 'no topic' 'a number') "$T/err"
}

test_spawn()
{
	run -n 2 "$openmpi" spawn
	check "spawning succeeds" [ "$status" -ne 0 ]
	err_has 'rank 0 \(pid [0-9]+\): MPI_Comm_spawn of .*: not supported \(.*\)'
	# MPICH reports the error itself
	run -n 2 "$mpich" spawn
	check "spawning succeeds" [ "$status" -ne 0 ]
}

# PMI-1 by hand: "say LINE..." sends, and prints the answers until the end or for a second.
WIRE='say() { printf "%s\n" "$@" >&$PMI_FD; while read -r -t 1 a <&$PMI_FD; do echo "$a"; done; echo .; }; '
INIT='"cmd=init pmi_version=1 pmi_subversion=1"'

test_wire()
{
	run -n 1 bash -c "$WIRE"'echo $PMI_RANK of $PMI_SIZE; say '"$INIT"' \
		"mcmd=spawn" "nprocs=1" "execname=a b" "endcmd" "cmd=get kvsname=x key=none" \
		"cmd=put kvsname=x key=k value=v w" "cmd=get kvsname=x key=k" "cmd=finalize"'
	status_is 0
	out_has '0 of 1'
	out_has 'cmd=spawn_result rc=-1 msg=not_supported'
	out_has 'cmd=get_result rc=-1 msg=key_not_found value=unknown'
	out_has 'cmd=get_result rc=0 msg=success value=v w'
	out_has 'cmd=finalize_ack'
	err_has 'rank 0 \(pid [0-9]+\): MPI_Comm_spawn of a b: not supported \(.*\)'
	# the connection is closed after an invalid request
	run -n 1 bash -c "$WIRE"'say "nonsense"'
	status_is 0
	run -n 1 bash -c "$WIRE"'trap "" PIPE; say "$(printf %09000d 1)" 2>/dev/null'
	status_is 0
	out_has '\.'
	# the PMIx proxy, too
	run -n 1 bash -c 'at=${PMIX_SERVER_URI41##*//}; exec {PMI_FD}<>/dev/tcp/${at%:*}/${at#*:};'"$WIRE"'trap "" PIPE; say nonsense 2>/dev/null'
	status_is 0
}

# A child that has inherited PMI_FD enters the barrier, too: the rank counts once.
test_inherited()
{
	run -n 2 bash -c "$WIRE"'out() { read -r -t 20 a <&$PMI_FD; echo $a; }
		if [ $PMI_RANK = 0 ]; then
			(for i in 1 2 3; do echo cmd=barrier_in >&$PMI_FD; done)
			read -r -t 1 a <&$PMI_FD && echo "early: $a"
			echo cmd=get_appnum >&$PMI_FD; out
		else
			sleep 2
			echo cmd=barrier_in >&$PMI_FD
		fi; out'
	status_is 0
	check "the barrier has opened early" eval '! grep -q early "$T/out"'
	check "not each got out of it" [ "$(grep -cx cmd=barrier_out "$T/out")" -eq 2 ]
	# each rank has one descriptor, its own
	run -n 3 bash -c 'ls -l /proc/$$/fd | grep -c "socket:"'
	check "ranks have others' descriptors" [ "$(grep -cx 1 "$T/out")" -eq 3 ]
	# a child that outlives the rank can't send for it
	run --no-kill -n 2 bash -c "$WIRE"'if [ $PMI_RANK = 0 ]; then
			(sleep 1; trap "" PIPE; for i in 1 2; do echo cmd=abort exitcode=9; sleep 0.5; done >&$PMI_FD 2>/dev/null) &
		else sleep 3; fi'
	status_is 0
}

# put and publish_name have limits, so a rank can't make the launcher grow.
test_greed()
{
	run -n 1 bash -c 'big=$(printf %01000d 7); trap "" PIPE
		for what in put publish_name; do
			for ((i = 0; i < 4000; i++)); do
				if [ $what = put ]; then echo "cmd=put kvsname=x key=$i value=$big"
				else echo "cmd=publish_name service=$i port=$big"; fi >&$PMI_FD
				read -r a <&$PMI_FD; echo "$what $a"
			done
		done'
	status_is 0
	check "no put is refused" grep -q '^put cmd=put_result rc=-1' "$T/out"
	check "nor published" grep -q '^publish_name cmd=publish_result info=fail' "$T/out"
	check "none was good" [ "$(grep -c 'rc=0' "$T/out")" -gt 1000 ]
}

# The secret name is in no file name, and no two directories have the same name.
test_secrets()
{
	export PMIX_MCA_ptl_base_if_include=eth0 PMIX_MCA_ptl_tcp_ipv4_port=1
	run -n 1 sh -c "$openmpi ring"'; echo "secret ${PMIX_NAMESPACE##*-}"; ls "$TMPDIR"
		basename "$OMPI_MCA_btl_vader_backing_directory"'
	unset PMIX_MCA_ptl_base_if_include PMIX_MCA_ptl_tcp_ipv4_port
	out_has 'ring: 1 ranks'
	out_has 'secret [0-9a-f]{32}'
	check "not two directories" [ "$(grep -cxE 'pvasrun-[0-9]+-[0-9]+-[0-9a-f]{32}' "$T/out")" -eq 2 ]
	check "their names have something in common" \
		[ "$(grep -oE '[0-9a-f]{32}$' "$T/out" | cut -c 1-8 | sort -u | wc -l)" -eq 3 ]
}

# libpmix uses select(), so it needs low descriptors.
test_many_files()
{
	bash -c 'ulimit -n 4096; for ((i = 0; i < 1100; i++)); do exec {fd}</dev/null; done; exec "$@"' - \
		timeout "$LIMIT" "$B/pvasrun/pvasrun" --backend "$BACKEND" -n 1 "$openmpi" ring \
		>"$T/out" 2>"$T/err"
	status=$?
	status_is 1
	err_has 'no PMIx server for MPI programs: too many files are open already \(.*\)'
	run --tag-output -n 1 "$B/pvasrun/tests/pmix" log : -n 300 sleep 10
	check "a job of many tasks" grep -q 'pmix log: good' "$T/out"
}

# The server runs in pvasrun: it may keep only so much of what ranks send.
test_pmix_memory()
{
	run -n 1 "$B/pvasrun/tests/pmix" notify
	status_is 1
	err_has 'rank 0 \(pid [0-9]+, .*/pmix\): the PMIx server takes no more: what ranks have put and published fills [0-9]+ MiB$'
	run -n 1 "$B/pvasrun/tests/pmix" put
	status_is 1
	# libpmix 7.0 sends each value once, so no message is too long.
	err_has 'rank 0 \(pid [0-9]+, .*/pmix\)( exited without MPI_Finalize|: the PMIx server takes no more: .*)'
}

# PMIx_Log to a standard error that is not read: the job ends, and other ranks are served.
test_slow_reader()
{
	rm -f "$T/slow"
	mkfifo "$T/slow"
	exec 8<>"$T/slow"
	head -c 60000 /dev/zero >&8
	SECONDS=0
	timeout -k 5 60 "$B/pvasrun/pvasrun" --backend "$BACKEND" -n 1 "$B/pvasrun/tests/pmix" flood : \
		-n 1 sh -c "sleep 1; $B/pvasrun/tests/pmix place" >"$T/out" 2>&8
	check "others are not served" grep -q . "$T/out"
	check "the job does not end" [ $SECONDS -lt 45 ]
	exec 8>&-
}

# Nor does a file server hold up the end that answers no write. The rank itself has pipes.
test_silent_log()
{
	local began=$SECONDS hung=$B/pvasrun/tests/hung_output

	mkdir -p "$T/hung"
	"$hung" "$T/hung" both true || return 0		# it can't be made here
	timeout -s KILL 60 "$hung" "$T/hung" both "$B/pvasrun/pvasrun" --backend "$BACKEND" --timeout 3 --tag-output \
		-n 1 "$B/pvasrun/tests/pmix" flood
	status=$?
	status_is 124; check "it takes $((SECONDS - began)) s" [ $((SECONDS - began)) -le 30 ]
}

# shellcheck source=/dev/null
. "$top/pvasrun/tests/mpi/failures.sh"

# ---- leftovers ----

left_in_tmp() { find "$TMPDIR" -mindepth 1; }
# Of this job: the name contains pvasrun's pid
left_in_shm() { find /dev/shm -maxdepth 1 -name "pvasrun-*-$job-*"; }
is_empty() { [ -z "$("$@")" ]; }

until_seen()
{
	local tries=$((LIMIT * 10))

	until [ -n "$(left_in_tmp)" ] && grep -q . "$T/out"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

# A signal during MPI. "hang" prints nothing, but the shell before it does.
ended_by()
{
	env --default-signal=INT,QUIT "$B/pvasrun/pvasrun" --backend "$BACKEND" -n 2 \
		sh -c "echo begun; exec $openmpi hang" >"$T/out" 2>"$T/err" &
	job=$!
	check "the job has begun" until_seen
	kill "-$1" $job
	wait $job 2>/dev/null
	status=$?
}

test_leftovers()
{
	local signal

	for signal in INT:130 TERM:143; do
		ended_by ${signal%:*}
		status_is ${signal#*:}
		check "files are left: $(left_in_tmp | head -3)" is_empty left_in_tmp
		check "shared memory is left: $(left_in_shm)" is_empty left_in_shm
	done
	ended_by KILL
	check "SIGKILL leaves files" [ -n "$(left_in_tmp)" ]
	check "and shared memory" [ -n "$(left_in_shm)" ]
	good "$openmpi" ring 2
	check "the next job has not swept: $(left_in_tmp | head -3)" is_empty left_in_tmp
	check "nor shared memory: $(left_in_shm)" is_empty left_in_shm
}

begin_test() { true >"$T/out" 2>"$T/err"; }

[ -x "$openmpi" ] && [ -x "$mpich" ] || { echo "not built: make -C pvasrun mpi"; exit 1; }
run_tests "$@"
test=leftovers
check "files are left: $(left_in_tmp | head -3)" is_empty left_in_tmp
sum_up
