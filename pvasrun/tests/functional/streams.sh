# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Standard input and output. Sourced by functional.sh.

# shellcheck disable=SC2016,SC2086,SC2034

# ---- standard input and output ----

test_stdin()
{
	pvasrun -n 3 sh -c 'echo $PVAS_RANK $(cat)' < <(echo data)
	status_is 0; sorted_is $'0 data\n1\n2'
	pvasrun --stdin 2 -n 3 sh -c 'echo $PVAS_RANK $(cat)' < <(echo data)
	sorted_is $'0\n1\n2 data'
	pvasrun --stdin none -n 2 sh -c 'echo $PVAS_RANK $(cat)' < <(echo data)
	sorted_is $'0\n1'
	pvasrun --stdin all -n 3 sh -c 'echo $PVAS_RANK $(cat)' < <(echo data)
	status_is 0; sorted_is $'0 data\n1 data\n2 data'
	echo data >file
	pvasrun --stdin all -n 2 cat <file
	out_is $'data\ndata'
	pvasrun --stdin all -n 1 cat </
	status_is 1; one_line 'cannot read standard input, which ends here for the tasks: Is a directory'
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
	# no task reads: no hang, no error
	cat numbers | pvasrun --stdin all -n 4 true
	status_is 0; silent
}

# Nobody waits for a rank that has ended, although what it has left running keeps its pipe.
test_stdin_of_ended_rank()
{
	head -c 1000000 /dev/zero | timeout -s KILL 30 $PVASRUN --stdin all \
		-n 1 sh -c 'exec 3<&0; sleep 100 <&3 >/dev/null 2>&1 & echo $! >$T/pid.0' : -n 1 wc -c >out 2>err
	status=${PIPESTATUS[1]}
	status_is 0; out_is 1000000
	check "nothing has kept the pipe" kill "$(cat pid.0)"
	# nor for one that has ended before the others begin
	head -c 1000000 /dev/zero | timeout -s KILL 30 $PVASRUN --stdin all -n 1 true : -n 1 sh -c 'sleep 0.2; wc -c' \
		: -n 1 sh -c 'exec 3<&0; sleep 100 <&3 >/dev/null 2>&1 & echo $! >$T/pid.1' >out 2>err
	status=${PIPESTATUS[1]}
	status_is 0; out_is 1000000; kill "$(cat pid.1)"
}

test_output_direct()
{
	pvasrun --no-pty -n 2 sh -c 'echo o; echo e >&2'
	out_is $'o\no'
	check "standard error is theirs too" [ "$(cat err)" = $'e\ne' ]
	pvasrun --no-pty -n 1 sh -c '[ -p /dev/fd/1 ] || [ -f /dev/fd/1 ] && echo same'
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
	# many pieces, many tasks: no line is split or lost, and each task's are in order
	pvasrun --tag-output -n 8 perl -e '$| = 1; for (1..500) { print "line $_ "; print "x" x 100, "\n" }'
	status_is 0
	check "all lines" [ "$(wc -l <out)" -eq 4000 ]
	check "none torn" [ "$(grep -cE '^\[[0-7]\] line [0-9]+ x{100}$' out)" -eq 4000 ]
	check "in order" [ "$(grep '^\[5\]' out | cut -d' ' -f3 | tr '\n' ' ')" = "$(seq 500 | tr '\n' ' ')" ]
	# both streams in one pipe, and lines longer than PIPE_BUF
	$PVASRUN --tag-output -n 4 perl -e '$| = 1; for (1..200) { print "x" x 9000, "\n"; print STDERR "y" x 5000, "\n" }' \
		2>&1 | cat >out
	check "long lines are whole" [ "$(perl -ne '$n++ if /^\[[0-3]\] (?:x{9000}|y{5000})$/; END { print $n }' out)" -eq 1600 ]
	check "and no others" [ "$(wc -l <out)" -eq 1600 ]
}

