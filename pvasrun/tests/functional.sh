#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of the command pvasrun, with real tasks and signals.
#
# PVASRUN	the pvasrun to test; with one named pvasrun-plain, which uses the fake
#		libpvas, there are more tests, of errors that it can provoke
# TERMINAL	tests/terminal as built; without it no tests at a terminal
# HUNG_EXEC	tests/hung_exec as built; without it no test beside a hung execve()
# HOLD_STREAM	tests/hold_stream as built; without it no test with a stream that is held
# HUNG_OUTPUT	tests/hung_output as built; without it no test with a silent file server
# FALLS_SILENT	tests/falls_silent as built; without it no test with a server that falls silent
# LOG_OPENS_SO	tests/log_opens.so as built; without it no test of which files are opened
# EXCHANGE	tests/exchange as built; without it no test of a program that is exchanged
# TIMES	if set, print how long each test took
# SLOW		multiplies all time limits (a VM without KVM)
# BACKEND	passed on as --backend
#
# functional.sh [name]...: only the tests whose names contain one of these

PVASRUN=${PVASRUN:?which pvasrun?}
SLOW=${SLOW:-1}
export SLOW
here=$(dirname "$(readlink -f "$0")")
quiet=1
# shellcheck source=scripts/testlib
. "$here/../../scripts/testlib"
chmod 755 "$T"
export T
cd "$T" || exit 1

case $PVASRUN in *-plain) plain=1 ;; *) plain= ;; esac
[ -n "$BACKEND" ] && PVASRUN="$PVASRUN --backend $BACKEND"

# pvasrun ARGS: run it to its end; leaves $T/out, $T/err, $status
pvasrun() { $PVASRUN "$@" >"$T/out" 2>"$T/err"; status=$?; }

# The same in the background; $job is its pid. (A shell without job control has
# SIGINT ignored in what it starts with "&".) Here the files are emptied before it returns.
start()
{
	: >"$T/out"
	: >"$T/err"
	env --default-signal=INT,QUIT $PVASRUN "$@" >>"$T/out" 2>>"$T/err" & job=$!
}
finish() { wait "$job" 2>/dev/null; status=$?; }

status_is() { check "exit status $status, not $1" [ "$status" -eq "$1" ]; }
out_is() { check "output is not '$1'" [ "$(cat "$T/out")" = "$1" ]; }
sorted_is() { check "output is not '$1'" [ "$(sort "$T/out")" = "$1" ]; }
# A shell that was a task may say "Terminated"; pvasrun says nothing.
silent() { check "pvasrun complained" eval '! grep -q ^pvasrun: "$T/err"'; }

# Standard error is one line that matches
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

# Tasks that report their pid and then wait
READY='echo $$ >$T/p.$PVAS_RANK; mv $T/p.$PVAS_RANK $T/pid.$PVAS_RANK;'
# shellcheck disable=SC2034 # for functional/*.sh
WAIT="$READY"' while :; do sleep 0.05; done'

# shellcheck source=/dev/null
for part in "$here"/functional/*.sh; do . "$part"; done

# ---- only with the fake libpvas: errors that are hard to provoke ----

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
	# a partition that the vdso occupies
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

begin_test()
{
	rm -rf "${T:?}"/*
	touch out err
}

run_tests "$@"
sum_up
