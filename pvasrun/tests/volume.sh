#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Much output of many tasks, with pseudo-terminals and without. Takes a minute. TAP.
#
# PVASRUN	the pvasrun to test
# TASKS, MIB	how many (240), and of how much output in all (1024)

set -u

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd) || exit 1
PVASRUN=${PVASRUN:-$here/../../build/pvasrun/pvasrun}
BACKEND=${BACKEND:-user}
subject=volume
# shellcheck source=scripts/testlib
. "$here/../../scripts/testlib"
readonly tasks=${TASKS:-240} mib=${MIB:-1024}
each=$((mib * 1048576 / tasks / 65536))

# A task's output: blocks of 64 KiB with all bytes, begun with its rank
# shellcheck disable=SC2016 # perl's variables
program='my $all = pack "C*", 0 .. 255; $| = 1;
	for (1 .. $ARGV[0]) { print pack("n", $ENV{PVAS_RANK}), substr($all x 256, 2) }'

# As read by a task itself: the sum over all blocks, whose order is not defined without tags
sum() { perl -e 'binmode STDIN; my ($n, $sum) = (0, 0);
	while (($n = read STDIN, my $b, 65536)) { $sum += unpack "%32C*", $b; $len += $n } print "$len $sum\n"'; }

expected() {
	for ((rank = 0; rank < tasks; rank++)); do
		PVAS_RANK=$rank perl -e "$program" "$each"
	done | sum
}

# run NAME OPTION...: all bytes come, through a pipe
run()
{
	local name=$1 begin=$EPOCHREALTIME got end

	shift
	got=$("$PVASRUN" --backend "$BACKEND" --mpi none -n "$tasks" "$@" perl -e "$program" "$each" | sum)
	end=$EPOCHREALTIME
	equal "$got" "$want" >"$T/out" && pass "$name" || fail "$name" "$(cat "$T/out")"
	echo "# $name: $(((${end/./} - ${begin/./}) / 1000)) ms for $mib MiB of $tasks tasks"
}

# A reader that leaves after a part ends the job.
closed()
{
	local name=$1 status

	shift
	timeout 60 "$PVASRUN" -q --backend "$BACKEND" --mpi none -n "$tasks" "$@" perl -e "$program" 1000000 2>"$T/err" |
		head -c 1000000 >/dev/null
	status=${PIPESTATUS[0]}
	[ "$status" -eq 141 ] && pass "$name" || fail "$name" "status $status: $(head -n 3 "$T/err")"
}

want=$(expected)
run "pty" --pty always
run "no pty" --no-pty
closed "pty, closed reader" --pty always
closed "no pty, closed reader" --no-pty
sum_up