test_tag_output_readers()
{
	# a slow reader gets everything, and pvasrun's memory stays small
	$PVASRUN --tag-output -n 2 seq 300000 2>err | { sleep 1; cat >out; }
	check "a slow reader gets all" [ "$(wc -l <out)" -eq 600000 ]
	# a reader that exits ends the job, as it would without pvasrun
	SECONDS=0
	$PVASRUN --tag-output -n 2 yes 2>err | head -1 >out
	status=${PIPESTATUS[0]}
	status_is 141; check "in time" [ $SECONDS -le $((4 * SLOW)) ]
	# a reader that does not read does not keep pvasrun from handling signals
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
	# pvasrun does not wait for a process that a task left running
	SECONDS=0
	rm -f pid.*
	pvasrun --tag-output -n 1 sh -c 'sleep 30 & echo $! >$T/pid.0; echo done'
	status_is 0; out_is '[0] done'; check "no waiting" [ $SECONDS -le $((4 * SLOW)) ]
	kill "$(cat pid.0)"
}

# fill FILE: write to a FIFO that is not read until it is full
fill() { timeout 1 sh -c 'yes >"$1"' - "$1"; }

# If standard error is not read, the job can still be ended.
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
	# a slow reader loses nothing
	$PVASRUN --map --bind-to none -n 300 true 2> >(sleep 2; cat >slow); sleep 2.5
	check "of the map there are $(wc -l <slow) lines" until_true 5 [ "$(wc -l <slow)" -eq 301 ]
}

# A message that another writer holds up keeps no task: he has the pipe while his memory, of a
# file whose server is silent, does not come.
test_held_message()
{
	[ -n "$HUNG_OUTPUT" ] && mkdir -p hung || return
	cat >held.sh <<-'end'
		exec 3>&2 2>/dev/null
		"$@" -n 2 sh -c 'echo $$ >p.$PVAS_RANK; mv p.$PVAS_RANK pid.$PVAS_RANK
			until [ -e go ]; do sleep 0.05; done; [ $PVAS_RANK = 1 ] || exit 3; exec sleep 100' 2>&3 &
		until [ -e pid.0 ] && [ -e pid.1 ]; do sleep 0.05; done
		python3 -c 'import mmap, os
		file = os.open("hung/file", os.O_RDONLY)
		os.write(2, mmap.mmap(file, 4096, prot=mmap.PROT_READ))' >/dev/null 2>&3 &
		until grep -q "^1 0x2 " /proc/$!/syscall; do sleep 0.05; done
		touch go
		tries=200
		while grep -q ") [RSD] " /proc/$(cat pid.1)/stat && [ $((tries -= 1)) -gt 0 ]; do sleep 0.1; done
		[ $tries -gt 0 ] && touch ended
	end
	timeout -s KILL 60 "$HUNG_OUTPUT" hung out sh held.sh $PVASRUN --pty never 2>&1 </dev/null | cat >err
	[ "${PIPESTATUS[0]}" -ne 77 ] || return 0
	check "rank 1 goes on" [ -e ended ]
}

# The same for standard output with --timeout: output that is not read is lost.
test_stuck_output()
{
	mkfifo full
	exec 7<>full
	SECONDS=0
	timeout -k 1 30 $PVASRUN --timeout 2 --tag-output -n 2 yes >&7 2>err; status=$?
	exec 7>&-
	status_is 124; check "--timeout waited for the reader" [ $SECONDS -le 10 ]
	check "it is not said" grep -q 'the time is over, and output was not read' err
	# nor does a job that has succeeded already end as one
	exec 7<>full
	fill full
	env --default-signal=TERM $PVASRUN --tag-output -n 1 sh -c "$READY echo lost" >&7 2>err & job=$!
	exec 7>&-
	wait_files pid 1
	all_gone
	kill -TERM $job
	finish
	status_is 143; check "it is not said" grep -q 'output was not read: it is lost' err
	# a terminal has less room than poll() suggests
	python3 -c 'import os, pty, signal, subprocess, sys, time
master, slave = pty.openpty()
job = subprocess.Popen(sys.argv[1:], stdout=slave, start_new_session=True)
time.sleep(1)
job.send_signal(signal.SIGTERM)
job.wait(8)' $PVASRUN --tag-output -n 1 yes 0123456789012345678901234567890123456789 2>err
	status=$?
	status_is 0
}

