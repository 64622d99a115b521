#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What pvasrun does, seen from outside: real tasks, real signals.
#
# PVASRUN	the pvasrun to test; one named pvasrun-plain has the stand-in for
#		libpvas, and more tests, of errors that are hard to have for real
# TERMINAL	tests/terminal as built; without it no tests at a terminal
# TIMES	if set, tell how long each test took
# SLOW		multiplies the time things may take (a VM without KVM)
# BACKEND	passed on as --backend
#
# functional.sh [name]...: only the tests whose names contain one of these

PVASRUN=${PVASRUN:?which pvasrun?}
SLOW=${SLOW:-1}
export SLOW
quiet=1
# shellcheck source=scripts/testlib
. "$(dirname "$(readlink -f "$0")")/../../scripts/testlib"
chmod 755 "$T"
export T
cd "$T" || exit 1

case $PVASRUN in *-plain) plain=1 ;; *) plain= ;; esac
[ -n "$BACKEND" ] && PVASRUN="$PVASRUN --backend $BACKEND"

# pvasrun ARGS: run it to its end; leaves $T/out, $T/err, $status
pvasrun() { $PVASRUN "$@" >"$T/out" 2>"$T/err"; status=$?; }

# The same in the background; $job is its pid. (A shell without job control has
# SIGINT ignored in what it starts with "&".)
start() { env --default-signal=INT,QUIT $PVASRUN "$@" >"$T/out" 2>"$T/err" & job=$!; }
finish() { wait "$job" 2>/dev/null; status=$?; }

status_is() { check "exit status $status, not $1" [ "$status" -eq "$1" ]; }
out_is() { check "output is not '$1'" [ "$(cat "$T/out")" = "$1" ]; }
sorted_is() { check "output is not '$1'" [ "$(sort "$T/out")" = "$1" ]; }
# A shell that was a task may say "Terminated"; pvasrun says nothing.
silent() { check "pvasrun complained" eval '! grep -q ^pvasrun: "$T/err"'; }

# The whole of standard error is one line that matches
one_line()
{
	check "not one line of error" [ "$(wc -l <"$T/err")" -eq 1 ]
	check "error doesn't match '$1'" grep -qE "^pvasrun: $1\$" "$T/err"
}

files() { [ "$(find "$T" -maxdepth 1 -name "$1.*" | wc -l)" -eq "$2" ]; }
wait_files() { check "tasks don't make their files $1" until_true 10 files "$1" "$2"; }
gone() { local p; for p in $(cat "$T"/pid.* 2>/dev/null); do kill -0 "$p" && return 1; done; return 0; }
all_gone() { check "tasks are still there" until_true 5 gone; }
task_state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"; }
all_in_state() { local p; for p in $(cat "$T"/pid.*); do [ "$(task_state "$p")" = "$1" ] || return 1; done; }

# Tasks that say who they are and then wait
READY='echo $$ >$T/p.$PVAS_RANK; mv $T/p.$PVAS_RANK $T/pid.$PVAS_RANK;'
WAIT="$READY"' while :; do sleep 0.05; done'

# ---- programs and their environment ----

test_environment()
{
	pvasrun -n 3 sh -c 'echo $PVAS_RANK $PVAS_SIZE'
	status_is 0; silent
	sorted_is $'0 3\n1 3\n2 3'
	pvasrun -n 2 sh -c 'echo ${PVAS_SPACE:-none}'
	check "one space for all" [ "$(sort -u out | wc -l)" -eq 1 ]
	check "space is a number" grep -qE '^[1-9][0-9]*$' out
	INHERITED=yes pvasrun -n 1 sh -c 'echo $INHERITED'
	out_is yes
	A=old pvasrun -n 1 -x A=new -x B='x y' sh -c 'echo "$A $B"'
	out_is 'new x y'
	A=kept pvasrun -n 1 -x A sh -c 'echo $A'
	out_is kept; silent
	pvasrun -n 1 -x NOSUCHVAR true
	status_is 0
	one_line "-x NOSUCHVAR: not set here, so the tasks don't get it .*"
	pvasrun -q -n 1 -x NOSUCHVAR true
	silent
	pvasrun -n 1 printenv GLIBC_TUNABLES
	check "malloc is not told to keep memory" grep -q 'glibc.malloc.trim_threshold=' out
	GLIBC_TUNABLES=glibc.malloc.arena_max=1 pvasrun -n 1 printenv GLIBC_TUNABLES
	out_is glibc.malloc.arena_max=1
}

test_several_programs()
{
	pvasrun -n 2 sh -c 'echo a $PVAS_RANK $PVAS_SIZE' : -np 1 echo b : --np 2 -x X=5 \
		sh -c 'echo c $PVAS_RANK $X'
	status_is 0; silent
	sorted_is $'a 0 5\na 1 5\nb\nc 3 5\nc 4 5'
	pvasrun -n 1 -x ONLY=here true : -n 1 sh -c 'echo ${ONLY-unset}'
	out_is unset
	pvasrun -n 1 -- echo a : b
	out_is 'a : b'
	pvasrun -n 1 echo -n --timeout -- x
	out_is '--timeout -- x'
}

test_wdir()
{
	mkdir -p sub
	printf '#!/bin/sh\necho here $PWD\n' >sub/script
	chmod +x sub/script
	pvasrun -n 1 --wdir "$T/sub" ./script
	status_is 0; out_is "here $T/sub"
	pvasrun -n 1 --wd sub ./script : -n 1 pwd
	status_is 0; sorted_is $T$'\n'"here $T/sub"
	pvasrun -n 1 --wdir nosuch true
	status_is 1; one_line '--wdir nosuch: No such file or directory \(.*\)'
	pvasrun -n 1 --wdir sub/script true
	status_is 1; one_line '--wdir sub/script: Not a directory \(.*\)'
}

