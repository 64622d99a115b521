# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# MPI programs that fail, and missing parts. Sourced by mpi.sh.

# shellcheck disable=SC2016,SC2086,SC2034

# ---- programs that fail ----

abort_of()
{
	run -n 3 "$1" abort
	status_is 42
	err_has 'rank 1 \(pid [0-9]+, .*\) called MPI_Abort: code 42'
	run -n 2 "$1" abort0
	status_is 1
}
test_abort() { each abort_of; }

early_of()
{
	run -n 3 "$1" early
	status_is 1
	err_has 'rank 1 \(pid [0-9]+, .*\) exited without MPI_Finalize'
	run -n 3 "$1" status
	status_is 9
	err_has 'rank 1 \(pid [0-9]+, .*\) exited with status 9'
	run -n 3 "$1" kill
	status_is 137
	err_has 'rank 1 \(pid [0-9]+, .*\) died from signal 9 \(Killed\)'
}
test_early() { each early_of; }

# Its last rank has exited, and pvasrun waits for what it may have said before: SIGTERM ends that.
pid_printed() { [ -s "$T/out" ]; }
rank_is_gone() { ! kill -0 "$(cat "$T/out")" 2>"$T/gone"; }
test_term_after_exit()
{
	local job began

	"$B/pvasrun/pvasrun" --backend "$BACKEND" --orphans kill --no-pty -n 1 "$B/pvasrun/tests/pmix" leave \
		>"$T/out" 2>"$T/err" & job=$!
	check "it does not start" until_true 20 pid_printed
	check "it does not exit" until_true 20 rank_is_gone
	began=$SECONDS
	kill -TERM "$job"
	wait "$job"; status=$?
	status_is 143
	check "it takes $((SECONDS - began)) s" [ $((SECONDS - began)) -le 6 ]
}

# survivors SECONDS: both ranks survive a SIGHUP; then one leaves without MPI_Finalize, for
# which the other waits.
survivors()
{
	local out=$T/out.$1 job

	"$B/pvasrun/pvasrun" --backend "$BACKEND" -n 2 bash -c "$WIRE"'trap survived=1 HUP; say '"$INIT"'
		echo ready; until [ "$survived" ]; do sleep 0.1; done
		[ $PMI_RANK = 0 ] || { sleep "$0"; exit 0; }; exec sleep 20' "$1" >"$out" 2>"$T/err.$1" &
	job=$!
	until_true 20 both_ready "$out"
	kill -HUP $job
	wait $job 2>/dev/null
	echo $? >"$T/status.$1"
}
both_ready() { [ "$(grep -cx ready "$1")" -eq 2 ]; }

survivors_end() { status=$(cat "$T/status.$1"); cat "$T/err.$1" >"$T/err"; status_is "$2"; }

test_survived_signal()
{
	survivors 0 &
	survivors 4 &
	wait
	survivors_end 4 1
	err_has 'rank 1 \(pid [0-9]+, bash\) exited without MPI_Finalize'
	# soon after the signal it is one of the tasks that the signal has ended
	survivors_end 0 129
	check "it is reported" eval '! grep -q MPI_Finalize "$T/err"'
}

# is_in STATE PID: the process gets into that state within some time
is_in()
{
	local tries=300

	until grep -q "^State:	$1" "/proc/$2/status"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done 2>/dev/null
}

# A finalize request counts even if it is read after its rank has exited. The rank stops pvasrun.
test_finalize()
{
	"$B/pvasrun/pvasrun" --backend "$BACKEND" -n 1 "$B/pvasrun/tests/finalize" >"$T/out" 2>"$T/err" &
	job=$!
	check "pvasrun has not been stopped" is_in T $job
	check "the rank does not end by itself" is_in Z "$(pgrep -P $job finalize)"
	kill -CONT $job
	wait $job
	status=$?
	status_is 0
	silent
}