# A file server that answers no write holds up neither --timeout nor a signal.
test_hung_output()
{
	local how began

	[ -n "$HUNG_OUTPUT" ] && mkdir -p hung || return
	"$HUNG_OUTPUT" hung out true || return 0
	for how in --tag-output '--pty auto'; do
		began=$SECONDS
		# shellcheck disable=SC2086 # two words
		timeout -s KILL 60 "$HUNG_OUTPUT" hung out $PVASRUN --timeout 1 $how -n 2 \
			sh -c "$READY echo hello; sleep 100" 2>err; status=$?
		status_is 124; check "$how: $((SECONDS - began)) s" [ $((SECONDS - began)) -le $((10 * SLOW)) ]
		check "$how: it is not said" grep -q 'the time is over, ending 2 tasks' err
		all_gone
		rm -f pid.*
	done
	began=$SECONDS
	timeout -s KILL 60 "$HUNG_OUTPUT" hung both $PVASRUN --timeout 1 --tag-output -n 2 \
		sh -c "$READY echo hello; sleep 100"; status=$?
	status_is 124; check "both: $((SECONDS - began)) s" [ $((SECONDS - began)) -le $((15 * SLOW)) ]
	all_gone
}

# Nor does one that a program came from, when that fails.
test_hung_program()
{
	local began=$SECONDS

	[ -n "$HUNG_OUTPUT" ] && mkdir -p hung over || return
	"$HUNG_OUTPUT" hung out true || return 0
	# There is never an answer about a "proc".
	cat >over/proc <<-'EOF'
		#!/bin/sh
		[ "$PVAS_RANK" = 1 ] && touch over/started && exec sleep 100
		until [ -e over/started ]; do sleep .1; done
		touch over/ready
		until [ ! -e over/ready ] || grep -q " $PWD/over fuse" /proc/self/mounts; do sleep .1; done
		exit 3
	EOF
	chmod +x over/proc
	timeout -s KILL 60 "$HUNG_OUTPUT" over over $PVASRUN -n 2 over/proc >out 2>err; status=$?
	status_is 3; check "$((SECONDS - began)) s" [ $((SECONDS - began)) -le $((10 * SLOW)) ]
	one_line 'rank 0 .* exited with status 3'
}

# Nor one that it is to come from, or that has a folder of PATH.
test_hung_search()
{
	local began=$SECONDS

	[ -n "$HUNG_OUTPUT" ] && mkdir -p hung || return
	timeout -s KILL 60 "$HUNG_OUTPUT" hung in $PVASRUN --timeout 1 -n 1 hung/proc >out 2>err; status=$?
	[ "$status" -ne 77 ] || return 0
	status_is 124; one_line "--timeout 1: the time is over, and a program's file server has not answered"
	timeout -s KILL 60 "$HUNG_OUTPUT" hung in env --default-signal=TERM sh -c '"$@" & sleep 1; kill $!; wait $!' \
		sh env PATH="$PWD/hung:$PATH" $PVASRUN -n 1 proc >out 2>err; status=$?
	status_is 143; check "$((SECONDS - began)) s" [ $((SECONDS - began)) -le $((10 * SLOW)) ]
}

# Nor does one that answers no read, with --stdin all.
test_hung_input()
{
	local began=$SECONDS

	[ -n "$HUNG_OUTPUT" ] && mkdir -p hung || return
	timeout -s KILL 60 "$HUNG_OUTPUT" hung in $PVASRUN --timeout 1 --stdin all -n 2 sh -c "$READY cat" >out 2>err
	status=$?
	[ "$status" -ne 77 ] || return 0
	status_is 124; out_is ''; check "$((SECONDS - began)) s" [ $((SECONDS - began)) -le $((10 * SLOW)) ]
	one_line '.*the time is over, ending 2 tasks'
	all_gone
}

# $1, a pvasrun, has a task that starts hold_stream, and is over in time with status $2.
held()
{
	local status_wanted=$1 began=$SECONDS
	shift

	mkdir -p hung && rm -f hung/holds
	timeout -s KILL 60 "$@" >out 2>err; status=$?
	check "$*: $((SECONDS - began)) s" [ $((SECONDS - began)) -le $((12 * SLOW)) ]
	status_is "$status_wanted"
	check "$*: nothing was held" [ -s hung/holds ]
	# shellcheck disable=SC2046 # several
	kill -KILL $(cat hung/holds) 2>tmp
}