test_programs_that_cannot_start()
{
	pvasrun -n 2 nosuchprogram
	status_is 127; one_line 'cannot start nosuchprogram: No such file or directory \(not in PATH.*\)'
	pvasrun -n 2 ./nosuch
	status_is 127; one_line 'cannot start ./nosuch: No such file or directory \(check its path\)'
	echo text >plain
	pvasrun -n 2 ./plain
	status_is 126; one_line 'cannot start ./plain: Permission denied \(.*chmod.*\)'
	pvasrun -n 2 /
	status_is 126; one_line 'cannot start /: Permission denied \(it is a directory\)'
	cp /bin/true fixed
	printf '\002' | dd of=fixed bs=1 seek=16 conv=notrunc 2>/dev/null
	pvasrun -n 2 ./fixed
	status_is 126; one_line 'cannot start ./fixed: .*position.independent.*'
	pvasrun -n 1 touch started : -n 1 nosuchprogram
	status_is 127; check "nothing starts if one can't" [ ! -e started ]
}

test_usage_errors()
{
	pvasrun; status_is 1; one_line 'no program given .*'
	pvasrun -n 1; status_is 1; one_line 'no program given .*'
	pvasrun true; status_is 1; one_line "how many tasks of 'true'\? .*"
	pvasrun -n 0 true; status_is 1; one_line "-n '0': .*"
	pvasrun --frob -n 1 true; status_is 1; one_line "option '--frob' is unknown.*--help.*"
	pvasrun -n 1 --stdin 1 true; status_is 1; one_line '--stdin 1: .*'
	pvasrun --help; status_is 0; silent
	check "help has all options" grep -q -- --tag-output out
	pvasrun --version; status_is 0; silent
	check "version" grep -qE '^pvasrun [0-9]+\.[0-9]+ \(libpvas [0-9]+\.[0-9]+\)$' out
}

# ---- how it ends ----

test_exit_status()
{
	pvasrun -n 4 true; status_is 0; silent
	pvasrun -n 1 sh -c 'exit 7'
	status_is 7; one_line 'rank 0 \(pid [0-9]+, sh\) exited with status 7'
	pvasrun -n 1 sh -c 'exit 255'; status_is 255
	pvasrun -n 3 sh -c '[ $PVAS_RANK = 1 ] && kill -SEGV $$; exit 0'
	status_is 139
	one_line 'rank 1 \(pid [0-9]+, sh\) died from signal 11 \(Segmentation fault\)(, core dumped)?'
	pvasrun -n 1 sh -c 'kill -KILL $$'
	status_is 137; one_line 'rank 0 \(pid [0-9]+, sh\) died from signal 9 \(Killed\)'
	pvasrun -n 2 true : -n 1 sh -c 'exit 3'
	status_is 3; one_line 'rank 2 \(pid [0-9]+, sh\) exited with status 3'
}

test_failure_ends_job()
{
	pvasrun -n 4 sh -c "$READY"' [ $PVAS_RANK = 2 ] && exit 9; sleep 100'
	status_is 9; one_line 'rank 2 \(pid [0-9]+, sh\) exited with status 9'
	all_gone
	rm -f pid.*
	# the children of a task get the signal too
	pvasrun -n 2 sh -c '[ $PVAS_RANK = 1 ] && { until [ -e $T/pid.0 ]; do sleep 0.05; done; exit 4; }
		sh -c "echo \$\$ >$T/p; mv $T/p $T/pid.0; exec sleep 100"; :'
	status_is 4; all_gone
	# one that ignores SIGTERM gets SIGKILL
	rm -f pid.*
	SECONDS=0
	pvasrun -n 2 sh -c 'trap "" TERM;'"$READY"' [ $PVAS_RANK = 1 ] &&
		{ until [ -e $T/pid.0 ]; do sleep 0.05; done; exit 4; }; while :; do sleep 0.1; done'
	status_is 4; one_line 'rank 1 .* exited with status 4'; all_gone
	check "grace is kept" [ $SECONDS -ge 2 ]
	check "grace is 3 s" [ $SECONDS -le $((6 * SLOW)) ]
	# and one that is stopped dies too
	rm -f pid.*
	SECONDS=0
	pvasrun -n 2 sh -c "$READY"' [ $PVAS_RANK = 0 ] && kill -STOP $$
		until [ -e $T/pid.0 ]; do sleep 0.05; done; sleep 0.2; exit 5'
	status_is 5; all_gone
	check "SIGTERM wakes a stopped task" [ $SECONDS -le $((2 * SLOW)) ]
}

test_no_kill()
{
	pvasrun --no-kill -n 3 sh -c '[ $PVAS_RANK = 1 ] && exit 6; sleep 0.5; echo on $PVAS_RANK'
	status_is 6; sorted_is $'on 0\non 2'
	one_line 'rank 1 \(pid [0-9]+, sh\) exited with status 6'
	pvasrun --no-kill -n 3 sh -c '[ $PVAS_RANK = 2 ] && until grep -q "rank 1" $T/err; do sleep 0.05; done
		exit $PVAS_RANK'
	status_is 1; check "each failure is told" [ "$(wc -l <err)" -eq 2 ]
}

test_timeout()
{
	SECONDS=0
	pvasrun --timeout 1 -n 3 sh -c "$READY sleep 100"
	status_is 124; one_line '--timeout 1: the time is over, ending 3 tasks'; all_gone
	check "in time" [ $SECONDS -le $((3 * SLOW)) ]
	pvasrun --timeout 1h -n 2 true
	status_is 0; silent
	SECONDS=0
	pvasrun --timeout $SLOW.0 -n 1 sh -c 'trap "" TERM; while :; do sleep 0.1; done'
	status_is 124
	check "SIGKILL after the grace" [ $SECONDS -ge 2 ]
}

# ---- signals ----