# A rank exits early and another aborts because of that: both are read in one turn, since the
# first has stopped pvasrun. The exit is the cause. While pvasrun is stopped, nobody can fork.
# A child keeps the first's connection open: its end is not seen before its exit.
test_abort_after_exit()
{
	run -n 2 bash -c "$WIRE"'say '"$INIT"'; echo $$ >"$0.$PMI_RANK"
		until [ -s "$0.0" ] && [ -s "$0.1" ]; do sleep 0.1; done; read -r first <"$0.0"
		if [ $PMI_RANK = 0 ]; then sleep 5 & sleep 1; kill -STOP $PPID; exit 0; fi
		until [ "$state" = Z ]; do read -r _ _ state _ <"/proc/$first/stat"; done
		echo "cmd=abort exitcode=7" >&$PMI_FD; kill -CONT $PPID; exec sleep 20' "$T/pid"
	status_is 1
	err_has 'rank 0 \(pid [0-9]+, bash\) exited without MPI_Finalize'
	check "only the cause is reported" [ "$(grep -c "^pvasrun: rank" "$T/err")" -eq 1 ]
}

# A task without MPI ends before or after the others have called MPI_Init.
no_init_of()
{
	run -n 2 "$1" ring : -n 1 true
	status_is 1
	err_has 'rank 2 \(pid [0-9]+, true\) exited without MPI_Init, for which other ranks wait'
	run -n 1 sleep 2 : -n 2 "$1" ring
	status_is 1
	err_has 'rank 0 \(pid [0-9]+, sleep\) exited without MPI_Init, for which other ranks wait'
}
test_no_init() { each no_init_of; }

# ---- missing parts ----

test_no_mpi_wanted()
{
	run --mpi none -n 2 "$openmpi" ring
	check "each is alone" [ "$(grep -cx 'ring: 1 ranks' "$T/out")" -eq 2 ]
	forget_singletons
	run --mpi none -n 1 sh -c 'env | grep -cE "^(PMI|OMPI)"'
	out_has 0
	run --mpi pmix -n 2 "$openmpi" ring
	out_has 'ring: 2 ranks'
	run --mpi pmi1 -n 2 "$mpich" ring
	out_has 'ring: 2 ranks'
}

# without_ports COMMAND...: where nobody can listen, as if another user had taken all ports
without_ports()
{
	# shellcheck disable=SC2016 # the inner shell's arguments
	unshare -rn sh -c 'echo 60000 60000 >/proc/sys/net/ipv4/ip_local_port_range &&
		echo 60000 >/proc/sys/net/ipv4/ip_local_reserved_ports && exec "$@"' - timeout "$LIMIT" "$@"
}

no_port()
{
	without_ports "$B/pvasrun/pvasrun" --backend "$BACKEND" "$@" >"$T/out" 2>"$T/err"
	status=$?
}

# MPICH's older device has each rank listen.
mpich_listens()
{
	[[ $(mpichversion) = *ch3:* ]] && fails_without_pvas "MPICH's ch3 listens on ports of its own" \
		without_ports mpiexec.mpich -n 2 "$mpich" ring
}

# Ranks without a server would be as many jobs of one rank, and all would seem to be well.
test_no_port()
{
	for program in "$openmpi" "$mpich"; do
		no_port -n 2 "$program" ring
		status_is 1
		err_has 'cannot listen on 127.0.0.1 for MPI programs: .*\(--mpi pmi1 .*'
		check "a rank was started" [ ! -s "$T/out" ]
		no_port -n 1 true : -n 2 "$program" ring
		status_is 1
	done
	if ! mpich_listens; then
		no_port --mpi pmi1 -n 2 "$mpich" ring
		status_is 0
		out_has 'ring: 2 ranks'
	fi
	no_port -n 2 echo without MPI
	status_is 0
	err_has 'cannot listen on 127.0.0.1: .*will be a job of one rank.*'
	check "programs without MPI run" [ "$(grep -c 'without MPI' "$T/out")" -eq 2 ]
}