# No process is left for the children that read and write: an error, and nothing else ends.
test_no_process_for_streams()
{
	local how

	[ "$(id -u)" = 0 ] && [ -n "$plain" ] || return
	cp "$PVASRUN" "$T/pvasrun-copy" && chmod 755 "$T/pvasrun-copy"
	for how in '--no-pty --stdin all' --tag-output; do
		# Threads count, and pvasrun sees only processes beforehand.
		# shellcheck disable=SC2086 # two words
		setpriv --reuid 65533 --clear-groups setsid -w prlimit --nproc=21:21 python3 -c '
import subprocess, sys, threading
for i in range(18):
	threading.Thread(target=threading.Event().wait, daemon=True).start()
print("status", subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL))' "$T/pvasrun-copy" $how -n 2 true >out 2>err
		out_is 'status 1'; one_line 'cannot prepare the job: Resource temporarily unavailable.*'
	done
}

child_of_job() { [ -n "$(pgrep -P "$job" -x "$1")" ]; }

# Somebody kills the children that read and write: what is lost by that is said.
test_killed_children()
{
	: >out
	$PVASRUN --stdin all -n 2 cat < <(seq 10; until [ -e go ]; do sleep .1; done; seq 10) >out 2>err & job=$!
	until_true 10 child_of_job pvas-feed
	check "nothing has come" until_true 10 grep -q 10 out
	pkill -KILL -P "$job" -x pvas-feed
	touch go
	finish; status_is 1; sorted_is "$(seq 10 | sed p | sort)"
	one_line 'the rest of standard input is lost: .*'
	start --tag-output -n 2 sh -c "$READY printf begun >&2; sleep 100"
	wait_files pid 2
	until_true 10 child_of_job pvas-relay
	pkill -KILL -P "$job" -x pvas-relay
	check "it is not said" until_true 10 grep -q "the tasks' output is lost" err
	kill "$job"; finish; status_is 143; all_gone
	rm -f pid.* go
}

# A program of another user's, which a task has started, holds its end of a pipe or a terminal
# within a call that never ends: so would every call at the other end, even its close.
test_held_streams()
{
	local hold="$HOLD_STREAM $PWD/hung" began='until [ -s hung/holds ]; do sleep .1; done'

	[ -n "$HOLD_STREAM" ] && mkdir -p hung || return
	timeout 5 $hold write 100; [ $? -ne 77 ] || return 0
	held 124 $PVASRUN --tag-output --timeout 2 -n 2 sh -c "$hold write 2 & sleep 100"
	held 1 $PVASRUN --tag-output -n 2 sh -c "$hold write 2 & $began"
	check "the loss is not said" grep -q 'holds up the reading of the tasks. output' err
	# a line that has begun is what is left to write
	held 0 sh -c '"$@" | cat' sh $PVASRUN --tag-output -n 2 sh -c "printf begun; $hold write 2 & $began"
	out_is "$(printf '[0] begun\n[1] begun')"
	held 124 $PVASRUN --pty always --timeout 2 -n 2 sh -c "$hold write 1 & sleep 100"
	held 0 $PVASRUN --pty always -n 2 sh -c "echo hello; $hold write 1 & $began"
	out_is $'hello\nhello'
	held 124 sh -c '(echo hello; sleep 2) | "$@"' sh $PVASRUN --stdin all --timeout 2 -n 2 \
		sh -c "$hold read 0 <&0 & sleep 100"
	# nor the others' input, of a rank that has ended, or at its end
	held 0 sh -c 'head -c 1000000 /dev/zero | "$@"' sh $PVASRUN --stdin all \
		-n 1 sh -c "exec 3<&0; $hold read 0 <&3 & $began; sleep 0.5" : -n 1 wc -c
	out_is 1000000
	rm -f go
	held 0 sh -c "(echo hello; $began; sleep 0.5) | \"\$@\"" sh $PVASRUN --stdin all \
		-n 1 sh -c "exec 3<&0; $hold read 0 <&3 & until [ -e go ]; do sleep .1; done" \
		: -n 1 sh -c 'cat; touch go'
	out_is hello
	# and before pvasrun in a pipeline
	mkfifo held
	(exec $hold write 1) >held &
	# shellcheck disable=SC2016
	held 124 sh -c 'exec <held; until [ -s hung/holds ]; do sleep .1; done; exec "$@"' sh \
		$PVASRUN --stdin all --timeout 2 -n 2 sleep 100
	wait $!
}

