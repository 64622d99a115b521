#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What /proc and ps show of a task: the program it runs.
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"
need ps readlink

same "/proc/self/exe" readlink /proc/self/exe
same "/proc/self/comm" cat /proc/self/comm
same "/proc/self/environ" sh -c 'tr "\0" "\n" </proc/self/environ | grep ^PATH='
# With the user backend, /proc/PID/cmdline is the launcher's, and there is no /proc/pvas.
[ "$backend" = kernel ] || { sum_up; exit; }

same "/proc/self/cmdline" cat /proc/self/cmdline
same "of a child" sh -c 'readlink /proc/self/exe; cat /proc/self/comm; tr "\0" " " </proc/self/cmdline'

"$pvasrun" -q --backend kernel -n 2 sleep 300 &
job=$!
for _ in $(seq 100); do
	pids=$(awk '/task .* running/ { print $4 }' /proc/pvas)
	[ "$(echo $pids | wc -w)" = 2 ] && [ "$(ps -o args= -p "$(echo $pids | tr ' ' ,)" | grep -cx 'sleep 300')" = 2 ] && break
	sleep 0.1
done
shown()
{
	ps -o pid,comm,args -p "$(echo $pids | tr ' ' ,)"
	for pid in $pids; do
		[ "$(ps -o comm= -p "$pid")" = sleep ] && [ "$(ps -o args= -p "$pid")" = "sleep 300" ] &&
			[ "$(readlink /proc/$pid/exe)" = "$(readlink -f "$(command -v sleep)")" ] || return
	done
}
try "ps shows the program" shown
kill -TERM $job
wait $job
try "nothing is left" ended
sum_up