# one_pty [ARGUMENT]...: where other users have all pseudo-terminals but one
one_pty()
{
	# shellcheck disable=SC2016 # the inner shell's arguments
	unshare -m sh -c 'mount -t devpts -o newinstance,ptmxmode=0666,max=1 none /dev/pts &&
		mount --bind /dev/pts/ptmx /dev/ptmx && exec "$@"' - \
		timeout "$LIMIT" "$B/pvasrun/pvasrun" --backend "$BACKEND" "$@" >"$T/out" 2>"$T/err"
	status=$?
}

test_no_pty()
{
	one_pty -n 3 "$openmpi" ring
	status_is 0
	out_has 'ring: 3 ranks'
	err_has "no pseudo-terminal for the tasks' output: No space left on device: .*"
	check "more than one warning" [ "$(grep -c . "$T/err")" -eq 1 ]
	one_pty --pty always -n 3 "$openmpi" ring
	status_is 1
}

# alone PROGRAM [ARGUMENT]...: two tasks by a copy of pvasrun in $T/alone
alone()
{
	timeout "$LIMIT" "$T/alone/pvasrun" --backend "$BACKEND" -n 2 "$@" >"$T/out" 2>"$T/err"
	status=$?
}

# no_server WHY: the only line of error; programs without MPI run nevertheless
no_server()
{
	alone true
	status_is 0
	silent
	alone "$openmpi" ring
	status_is 1
	err_has "no PMIx server for MPI programs: $1"
	check "more than one line is printed" [ "$(grep -c . "$T/err")" -eq 1 ]
}

test_no_plugin()
{
	local plugin=$T/alone/pvasrun-pmix.so

	mkdir "$T/alone"
	cp "$B/pvasrun/pvasrun" "$T/alone"
	no_server 'pvasrun-pmix.so is missing \(.*\)'
	echo "no shared object" >"$plugin"
	no_server '.*pvasrun-pmix.so: .* \(install libpmix2\)'
	sed 's/libpmix\.so\.2/libpmix.so.9/' "$B/pvasrun/pvasrun-pmix.so" >"$plugin"
	no_server 'libpmix.so.9: cannot open shared object file: No such file or directory \(install libpmix2\)'
	sed 's/pvasrun_pmix_start/pvasrun_pmix_begin/' "$B/pvasrun/pvasrun-pmix.so" >"$plugin"
	no_server "this pvasrun-pmix.so is not pvasrun's \\(.*\\)"
	# any user could have created it
	cp "$B/pvasrun/pvasrun-pmix.so" "$plugin"
	chmod 666 "$plugin"
	no_server "other users could have changed .*pvasrun-pmix.so \\(.*\\)"
}

test_no_tmpdir()
{
	TMPDIR=$T/nosuch run -n 2 "$openmpi" ring
	status_is 1
	err_has 'cannot make a directory for MPI in .*/nosuch: No such file or directory \(set TMPDIR\)'
}

test_few_files()
{
	(ulimit -n 100; exec timeout "$LIMIT" "$B/pvasrun/pvasrun" --backend "$BACKEND" -n 2 "$openmpi" ring) \
		>"$T/out" 2>"$T/err"
	status=$?
	status_is 1
	err_has 'the limit of 100 open files is too low for an MPI job: 138 are needed \(raise it: ulimit -n\)'
}

# A limit of descriptors below PMI_FD's number, and too low to open the program
test_low_limit()
{
	(ulimit -S -n 20; exec timeout "$LIMIT" "$B/pvasrun/pvasrun" --backend "$BACKEND" -n 3 "$mpich" ring) \
		>"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	out_has 'ring: 3 ranks'
}

# More tasks than memory maps for MPI programs: a warning; the job may fail.
test_maps()
{
	local limit n

	limit=$(cat /proc/sys/vm/max_map_count)
	n=$((limit / 400 + 1))
	run --timeout 0.1 -n $n sleep 9
	check "small tasks are warned" eval '! grep -q max_map_count "$T/err"'
	run --timeout 0.1 -n $n "$openmpi" hang
	err_has "vm.max_map_count is $limit: $n tasks may run out of memory maps \(as root: sysctl vm.max_map_count=$((n * 400))\)"
}