# A regular file that a child reads arrives whole.
test_input_of_a_server()
{
	mkdir small && unshare -rm true 2>/dev/null || return
	unshare -rm sh -c 'mount -t tmpfs none small || exit 0
		seq 200000 >small/in; cksum <small/in; "$@" <small/in' sh \
		$PVASRUN --stdin all -n 3 cksum >out 2>err; status=$?
	status_is 0; check "not the same" [ "$(sort -u out | wc -l) $(wc -l <out)" = "1 4" ]
	unshare -rm sh -c 'mount -t tmpfs none small || exit 0
		seq 200000 >small/in; "$@" <small/in' sh $PVASRUN --stdin all -n 2 head -n 1 >out 2>err; status=$?
	status_is 0; silent; out_is $'1\n1'
}

# Such a server, or its disk, may refuse a write after pvasrun has passed it on.
test_output_of_a_server()
{
	local how

	mkdir small && unshare -rm true 2>/dev/null || return
	for how in --tag-output '--pty always'; do
		unshare -rm sh -c 'mount -t tmpfs -o size=64k none small || exit 0
			"$@" >small/out; status=$?
			[ $(stat -c %s small/out) -eq 65536 ] && exit $status' sh \
			$PVASRUN $how -n 1 seq 20000 2>err; status=$?
		check "$how: status $status" eval '[ "$status" -eq 1 ] || [ "$status" -eq 141 ]'
		check "$how: it is said" grep -q 'cannot write the tasks. output: No space left' err
	done
	# All of it is there when pvasrun has ended.
	unshare -rm sh -c 'mount -t tmpfs none small || exit 0
		"$@" >small/out && sort -k 2n small/out | md5sum' sh \
		$PVASRUN --tag-output -n 2 seq 20000 >out 2>err; status=$?
	status_is 0; out_is "$(seq 20000 | sed 's/.*/[0] &\n[1] &/' | sort -k 2n | md5sum)"
	# both in one file, and lines that are written in pieces
	unshare -rm sh -c 'mount -t tmpfs none small || exit 0
		"$@" >small/out 2>&1; cat small/out' sh $PVASRUN --tag-output -n 4 \
		perl -e '$| = 1; for (1..200) { print "x" x 9000, "\n"; print STDERR "y" x 5000, "\n" }' >out 2>err
	[ ! -s out ] || check "lines are whole" \
		[ "$(perl -ne '$n++ if /^\[[0-3]\] (?:x{9000}|y{5000})$/; END { print $n }' out) $(wc -l <out)" = '1600 1600' ]
}

test_pty()
{
	# output before an abort appears, and bytes are unchanged
	pvasrun --pty always -n 2 perl -e 'print "one\n"; print "two\r\n\t\004"; kill KILL => $$ if $ENV{PVAS_RANK}; sleep 100'
	status_is 137
	check "not lost" grep -qx one out
	pvasrun --pty always -n 1 sh -c 'test -t 1 && echo terminal; test -t 2 || echo no other'
	status_is 0; silent; out_is $'terminal\nno other'
	pvasrun --pty never -n 1 sh -c 'test -t 1 || echo no'; out_is no
	pvasrun --pty always --no-pty -n 1 sh -c 'test -t 1 || echo no'; out_is no
	pvasrun --pty always -n 1 perl -e 'print pack("C*", 0 .. 255) x 4000'
	check "binary data are" [ "$(cksum <out)" = "$(perl -e 'print pack("C*", 0 .. 255) x 4000' | cksum)" ]
	pvasrun --pty always --tag-output -n 2 sh -c 'test -t 1 && echo one; echo err >&2'
	status_is 0; sorted_is $'[0] one\n[1] one'
	check "tagged errors" [ "$(sort err)" = $'[0] err\n[1] err' ]
	# the pseudo-terminal is not the controlling terminal
	pvasrun --pty always -n 1 perl -e 'open(T, "<", "/dev/tty") ? print POSIX::getpgrp() : print "none\n"'
	{ : </dev/tty; } 2>/dev/null || out_is none
	# a reader that exits ends the job
	SECONDS=0
	$PVASRUN --pty always -n 2 yes 2>err | head -1 >out
	status=${PIPESTATUS[0]}
	status_is 141; check "in time" [ $SECONDS -le $((4 * SLOW)) ]
}