# A child stays in the process group that the task was given, the task does not.
test_left_group()
{
	SECONDS=0
	pvasrun --timeout 1 -n 1 perl -e 'open F, ">", "$ENV{T}/pid.0"; print F $$; close F;
		if (!fork) { $SIG{TERM} = "IGNORE"; sleep 6; exit }
		setpgrp(0, getpgrp(getppid)); sleep 100 while 1'
	status_is 124; check "it was not ended" [ $SECONDS -le 5 ]
	all_gone
}

test_signals_reach_all()
{
	local name
	for name in INT TERM HUP QUIT USR1 USR2; do
		rm -f pid.* got.*
		start -n 3 sh -c "trap 'touch $T/got.\$PVAS_RANK; exit 0' $name; $WAIT"
		wait_files pid 3
		kill -$name $job
		finish
		check "SIG$name reaches all" files got 3
		status_is 0; silent
	done
}

test_signals_kill()
{
	local name
	for name in INT:130 TERM:143 HUP:129 QUIT:131; do
		rm -f pid.*
		start -n 3 sh -c "$READY exec sleep 100"
		wait_files pid 3
		kill -${name%:*} $job
		finish
		status_is ${name#*:}; silent; all_gone
	done
	# not the user's wish to end the job, but the program's fault
	rm -f pid.*
	start -n 2 sh -c "$READY exec sleep 100"
	wait_files pid 2
	kill -USR1 $job
	finish
	status_is 138; one_line 'rank [01] \(pid [0-9]+, sh\) died from signal 10 \(User defined signal 1\)'
}

test_saving_work_on_int()
{
	# one task dies at once, the other saves its work for a second: it may
	start -n 2 sh -c "[ \$PVAS_RANK = 1 ] && trap 'sleep 1; touch $T/saved.1; exit 0' INT
		$READY while :; do sleep 0.05; done"
	wait_files pid 2
	kill -INT $job
	finish
	status_is 130; silent
	check "the work was saved" [ -e saved.1 ]
}

test_second_int_kills()
{
	start -n 2 sh -c "trap '' INT; $WAIT"
	wait_files pid 2
	kill -INT $job
	sleep 0.5
	check "one is not enough" kill -0 $job
	SECONDS=0
	kill -INT $job
	finish
	status_is 130; all_gone
	check "at once" [ $SECONDS -le $((2 * SLOW)) ]
	# twice at once is one: timeout(1) does that
	rm -f pid.*
	start -n 1 sh -c "trap 'sleep 1; touch $T/saved.t; exit 0' TERM; $WAIT"
	wait_files pid 1
	kill -TERM $job; [ $SLOW -gt 1 ] || sleep 0.05; kill -TERM $job
	finish
	check "no SIGKILL" [ -e saved.t ]
}

# No shell: it waits by vfork() for what it starts, and if that is stopped before its exec,
# the shell is in state D.
test_stop_and_continue()
{
	start -n 3 sh -c "$READY exec sleep 60"
	wait_files pid 3
	kill -TSTP $job
	check "SIGTSTP stops all" until_true 5 all_in_state T
	kill -CONT $job
	check "SIGCONT wakes all" until_true 5 all_in_state S
	kill -TERM $job
	finish; status_is 143; all_gone
}

test_pvasrun_killed()
{
	start -n 4 sh -c "$WAIT"
	wait_files pid 4
	kill -KILL $job
	finish 2>/dev/null
	status_is 137; all_gone
}

test_ignored_stays_ignored()
{
	(trap '' HUP INT; exec $PVASRUN -n 2 sh -c "$READY sleep 1") >out 2>err & job=$!
	wait_files pid 2
	kill -HUP $job; kill -INT $job
	finish; status_is 0; silent
	pvasrun -n 1 grep SigIgn /proc/self/status
	(trap '' HUP; exec $PVASRUN -n 1 grep SigIgn /proc/self/status) >out 2>err
	out_is $'SigIgn:\t0000000000000001'
}

# ---- standard input and output ----

test_stdin()
{
	echo data | pvasrun -n 3 sh -c 'echo $PVAS_RANK $(cat)'
	status_is 0; sorted_is $'0 data\n1\n2'
	echo data | pvasrun --stdin 2 -n 3 sh -c 'echo $PVAS_RANK $(cat)'
	sorted_is $'0\n1\n2 data'
	echo data | pvasrun --stdin none -n 2 sh -c 'echo $PVAS_RANK $(cat)'
	sorted_is $'0\n1'
	echo data | pvasrun --stdin all -n 3 sh -c 'echo $PVAS_RANK $(cat)'
	status_is 0; sorted_is $'0 data\n1 data\n2 data'
	echo data >file
	pvasrun --stdin all -n 2 cat <file
	out_is $'data\ndata'
	pvasrun --stdin all -n 2 cat </dev/null
	status_is 0; out_is ''
	pvasrun --stdin all -n 2 cat <&-
	status_is 0; out_is ''
	pvasrun -n 2 cat <&-
	status_is 0; out_is ''
}

test_stdin_much()
{
	local sum
	seq 200000 >numbers
	sum=$(cksum <numbers)
	pvasrun --stdin all -n 4 cksum <numbers
	status_is 0; out_is "$sum"$'\n'"$sum"$'\n'"$sum"$'\n'"$sum"
	cat numbers | pvasrun --stdin all -n 4 sh -c '[ $PVAS_RANK = 2 ] && exit 0; sleep 0.$PVAS_RANK; cksum'
	status_is 0; silent; out_is "$sum"$'\n'"$sum"$'\n'"$sum"
	# nobody listens: no hang, no error
	cat numbers | pvasrun --stdin all -n 4 true
	status_is 0; silent
}

test_output_direct()
{
	pvasrun -n 2 sh -c 'echo o; echo e >&2'
	out_is $'o\no'
	check "standard error is theirs too" [ "$(cat err)" = $'e\ne' ]
	pvasrun -n 1 sh -c '[ -p /dev/fd/1 ] || [ -f /dev/fd/1 ] && echo same'
	out_is same
}

test_tag_output()
{
	pvasrun --tag-output -n 2 sh -c 'echo one; echo two; echo err >&2'
	status_is 0; sorted_is $'[0] one\n[0] two\n[1] one\n[1] two'
	check "tagged errors" [ "$(sort err)" = $'[0] err\n[1] err' ]
	pvasrun --tag-output -n 1 printf 'a\nno end'
	out_is $'[0] a\n[0] no end'
	pvasrun --tag-output -n 11 true
	status_is 0; out_is ''
	# many pieces, many tasks: no line is torn, none is lost, order within a task
	pvasrun --tag-output -n 8 perl -e '$| = 1; for (1..500) { print "line $_ "; print "x" x 100, "\n" }'
	status_is 0
	check "all lines" [ "$(wc -l <out)" -eq 4000 ]
	check "none torn" [ "$(grep -cE '^\[[0-7]\] line [0-9]+ x{100}$' out)" -eq 4000 ]
	check "in order" [ "$(grep '^\[5\]' out | cut -d' ' -f3 | tr '\n' ' ')" = "$(seq 500 | tr '\n' ' ')" ]
	# through a pipe, both streams in one, longer than a pipe takes at once
	$PVASRUN --tag-output -n 4 perl -e '$| = 1; for (1..200) { print "x" x 9000, "\n"; print STDERR "y" x 5000, "\n" }' \
		2>&1 | cat >out
	check "long lines are whole" [ "$(perl -ne '$n++ if /^\[[0-3]\] (?:x{9000}|y{5000})$/; END { print $n }' out)" -eq 1600 ]
	check "and no others" [ "$(wc -l <out)" -eq 1600 ]
}

test_tag_output_readers()
{
	# a slow reader: all arrives, and pvasrun's memory stays small
	$PVASRUN --tag-output -n 2 seq 300000 2>err | { sleep 1; cat >out; }
	check "a slow reader gets all" [ "$(wc -l <out)" -eq 600000 ]
	# a reader that leaves ends the job, as without pvasrun between
	SECONDS=0
	$PVASRUN --tag-output -n 2 yes 2>err | head -1 >out
	status=${PIPESTATUS[0]}
	status_is 141; check "in time" [ $SECONDS -le $((4 * SLOW)) ]
	# one that doesn't read can't keep pvasrun from signals
	mkfifo fifo
	# shellcheck disable=SC2217 # it holds the fifo open
	sleep 100 <fifo & reader=$!
	$PVASRUN --tag-output -n 2 sh -c "$READY yes" >fifo 2>err & job=$!
	wait_files pid 2
	sleep 0.5
	kill -TERM $job
	check "tasks end" until_true 5 gone
	sleep 0.3
	kill -TERM $job
	check "pvasrun ends" until_true 5 eval "! kill -0 $job"
	kill $reader; wait $reader 2>/dev/null; finish
	status_is 143
	# a program left behind by a task doesn't hold pvasrun
	SECONDS=0
	rm -f pid.*
	pvasrun --tag-output -n 1 sh -c 'sleep 30 & echo $! >$T/pid.0; echo done'
	status_is 0; out_is '[0] done'; check "no waiting" [ $SECONDS -le $((4 * SLOW)) ]
	kill "$(cat pid.0)"
}

# fill FILE: write into a FIFO that nobody reads until there is no room
fill() { timeout 1 sh -c 'yes >"$1"' - "$1"; }

# A reader of standard error that does not read keeps nobody from ending the job.
test_stuck_errors()
{
	mkfifo full
	exec 7<>full
	fill full
	SECONDS=0
	timeout -k 1 20 $PVASRUN --timeout 1 -n 2 sleep 100 2>&7 >out; status=$?
	status_is 124; check "--timeout waited for the reader" [ $SECONDS -le 6 ]
	SECONDS=0
	timeout -k 1 20 $PVASRUN -n 2 sh -c '[ $PVAS_RANK = 0 ] && exit 3; sleep 100' 2>&7 >out; status=$?
	status_is 3; check "a failure waited for the reader" [ $SECONDS -le 6 ]
	exec 7>&-
	# but one that reads slowly loses nothing
	$PVASRUN --map --bind-to none -n 300 true 2> >(sleep 2; cat >slow); sleep 2.5
	check "of the map there are $(wc -l <slow) lines" until_true 5 [ "$(wc -l <slow)" -eq 301 ]
}

# Nor one of standard output, if there is a --timeout: what is not read is lost.
test_stuck_output()
{
	mkfifo full
	exec 7<>full
	SECONDS=0
	timeout -k 1 30 $PVASRUN --timeout 2 --tag-output -n 2 yes >&7 2>err; status=$?
	exec 7>&-
	status_is 124; check "--timeout waited for the reader" [ $SECONDS -le 10 ]
	check "it is not said" grep -q 'the time is over, and output was not read' err
	# a terminal has room for less than it says
	python3 -c 'import os, pty, signal, subprocess, sys, time
master, slave = pty.openpty()
job = subprocess.Popen(sys.argv[1:], stdout=slave, start_new_session=True)
time.sleep(1)
job.send_signal(signal.SIGTERM)
job.wait(8)' $PVASRUN --tag-output -n 1 yes 0123456789012345678901234567890123456789 2>err
	status=$?
	status_is 0
}

test_pty()
{
	# what was printed before an abort appears, and the bytes are the same
	pvasrun --pty always -n 2 perl -e 'print "one\n"; print "two\r\n\t\004"; kill KILL => $$ if $ENV{PVAS_RANK}; sleep 100'
	status_is 137
	check "not lost" grep -qx one out
	pvasrun --pty always -n 1 sh -c 'test -t 1 && echo terminal; test -t 2 || echo no other'
	status_is 0; silent; out_is $'terminal\nno other'
	pvasrun --pty never -n 1 sh -c 'test -t 1 || echo no'; out_is no
	pvasrun -n 1 sh -c 'test -t 1 || echo no'; out_is no
	pvasrun --pty always -n 1 perl -e 'print pack("C*", 0 .. 255) x 4000'
	check "binary data are" [ "$(cksum <out)" = "$(perl -e 'print pack("C*", 0 .. 255) x 4000' | cksum)" ]
	pvasrun --pty always --tag-output -n 2 sh -c 'test -t 1 && echo one; echo err >&2'
	status_is 0; sorted_is $'[0] one\n[1] one'
	check "tagged errors" [ "$(sort err)" = $'[0] err\n[1] err' ]
	# the pseudo-terminal controls no task
	pvasrun --pty always -n 1 perl -e 'open(T, "<", "/dev/tty") ? print POSIX::getpgrp() : print "none\n"'
	{ : </dev/tty; } 2>/dev/null || out_is none
	# a reader that leaves ends the job
	SECONDS=0
	$PVASRUN --pty always -n 2 yes 2>err | head -1 >out
	status=${PIPESTATUS[0]}
	status_is 141; check "in time" [ $SECONDS -le $((4 * SLOW)) ]
}

test_descriptors()
{
	local own
	# shellcheck disable=SC2217 # what is open is what it lists
	own=$(ls /proc/self/fd </dev/null 2>/dev/null)
	pvasrun --mpi none -n 1 ls /proc/self/fd </dev/null
	out_is "$own"
	# and one for MPICH
	pvasrun -n 1 sh -c 'ls /proc/self/fd | grep -vx "$PMI_FD"; readlink /proc/$$/fd/$PMI_FD | cut -c 1-7' </dev/null
	out_is "$own"$'\nsocket:'
	pvasrun --mpi none --stdin all --tag-output -n 9 true : -n 1 ls /proc/self/fd </dev/null
	check "no other descriptor" [ "$(cut -d' ' -f2 out)" = "$own" ]
	pvasrun -n 1 grep -E '^Sig(Blk|Ign)' /proc/self/status
	out_is $'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000'
	(exec $PVASRUN -n 1 true >&- 2>&- <&-); status=$?
	status_is 0
}

# ---- placement and what is said of it ----

test_map_and_verbose()
{
	pvasrun --map -n 2 true : -n 1 echo x
	status_is 0
	check "map has a head and 3 rows" [ "$(wc -l <err)" -eq 4 ]
	check "rows" [ "$(grep -cE '^ +[0-2] +[0-9]+ +[0-9]+  [0-9a-f]{12}-[0-9a-f]{12}  [^ ]+ +/[^ ]+/(true|echo)$' err)" -eq 3 ]
	pvasrun -v -n 1 --bind-to none true
	check "verbose tells the backend" grep -qE '^pvasrun: backend (kernel|user), space [0-9]+, partitions of 8T \(1 of [0-9]+ used\)$' err
	check "verbose tells the binding" grep -q '^pvasrun: tasks are not bound$' err
	pvasrun -v --partition-size 32G -n 1 true
	check "partition size" grep -q 'partitions of 32G' err
}

# Where program, heap, libraries and stack of the task in partition 1 are
places() { "$@" $PVASRUN -n 1 $ASLR cat /proc/self/maps 2>&1 | grep -oE '^1[0-9a-f]{9}-[0-9a-f]*'; }

test_no_aslr()
{
	local fixed

	[ -z "$plain" ] || return 0	# no partitions
	fixed=$(ASLR=--no-aslr places env)
	check "places are printed" [ "$(echo "$fixed" | wc -l)" -gt 4 ]
	check "--no-aslr: the same in each run" [ "$fixed" = "$(ASLR=--no-aslr places env)" ]
	check "setarch -R: the same" [ "$fixed" = "$(places setarch -R)" ]
	[ "$(cat /proc/sys/kernel/randomize_va_space)" != 0 ] || return 0
	check "else others" [ "$fixed" != "$(places env)" ]
	check "and others in each run" [ "$(places env)" != "$(places env)" ]
}

test_binding()
{
	local cpus
	cpus=$(pvasrun -n 1 --bind-to none grep Cpus_allowed_list /proc/self/status; cut -f2 out)
	check "none: as before" [ "$cpus" = "$(grep Cpus_allowed_list /proc/self/status | cut -f2)" ]
	pvasrun -n 1 --bind-to numa grep Cpus_allowed_list /proc/self/status
	status_is 0
	pvasrun -n 40 --bind-to core grep -h Cpus_allowed_list /proc/self/status
	check "core: all cores are used" [ "$(sort -u out | wc -l)" -ge 1 ]
	check "core: one core each" [ "$(sort out | uniq -c | awk '{print $1}' | sort -n | tail -1)" -le 40 ]
	if [ "$(nproc)" -gt 1 ]; then
		pvasrun -n 2 grep -h Cpus_allowed_list /proc/self/status
		check "default: two tasks, two places" [ "$(sort -u out | wc -l)" -eq 2 ]
		taskset -c 0 $PVASRUN -n 1 --bind-to core grep -h Cpus_allowed_list /proc/self/status >out 2>err
		out_is $'Cpus_allowed_list:\t0'
	fi
	# hwloc's plugins take longer to load than a job of one task to run
	LD_DEBUG=files LD_DEBUG_OUTPUT=$T/loaded pvasrun -n 1 --bind-to core printenv HWLOC_PLUGINS_PATH
	check "no plugins" eval '! cat loaded.* | grep "file=.*/hwloc_"'
	out_is ''
	pvasrun -n 2 --mem-bind local true; status_is 0; silent
	pvasrun -n 2 --mem-bind interleave true; status_is 0; silent
	if [ -e /sys/devices/system/node/node1 ]; then
		pvasrun -n 1 --mem-bind interleave grep -c interleave: /proc/self/numa_maps
		status_is 0
		pvasrun -n 1 --mem-bind local grep -c local /proc/self/numa_maps
		status_is 0
		pvasrun -n 2 --bind-to numa grep -h Cpus_allowed_list /proc/self/status
		check "numa: two tasks, two nodes" [ "$(sort -u out | wc -l)" -eq 2 ]
	else
		pvasrun -v -n 1 --mem-bind local true
		check "one node is noted" grep -q 'one memory node: --mem-bind changes nothing' err
	fi
}

# ---- many, and nothing left behind ----

test_many()
{
	SECONDS=0
	pvasrun -n 240 sh -c 'echo $PVAS_RANK'
	status_is 0; silent
	check "each rank once" [ "$(sort -n out | tr '\n' ' ')" = "$(seq 0 239 | tr '\n' ' ')" ]
	check "in time" [ $SECONDS -le $((10 * SLOW)) ]
	pvasrun --tag-output -n 240 sh -c 'echo $PVAS_RANK'
	check "each tagged" [ "$(grep -cE '^\[([0-9]+)\] \1$' out)" -eq 240 ]
	pvasrun -n 240 sh -c 'exit $((PVAS_RANK == 120))'
	status_is 1; one_line 'rank 120 \(pid [0-9]+, sh\) exited with status 1'
}

test_nothing_left()
{
	start -n 2 sh -c '[ $PVAS_RANK = 1 ] && exit 0;'"$WAIT"
	wait_files pid 1
	sleep 0.3
	check "no zombie while others run" until_true 5 eval "! ps -o stat= --ppid $job | grep -q Z"
	kill -TERM $job
	finish
	all_gone
	[ -r /proc/pvas ] && check "no space left" [ "$(grep -c . /proc/pvas)" -le 1 ]
}

test_limits()
{
	(ulimit -n 100; exec $PVASRUN --backend kernel --tag-output -n 240 true) >out 2>err; status=$?
	status_is 1; one_line 'the limit of 100 open files is too low: 784 are needed with --tag-output \(.*ulimit -n\)'
	(ulimit -S -n 100; exec $PVASRUN --tag-output -n 60 sh -c 'ulimit -S -n') >out 2>err; status=$?
	status_is 0
	check "tasks have the old limit" [ "$(grep -c '\] 100$' out)" -eq 60 ]
	# room for what is opened on the way to the program, and for PMI_FD
	(ulimit -S -n 20; exec $PVASRUN -n 2 sh -c 'ulimit -S -n') >out 2>err; status=$?
	status_is 0; silent; out_is $'64\n64'
	(ulimit -n 100; exec $PVASRUN --backend user -n 240 true) >out 2>err; status=$?
	status_is 1; one_line 'the limit of 100 open files is too low: 544 are needed \(.*ulimit -n\)'
	(ulimit -n 100; exec $PVASRUN --backend kernel --mpi none -n 240 true) >out 2>err; status=$?
	status_is 0; silent
	[ "$(id -u)" = 0 ] && [ -n "$plain" ] || return
	cp "$PVASRUN" "$T/pvasrun-copy" && chmod 755 "$T/pvasrun-copy"
	setpriv --reuid 65534 --clear-groups prlimit --nproc=100:100 "$T/pvasrun-copy" -n 240 true >out 2>err
	status=$?
	status_is 1; one_line 'the limit of 100 processes is too low for 240 more tasks \(.*ulimit -u\)'
}

# Limits that count for all tasks, and places where no space can be, are named
test_reasons()
{
	[ -z "$plain" ] || return
	local opt
	for opt in -d -v; do
		(ulimit $opt 60000; exec $PVASRUN --partition-size 64G --mpi none -n 2 true) >out 2>err; status=$?
		check "ulimit $opt is named" grep -qE "^pvasrun: .*ulimit $opt 60000 counts for all tasks together" err
		status_is 1
	done
	if user_backend; then
		pvasrun -n 2 $PVASRUN -n 2 true
		status_is 1
		check "no space in a task" grep -q 'runs inside a job of another one with the user backend.*(start it outside' err
		pvasrun -n 1 sh -c "$PVASRUN -n 2 true; :"
		status_is 0
		check "no space below a task" grep -q 'runs inside a job of another one with the user backend.*(start it outside' err
		# what systemd's MemoryDenyWriteExecute= asks for: PR_SET_MDWE, if the kernel has it
		perl -e 'exit(syscall(157, 65, 1, 0, 0, 0) != 0)' || return
		perl -e 'syscall(157, 65, 1, 0, 0, 0); exec @ARGV' $PVASRUN -n 1 true >out 2>err; status=$?
		[ $status -eq 0 ] || check "W^X is named" grep -q 'MemoryDenyWriteExecute=' err
	else
		pvasrun -n 2 $PVASRUN -n 2 sh -c 'echo $PVAS_SPACE'
		status_is 0; silent
		check "two jobs in two tasks" [ "$(sort out | uniq -c | awk '{print $1}' | paste -sd' ')" = "2 2" ]
	fi
}

# ---- what tasks leave running ----

# A daemon: its parent has ended, it has a session of its own. It tells its pid, when it is asked
# to end, and that it has mapped memory at last.
DAEMON='perl -MPOSIX -e "fork and exit; setsid; \$SIG{TERM} = sub { open F, q(>), qq($T/termed); exit };
	open F, q(>), qq($T/p.\$ENV{PVAS_RANK}); print F qq(\$\$\\n); close F;
	rename qq($T/p.\$ENV{PVAS_RANK}), qq($T/pid.\$ENV{PVAS_RANK}); sleep \$ARGV[0];
	\$x = q(a) x 50000000; open F, q(>), qq($T/mapped)"'
DAEMON_UP='until [ -e $T/pid.$PVAS_RANK ]; do sleep 0.05; done'
user_backend() { $PVASRUN -v -n 1 true 2>&1 | grep -q 'backend user'; }

test_orphans_warn()
{
	pvasrun --bind-to none -n 2 sh -c "$DAEMON 100; $DAEMON_UP"
	status_is 0
	if user_backend; then
		one_line 'perl \(pid [0-9]+\) and 1 more, left running by a task, can map no memory .* --orphans\)'
	else
		silent
	fi
	check "they live on" xargs kill < <(cat pid.*)
	rm -f pid.*
	pvasrun -q -n 1 sh -c "$DAEMON 100; $DAEMON_UP"
	status_is 0; silent; kill "$(cat pid.0)"
	# one that ends at once is no news
	pvasrun -n 2 sh -c 'sleep 0.05 & exit 0'
	status_is 0; silent
}

# A process's own name is shown, without its control characters.
test_orphans_name()
{
	user_backend || return
	pvasrun -n 1 sh -c 'perl -e "open N, q(>), q(/proc/self/comm); print N qq(a\\e[31m\\x9bb); close N;
		open F, q(>), qq($T/p); print F \$\$; close F; rename qq($T/p), qq($T/pid.0); sleep 100" &
		until [ -e $T/pid.0 ]; do sleep 0.05; done'
	status_is 0
	one_line 'a\?\[31m\?b \(pid [0-9]+\), left running by a task, .*'
	kill "$(cat pid.0)"
}

test_orphans_wait()
{
	start --orphans wait -n 2 sh -c "$DAEMON 2; $DAEMON_UP"
	wait_files pid 2
	check "they are there" xargs kill -0 < <(cat pid.*)
	finish; status_is 0; silent; all_gone
	check "by themselves" [ ! -e termed ]
	check "and could map memory" [ -e mapped ]
	rm -f pid.*
	start --orphans wait -n 1 sh -c "$DAEMON 100; $DAEMON_UP"
	wait_files pid 1
	sleep 0.5
	kill -TERM $job
	finish; status_is 143; silent; all_gone
	check "they got the signal" [ -e termed ]
	rm -f pid.* termed
	pvasrun --orphans wait --timeout $SLOW -n 1 sh -c "$DAEMON 100; $DAEMON_UP"
	status_is 124; all_gone
	one_line "--timeout $SLOW: the time is over, ending what tasks left running"
	rm -f pid.* termed
	pvasrun --orphans wait -n 1 sh -c "$DAEMON 100; $DAEMON_UP; exit 3"
	status_is 3; all_gone
	check "a failed job waits for none" [ -e termed ]
}

test_orphans_kill()
{
	# children that another program had before it became pvasrun are not meant
	(sleep 100 & echo $! >$T/mine; exec $PVASRUN --orphans kill -n 2 sh -c "$DAEMON 100; $DAEMON_UP") >out 2>err
	status=$?
	status_is 0; silent; all_gone
	check "asked first" [ -e termed ]
	check "no others" kill "$(cat mine)"
	# those that ignore SIGTERM, and what they have started
	rm -f pid.*
	pvasrun --orphans kill -n 1 sh -c 'sh -c "trap \"\" TERM; echo \$\$ >$T/pid.0; sh -c \"echo \\\$\\\$ >$T/pid.1; sleep 99; :\"; :" &
		until [ -e $T/pid.1 ]; do sleep 0.05; done'
	status_is 0; silent; all_gone
}

# ---- at a terminal ----

at_terminal()
{
	[ -n "$TERMINAL" ] || return
	check "$1" "$TERMINAL" "${@:2}" >out
}

test_terminal_input()
{
	at_terminal "the task with input has the terminal" expect=ready type=$'hello\n' \
		expect='got hello' state='exit 0' -- \
		$PVASRUN -n 2 sh -c '[ $PVAS_RANK = 0 ] || exit 0; test -t 0 && echo ready; read a; echo got $a'
	at_terminal "--stdin all" expect=ready0 type=$'hello\n' expect='=hello' expect='=hello' \
		type=$'\004' state='exit 0' -- \
		$PVASRUN --stdin all -n 2 sh -c 'echo ready0; while read a; do echo =$a; done'
}

test_terminal_keys()
{
	local once='trap "echo int\$PVAS_RANK >>$T/ints" INT;'
	at_terminal "Ctrl-C ends the job, and pvasrun dies from it" run="until [ -e $T/pid.2 ]; do sleep 0.05; done" \
		type=$'\003' state='signal 2' -- $PVASRUN -n 3 sh -c "$READY exec sleep 100"
	all_gone
	rm -f pid.*
	at_terminal "Ctrl-C reaches each once" run="until [ -e $T/pid.2 -a -e $T/pid.1 -a -e $T/pid.0 ]; do sleep 0.05; done" \
		type=$'\003' pause=1000 run="touch $T/go" state='exit 0' -- \
		$PVASRUN -n 3 sh -c "$once $READY"' until [ -e $T/go ]; do sleep 0.05; done'
	[ -n "$TERMINAL" ] && check "exactly once" [ "$(sort ints)" = $'int0\nint1\nint2' ]
	rm -f pid.* go
	at_terminal "Ctrl-Z stops all, fg continues" run="until [ -e $T/pid.2 -a -e $T/pid.1 -a -e $T/pid.0 ]; do sleep 0.05; done" \
		type=$'\032' state='stopped 20' pause=300 \
		run='for p in $(cat $T/pid.*); do grep -q ") T" /proc/$p/stat || exit 1; done' fg \
		run="touch $T/go" state='exit 0' -- \
		$PVASRUN -n 3 sh -c "$READY"' until [ -e $T/go ]; do sleep 0.05; done'
}

# A rank in the terminal's background that reads from it or sets it is not stopped; one that
# asks to be is reported, and ends with the job or goes on.
test_terminal_background()
{
	local stops='$SIG{TTIN} = $SIG{TTOU} = "DEFAULT"; $| = 1; print "up\n"; open(T, "+<", "/dev/tty") or die;'
	at_terminal "reading fails, setting does not" expect='read 1: 1' expect='set 1: 0' state='exit 0' -- \
		$PVASRUN -n 2 sh -c '[ $PVAS_RANK = 1 ] || exit 0; read a </dev/tty; echo read 1: $?
			stty sane </dev/tty; echo set 1: $?'
	at_terminal "printing with tostop" expect='out 1' state='exit 0' -- \
		sh -c "stty tostop; exec $PVASRUN -n 2 sh -c 'echo out \$PVAS_RANK'"
	at_terminal "no rank has it" expect='read 0: 1' state='exit 0' -- \
		$PVASRUN --stdin none -n 1 sh -c 'read a </dev/tty; echo read 0: $?'
	at_terminal "SIGTTIN is reported" expect=up expect='pvasrun: rank 1 (pid ' \
		expect='is stopped by signal 21' expect='it reads from the terminal, which rank 0 has: see --stdin)' \
		type=$'\003' state='signal 2' -- $PVASRUN -n 2 perl -e "\$ENV{PVAS_RANK} or sleep 100; $stops <T>"
	at_terminal "SIGTTOU is reported" expect=up expect='is stopped by signal 22' expect='it sets the terminal' \
		type=$'\003' state='signal 2' -- $PVASRUN -n 2 \
		perl -MPOSIX -e "\$ENV{PVAS_RANK} or sleep 100; $stops POSIX::tcsetpgrp(3, getpgrp) or POSIX::Termios->new->setattr(0) or kill TTOU => \$\$; sleep 100"
	at_terminal "Ctrl-Z and fg are not" run="until [ -e $T/pid.2 -a -e $T/pid.1 -a -e $T/pid.0 ]; do sleep 0.05; done" \
		type=$'\032' state='stopped 20' fg pause=1300 run="touch $T/go" expect=went expect=went expect=went \
		state='exit 0' -- $PVASRUN -n 3 sh -c "$READY"' until [ -e $T/go ]; do sleep 0.05; done; echo went'
	[ -n "$TERMINAL" ] && check "no word of it" eval '! grep -q stopped out'
}

test_stopped_rank()
{
	pvasrun -n 3 sh -c "$READY"' [ $PVAS_RANK = 0 ] || kill -STOP $$
		until grep -q "is stopped by" $T/err; do sleep 0.05; done; exit 3'
	status_is 3; all_gone
	rm -f pid.*
	start --no-kill -n 3 sh -c "$READY"' [ $PVAS_RANK = 0 ] || kill -STOP $$; exit 0'
	check "both in one line" until_true 10 grep -qE \
		'^pvasrun: rank 1 \(pid [0-9]+, sh\) is stopped by signal 19 \(.*\), and 1 more \(to let it go on: kill -CONT [0-9]+\)$' err
	kill -CONT $job
	finish; status_is 0
	check "once" [ "$(wc -l <err)" -eq 1 ]
	# one that goes on at once is no news
	pvasrun -n 1 perl -e 'my $p = $$; fork or do { select undef, undef, undef, 0.2; kill CONT => $p; exit }; kill STOP => $$; sleep 2'
	status_is 0; silent
}

# ---- only with the stand-in: errors that are hard to have for real ----

test_plain_errors()
{
	[ -n "$plain" ] || return
	FAKEPVAS_CREATE=19 pvasrun -n 2 true
	status_is 1; one_line 'cannot make the address space: No such device \(load it: modprobe pvas.*\)'
	FAKEPVAS_CREATE=13 pvasrun -n 2 true
	status_is 1; one_line 'cannot make the address space: Permission denied \(.*/dev/pvas.*\)'
	FAKEPVAS_SPAWN=11@2 pvasrun -n 4 sh -c "$READY sleep 100"
	status_is 1; one_line 'cannot start rank 2 \(sh\): Resource temporarily unavailable \(.*ulimit -u.*\)'
	all_gone
	FAKEPVAS_SPAWN=8@1 pvasrun -n 2 true
	status_is 126; one_line 'cannot start rank 1 \(true\): Exec format error'
	FAKEPVAS_LAST=3 pvasrun --partition-size 64G -n 4 true
	status_is 1; one_line '3 partitions of 64G are too few for 4 tasks \(.*--partition-size\)'
	FAKEPVAS_LAST=3 pvasrun -v -n 4 true
	status_is 0; check "the size is halved" grep -q 'partitions of 32G (4 of 6 used)' err
	# one that the vdso has
	FAKEPVAS_SPAWN=22@1 pvasrun --map -n 3 true
	status_is 0; check "it is skipped" [ "$(awk 'NR > 1 { print $2 }' err | paste -sd' ')" = "1 3 4" ]
	FAKEPVAS_LAST=0 pvasrun -n 1 true
	status_is 1; one_line '0 partitions of 4G are too few for 1 tasks \(.*\)'
}

test_plain_while_starting()
{
	[ -n "$plain" ] || return
	export FAKEPVAS_SLOW=100
	start -n 50 sh -c "$READY exec sleep 100"
	check "some started" until_true 5 [ -e pid.3 ]
	kill -INT $job
	finish; status_is 130; silent; all_gone
	check "the rest was not" [ ! -e pid.40 ]
	rm -f pid.*
	SECONDS=0
	pvasrun -n 50 sh -c 'exit $PVAS_RANK'
	status_is 1; one_line 'rank 1 .* exited with status 1'
	check "a failure ends the starting" [ $SECONDS -le 3 ]
	SECONDS=0
	pvasrun --timeout 1 -n 100 sleep 100
	status_is 124; check "time is over while starting" [ $SECONDS -le 3 ]
	# a task that leaves before the last has started must not set off the input
	seq 100000 | pvasrun --stdin all -n 4 sh -c '[ $PVAS_RANK = 1 ] && exit 0; cksum'
	check "all get all" [ "$(sort -u out)" = "$(seq 100000 | cksum)" ]
	at_terminal "progress is shown, and cleared" expect='pvasrun: 11/15 tasks started' \
		expect=$'\r\033[K' state='exit 0' -- $PVASRUN -n 15 true
	unset FAKEPVAS_SLOW
}

# Nothing of the test before is seen.
begin_test()
{
	rm -rf "${T:?}"/*
	touch out err
}

run_tests "$@"
sum_up