# Of the ranks that have pseudo-terminals only those that write to a reader that is gone get SIGPIPE.
test_pty_reader_gone()
{
	local how

	for how in '' --tag-output; do
		rm -f pid.* last
		# rank 0 writes without end, 1 once when 0 has ended, 2 then only an error
		timeout -k 1 $((60 * SLOW)) $PVASRUN --no-kill --pty always $how -n 3 sh -c "$READY"'
			until [ -e $T/pid.0 ]; do sleep 0.05; done
			case $PVAS_RANK in 0) while :; do echo line; sleep 0.05; done ;; esac
			while kill -0 $(cat $T/pid.0); do sleep 0.05; done 2>/dev/null
			case $PVAS_RANK in 1) echo once; exec sleep 100 ;; esac
			while kill -0 $(cat $T/pid.1); do sleep 0.05; done 2>/dev/null
			echo 2 has finished >&2' 2>err | head -1 >out
		status=${PIPESTATUS[0]}
		status_is 141
		check "$how: rank 2 is ended" grep -q '2 has finished$' err
		check "$how: ranks 0 and 1 are not" [ "$(grep -c 'rank [01] .* died from signal 13' err)" -eq 2 ]
	done
	# bytes that pvasrun had read, but could not write, count
	rm -f pid.*
	timeout -k 1 $((60 * SLOW)) $PVASRUN --pty always -n 2 sh -c "$READY"'
		until [ -e $T/over ]; do sleep 0.05; done; [ $PVAS_RANK = 1 ] || echo once; exec sleep 100' 2>err |
		{ exec <&-; touch over; }
	status=${PIPESTATUS[0]}
	status_is 141; one_line 'rank 0 .* died from signal 13 .*'
}

# Without an option: a line is there at once, and what was printed before a kill is not lost.
test_pty_by_itself()
{
	timeout -k 1 $((30 * SLOW)) $PVASRUN -n 1 perl -e 'print "line\n"; select undef, undef, undef, 0.05 until -e "go"' 2>err |
		{ read -r line; touch go; echo "$line"; cat; } >out
	status=${PIPESTATUS[0]}
	status_is 0; silent; out_is line
	pvasrun -n 1 perl -e 'print "printed\n"; kill KILL => $$'
	status_is 137; out_is printed
	# where nothing is kept, or there are no descriptors for it, none
	$PVASRUN -n 1 sh -c 'test -t 1 || echo no >&2' >/dev/null 2>err
	check "none for /dev/null" [ "$(cat err)" = no ]
	(ulimit -n 100; exec $PVASRUN --backend kernel --mpi none -n 30 sh -c 'test -t 1 || echo no') >out 2>err; status=$?
	[ -n "$plain" ] || [ -c /dev/pvas ] || return 0
	status_is 0; check "none without descriptors" [ "$(grep -cx no out)" -eq 30 ]
	one_line "no pseudo-terminals for the tasks' output: the limit of 100 open files is too low: .* is lost"
}

# Nor by a key that it puts into the terminal's input, where the kernel lets it.
test_terminal_stopped_by_key()
{
	[ "$(cat /proc/sys/dev/tty/legacy_tiocsti 2>/dev/null || echo 1)" = 1 ] || return 0
	pvasrun --timeout 10 --pty always -n 1 perl -MPOSIX -e '
		pipe R, W; $| = 1;
		if (!($child = fork)) {
			setsid; ioctl STDOUT, 0x540e, 0 or die "TIOCSCTTY: $!";
			my $t = POSIX::Termios->new; $t->getattr(1); $t->setiflag($t->getiflag | IXON);
			$t->setcc(VSTOP, 19); $t->setcc(VSTART, 17); $t->setattr(1, TCSANOW);
			my $key = "\x13"; ioctl STDOUT, 0x5412, $key or die "TIOCSTI: $!";
			close W; sleep 100
		}
		close W; <R>; print "after\n"; kill KILL, $child; wait'
	status_is 0; out_is after; check "a complaint" [ ! -s err ]
}

# A program that shares a rank's terminal can't stop its output (tcflow), also not with TIOCEXCL.
test_pty_goes_on()
{
	pvasrun --timeout 20 --pty always -n 2 perl -MPOSIX -e '$| = 1; ioctl STDOUT, 0x540c, 0;
		for (1 .. 3) { tcflow(1, TCOOFF) or die; print "$ENV{PVAS_RANK} $_\n" }'
	status_is 0; silent
	sorted_is $'0 1\n0 2\n0 3\n1 1\n1 2\n1 3'
	# and what is left running with it keeps nobody
	SECONDS=0
	pvasrun -q --pty always -n 1 perl -MPOSIX -e 'exit if fork; alarm 20; for (;;) { tcflow(1, TCOOFF); tcflow(1, TCOON) }'
	status_is 0; check "in time" [ $SECONDS -le $((10 * SLOW)) ]
}

# Output that is lost there is not lost unseen.
test_pty_losses()
{
	local lost='output of rank 1 is lost: .*'

	start --pty always -n 2 perl -e '$| = 1;
		if ($ENV{PVAS_RANK} && !fork) { $null = pack "i", 27; exit(!ioctl STDOUT, 0x5423, $null) }
		if ($ENV{PVAS_RANK}) { wait; exit 77 if $? }
		print "$ENV{PVAS_RANK}\n"; select undef, undef, undef, 0.05 until -e "$ENV{T}/go"'
	until_true 20 grep -q . err
	touch go
	finish
	[ "$status" -eq 77 ] || { status_is 1; one_line "$lost"; out_is 0; }
	# at the end of a task, the same
	pvasrun --pty always -n 2 perl -e '$null = pack "i", 27;
		exit($ENV{PVAS_RANK} && !ioctl(STDOUT, 0x5423, $null) ? 77 : 0)'
	[ "$status" -eq 77 ] || { status_is 1; one_line "$lost"; }
	pvasrun --pty always -n 2 perl -MPOSIX -e '$| = 1; print "$ENV{PVAS_RANK}\n"; tcflush(1, TCOFLUSH) if $ENV{PVAS_RANK}'
	status_is 1; one_line "$lost"; check "rank 0's" grep -qx 0 out
	# That of the input loses none.
	pvasrun --pty always -n 1 perl -MPOSIX -e '$| = 1; print "1\n"; tcflush(1, TCIFLUSH); print "2\n"'
	status_is 0; silent; out_is $'1\n2'
}

test_descriptors()
{
	local own
	# shellcheck disable=SC2217 # what is open is what it lists
	own=$(ls /proc/self/fd </dev/null 2>/dev/null)
	pvasrun --no-pty --mpi none -n 1 ls /proc/self/fd </dev/null
	out_is "$own"
	# and one for MPICH
	pvasrun --no-pty -n 1 sh -c 'ls /proc/self/fd | grep -vx "$PMI_FD"; readlink /proc/$$/fd/$PMI_FD | cut -c 1-7' </dev/null
	out_is "$own"$'\nsocket:'
	pvasrun --no-pty --mpi none --stdin all --tag-output -n 9 true : -n 1 ls /proc/self/fd </dev/null
	check "no other descriptor" [ "$(cut -d' ' -f2 out)" = "$own" ]
	# of which one has the number that a peer's would have, and one a higher one
	exec 40</dev/null 300</dev/null
	pvasrun --mpi none --pty always -n 30 true : -n 1 ls -1 /proc/self/fd </dev/null
	exec 40<&- 300<&-
	check "numbers between" [ "$(sort -n out)" = "$(printf '%s\n' $own 40 300 | sort -n)" ]
	pvasrun -n 1 grep -E '^Sig(Blk|Ign)' /proc/self/status
	out_is $'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000'
	(exec $PVASRUN -n 1 true >&- 2>&- <&-); status=$?
	status_is 0
}

# nor one that writes without end to a slow reader; what the task wrote arrives.
test_endless_orphan()
{
	local how

	for how in --tag-output '--pty always'; do
		SECONDS=0
		# shellcheck disable=SC2086 # two words
		timeout -k 1 30 $PVASRUN $how -n 1 sh -c 'seq 40000; yes & echo $! >$T/pid.0' 2>err |
			perl -e 'my ($n, $ok) = (0, 1);
				while (sysread STDIN, my $part, 20000) {
					$text .= $part if length $text < 600000;
					select undef, undef, undef, 0.005;
				}
				print $text =~ /(\A|\D)40000\r?\n/ ? "all" : "lost"' >out
		status=${PIPESTATUS[0]}
		kill "$(cat pid.0)" 2>/dev/null
		status_is 0; out_is all
		check "$how: pvasrun waits for the orphan" [ $SECONDS -le 15 ]
	done
}

# Others read the same pipe, and were faster.
test_stdin_shared()
{
	cat >shared.pl <<-'end'
		# 1: may pvasrun open the pipe anew?  The rest: pvasrun and its options
		use POSIX;
		my $may = shift;
		pipe(R, W);
		fchmod_own($may);
		my @jobs = map {
			my $pid = fork;
			if (!$pid) {
				open STDIN, "<&R"; close W;
				if (!$may) { POSIX::setgid(65534); POSIX::setuid(65534) }
				exec @ARGV;
			}
			$pid } 1 .. 6;
		sub fchmod_own { chmod 0600, *R unless $_[0] }
		for (1 .. 150) { syswrite W, "$_\n"; select undef, undef, undef, 0.02 }
		kill TERM => @jobs;
		my ($left, $until) = (scalar @jobs, time + 8 * ($ENV{SLOW} || 1));
		while ($left && time < $until) {
			$left-- while waitpid(-1, WNOHANG) > 0;
			select undef, undef, undef, 0.1;
		}
		kill KILL => @jobs;
		exit $left;
	end
	perl shared.pl 1 $PVASRUN --stdin all -n 2 cat >out 2>err; status=$?
	check "$status of 6 are stuck in a read" [ $status -eq 0 ]
	[ "$(id -u)" -ne 0 ] || perl shared.pl 0 $PVASRUN --stdin all -n 2 cat >out 2>err; status=$?
	check "$status of 6 are stuck in a read of a pipe of root's" [ $status -eq 0 ]
}

# A pipe that this user can't open anew (after su), which the tasks fill as well
test_output_of_another()
{
	[ "$(id -u)" -eq 0 ] || return 0
	cp "${PVASRUN%% *}" "$T/pvasrun-copy" && chmod 755 "$T/pvasrun-copy"
	mkfifo -m 600 full
	exec 7<>full
	SECONDS=0
	timeout -k 1 30 setpriv --reuid 65534 --clear-groups "$T/pvasrun-copy" --timeout 3 --pty always -n 4 \
		sh -c 'yes 0123456789 & yes 0123456789 >&2' >&7 2>&7
	status=$?
	status_is 124; check "--timeout waited for the reader" [ $SECONDS -le 12 ]
	exec 7>&-
	# and all that is read arrives
	mkfifo -m 600 slow
	{ sleep 1; cat; } <slow >slow.out & reader=$!
	exec 7<>slow
	setpriv --reuid 65534 --clear-groups "$T/pvasrun-copy" --tag-output -n 2 seq 30000 >&7 2>err
	status=$?
	exec 7>&-
	wait $reader
	status_is 0; check "$(wc -l <slow.out) lines arrive" [ "$(wc -l <slow.out)" -eq 60000 ]
}

test_full_disk()
{
	local how

	[ -w /dev/full ] || return 0
	for how in --tag-output '--pty always'; do
		# shellcheck disable=SC2086 # two words
		$PVASRUN $how -n 1 sh -c 'echo lost; sleep 0.5' >/dev/full 2>err; status=$?
		check "$how: status $status for lost output" [ "$status" -ne 0 ]
		check "the error is reported" grep -q 'cannot write the tasks. output: No space left' err
	done
}

# ulimit -f, as batch systems set it: a write past it is an error, and not the end of pvasrun.
test_file_size_limit()
{
	local how

	for how in --tag-output '--pty always'; do
		# shellcheck disable=SC2086 # two words
		(ulimit -f 8; exec $PVASRUN $how -n 2 sh -c "$READY"' seq 20000') >big 2>err; status=$?
		# 1, or a task has written again, to a pipe without a reader
		check "$how: status $status" eval '[ "$status" -eq 1 ] || [ "$status" -eq 141 ]'
		check "$how: it is said" grep -q 'cannot write the tasks. output: File too large' err
		all_gone
		rm -f big pid.*
	done
	# the tasks have what pvasrun inherited
	(exec env --default-signal=PIPE,XFSZ $PVASRUN -n 1 grep SigIgn /proc/self/status) >out 2>err
	out_is $'SigIgn:\t0000000000000000'
	(exec env --ignore-signal=PIPE,XFSZ $PVASRUN -n 1 grep SigIgn /proc/self/status) >out 2>err
	out_is $'SigIgn:\t0000000001001000'
}
