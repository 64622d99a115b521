#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests vm/run itself, mostly with what must fail.
# usage: test-run.sh [6.1|6.12|debug|kcsan|NAME [TEST]...]
#   TEST: usage status output streaming environment judge races end kill parallel
#   default: all of them, on 6.12
# Prints TAP; exits with 0 if all passed, 1 if not, 77 if nothing can be tested.

set -u

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd) || exit 1
kernel=${1:-6.12}
readonly ACTION=/sys/module/warnmod/parameters/action

command -v qemu-system-x86_64 >/dev/null || {
	echo "1..0 # SKIP qemu-system-x86_64 is not installed"
	exit 77
}

# shellcheck source=scripts/testlib
. "$here/../../scripts/testlib"
chmod 755 "$T"

# vm/run gets its own TMPDIR, so that files left there are found.
mkdir "$T/tmp"
export TMPDIR=$T/tmp

# vm OPTION...: output into $T/out and $T/err, exit status into $status.
vm()
{
	"$here/run" --kernel "$kernel" "$@" >"$T/out" 2>"$T/err" </dev/null
	status=$?
}

# bare OPTION...: without a module
bare()
{
	vm --no-module "$@"
}

# with_warnmod OPTION...
with_warnmod()
{
	PVAS_KO=$T/warnmod/warnmod.ko vm "$@"
}

# expect NAME COMMAND...: passes if the command succeeds; else $status is shown, too
expect() { if "${@:2}"; then pass "$1"; else fail "$1" "status $status"; return 1; fi; }

# ended STATUS [ERE in stderr]
ended()
{
	[[ $status == "$1" ]] && { (($# == 1)) || grep -qE "$2" "$T/err"; }
}

out_is()
{
	[[ $(<"$T/out") == "$1" ]]
}

err_is()
{
	[[ $(<"$T/err") == "$1" ]]
}

nothing_left()
{
	[[ -z $(ls -A "$T/tmp") ]] &&
		! pgrep -f "qemu-system-x86_64.*$T/tmp/" >/dev/null
}

test_status()
{
	local n

	for n in 0 3 255; do
		bare -- sh -c "exit $n"
		expect "exit $n" ended "$n"
	done
	bare -- /nonexistent
	expect "127 for a command that is not there" ended 127 /nonexistent
	bare -- /etc/passwd
	expect "126 for one that is not a program" ended 126 /etc/passwd
	# shellcheck disable=SC2016 # $$ is the guest's
	bare -- sh -c 'kill -SEGV $$'
	expect "128 + n for death by a signal" ended 139
}

test_output()
{
	bare -- printf 'a\r\n\tb%s' ' c'
	expect "stdout is unmangled" out_is $'a\r\n\tb c'
	expect "stderr is empty" err_is ''
	bare -- sh -c 'echo to-out; echo to-err >&2; echo again >/dev/stdout'
	expect "stdout apart from stderr" out_is $'to-out\nagain'
	expect "stderr apart from stdout" err_is to-err
	bare -- sh -c 'head -c 30000000 /dev/urandom >big; cat big; md5sum <big >&2'
	expect "30 MB come through whole" err_is "$(md5sum <"$T/out")"
}

# One line, and the next one not within 5 seconds.
first_line_alone()
{
	local line

	read -r line <&5 && [[ $line == first ]] && ! read -r -t 5 line <&5
}

test_streaming()
{
	local pid

	mkfifo "$T/fifo"
	"$here/run" --kernel "$kernel" --no-module -- \
		sh -c 'echo first; sleep 15; echo second' >"$T/fifo" 2>"$T/err" &
	pid=$!
	exec 5<"$T/fifo"
	status='(reading)'
	expect "output arrives as it is written" first_line_alone
	exec 5<&-
	wait "$pid" 2>/dev/null
	rm "$T/fifo"
}

# The kernel's frequency of the counter differs by less than 1 % from the host's.
clock_is_right()
{
	local khz

	khz=$(sed -n 's/.*tsc: Detected \([0-9]*\)\.\([0-9]*\) MHz TSC.*/\1\2/p; t
		s/.*tsc: Detected \([0-9]*\)\.\([0-9]*\) MHz processor.*/\1\2/p' "$T/out" | tail -n 1)
	gcc -O2 -o "$T/tsc_khz" "$here/tsc_khz.c" && [[ -n $khz ]] &&
		awk -v a="$khz" -v b="$("$T/tsc_khz")" 'BEGIN { exit !(a > 0.99 * b && a < 1.01 * b) }'
}

test_environment()
{
	cd "$here" || return
	bare -- pwd
	expect "the directory is the caller's" out_is "$here"
	cd "$T" || return
	bare --user nobody -- sh -c 'id -un; echo x >/dev/stdout; touch /etc/x 2>&-'
	expect "--user" out_is $'nobody\nx'
	expect "--user has no more rights than that" ended 1
	bare --user no-such-user -- true
	expect "--user of nobody known" ended 125 'no such user'
	# shellcheck disable=SC2016 # the variables are the guest's
	A=1 B='2  3' bare --keep-env B -- sh -c 'echo "${A-none}/$B/$PVAS_VM"'
	expect "--keep-env, and no other variable" out_is 'none/2  3/1'
	bare -- dmesg
	expect "the machine's clock runs as the host's" clock_is_right
	bare --cpus 3 -- nproc
	expect "--cpus" out_is 3
	# shellcheck disable=SC2016
	bare -- sh -c 'getent hosts "$(hostname)" >&2 && cat /sys/class/net/lo/flags'
	expect "the host has a name, and lo is up" out_is 0x9
	if [[ $kernel != debug && $kernel != kcsan ]]; then
		bare -- modprobe -n kvm
		expect "the kernel's own modules are there" ended 0
	fi
	bare -- sh -c "rm $here/run && test ! -e $here/run"
	expect "the guest can change any file" ended 0
	expect "but not the host's" test -x "$here/run"
	# shellcheck disable=SC2016
	bare --user nobody --out "$T/results" -- sh -c 'echo r >"$PVAS_VM_OUT/r"'
	expect "--out brings files back" grep -q r "$T/results/r"
}

test_usage()
{
	bare
	expect "no command" ended 125 'no command'
	bare --bogus -- true
	expect "unknown option" ended 125 'no such option'
	bare --cpus x -- true
	expect "not a number" ended 125 'not a number'
	bare --kernel 2.4 -- true
	expect "unknown kernel" ended 125 'unknown'
	bare --root trixie --user nobody -- true
	expect "another root for an ordinary user" ended 125 'only root can enter it'
	(cd / && bare --root trixie -- true; exit "$status")
	status=$?
	expect "another root from outside of the tree" ended 125 'the current directory is not in'
	if [[ -d ${PVAS_ROOTS:-/var/cache/pvas-roots}/trixie ]]; then
		(cd "$here" && bare --root trixie -- sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
		expect "another root" out_is trixie
	else
		skip "another root" "no root of trixie here (scripts/debian-root trixie)"
	fi
	PVAS_KO=/nonexistent.ko vm -- true
	expect "module that is not there" ended 125 'PVAS_KO'
	PVAS_KO=/etc/passwd vm -- true
	expect "module that is none" ended 121 "can't be inserted"
}

build_warnmod()
{
	local kdir

	bare -- uname -r
	kdir=/lib/modules/$(<"$T/out")/build
	[[ $kernel == debug || $kernel == kcsan ]] &&
		kdir=${PVAS_VM_CACHE:-${XDG_CACHE_HOME:-/var/cache}/pvas-vm}/$kernel/build
	cp -r "$here/warnmod" "$T/warnmod" &&
		make -s -C "$kdir" M="$T/warnmod" modules >"$T/out" 2>"$T/err"
}

# misbehaves ACTION STATUS ERE
misbehaves()
{
	with_warnmod -- sh -c "echo before; echo $1 >$ACTION"
	expect "module: $1" ended "$2" "$3"
}

test_judge()
{
	status='(make)'
	expect "warnmod builds" build_warnmod || return
	with_warnmod -- grep warnmod /proc/modules
	expect "module: nothing wrong" ended 0
	expect "module: it was there" grep -q ^warnmod "$T/out"
	with_warnmod -- rmmod warnmod
	expect "module: removed by the command" ended 0
	misbehaves warn 120 'failure in the kernel log.*WARNING'
	expect "module: output before the failure is kept" out_is before
	expect "module: the log is printed" grep -q 'Call Trace' "$T/err"
	misbehaves oops 120 'failure in the kernel log.*(NULL|Oops|KASAN)'
	misbehaves panic 120 'failure in the kernel log.*panic'
	misbehaves leak-ref 121 'references left: 1'
	if [[ $kernel == kcsan ]]; then
		misbehaves race 120 'KCSAN: data-race in race_(ours|with) \[warnmod\]'
		misbehaves race-marked 0
		with_warnmod --log "$T/races" -- sh -c "echo race-elsewhere >$ACTION"
		expect "module: a race of the kernel's own, below a function of the module" ended 0
		expect "module: it was seen" grep -q 'KCSAN: data-race in hex_dump_to' "$T/races"
	fi
	[[ $kernel == debug ]] || return
	misbehaves leak-memory 120 'suspected memory leak|unreferenced object'
	misbehaves overflow 120 'KASAN'
	misbehaves sleep 120 'sleeping function|scheduling while atomic'
	misbehaves lock-order 120 'possible circular locking'
	misbehaves list 120 'list_add'
}

# race_report ACCESS FRAME ACCESS FRAME: a report of KCSAN's between two other lines
race_report()
{
	local t='[   12.345678] '

	printf "$t%s\n" before ================================================ \
		'BUG: KCSAN: data-race in a / b' '' \
		"$1 to 0xffff888004d3a000 of 8 bytes by task 77 on cpu 0:" " $2" \
		' pvas_below+0x12/0x34 [pvas]' '' \
		"$3 to 0xffff888004d3a000 of 8 bytes by task 78 on cpu 1:" " $4" \
		' do_syscall_64+0x5f/0x120' '' 'value changed: 0x01 -> 0x02' ''
	[[ ${5:-} == cut ]] ||
		printf "$t%s\n" ================================================ after
}

# judged ours|others REPORT...: what races.awk takes it for; all lines come out
judged()
{
	local titles

	race_report "${@:2}" >"$T/out"
	awk -v module=pvas -f "$here/races.awk" "$T/out" >"$T/err"
	status=$?
	titles=$(grep -c 'BUG: KCSAN' "$T/err")
	[[ $(wc -l <"$T/out") == "$(wc -l <"$T/err")" ]] &&
		[[ $titles == "$([[ $1 == ours ]]; echo $((1 - $?)))" ]]
}

test_races()
{
	local ours='pvas_a+0x1/0x2 [pvas]' kernel='do_mmap+0x1/0x2' copy='memcpy+0x1/0x2'

	expect "races: ours" judged ours read "$ours" write "$kernel"
	expect "races: ours is the second" judged ours write "$kernel" 'read-write (reordered)' "$ours"
	expect "races: what ours had copied" judged ours write "$copy" read "$kernel"
	expect "races: below the kernel's own" judged others write "$kernel" read "$kernel"
	expect "races: ours is marked" judged others write "$kernel" 'read (marked)' "$ours"
	expect "races: ours is marked, and reordered" \
		judged others write "$kernel" 'read (marked, reordered)' "$ours"
	expect "races: one of ours is marked" judged ours 'write (marked)' "$ours" read "$ours"
	expect "races: a module of another name" judged others write 'pvas_a+0x1/0x2 [pvas2]' \
		read "$kernel"
	expect "races: a report that is cut off" judged ours write "$kernel" read "$kernel" cut
}

test_end()
{
	bare --timeout 15 -- sh -c 'echo started; sleep 1000'
	expect "timeout" ended 124 'timeout after 15'
	expect "timeout: the output is kept" out_is started
	bare -- sh -c 'sleep 1000 & exit 4'
	expect "what runs in the background is ended" ended 4
	bare -- sh -c 'echo b >/proc/sysrq-trigger; sleep 100'
	expect "a guest that ends early" ended 122 'without a result'
	bare --append rdinit=/none -- true
	expect "a guest that never boots" ended 123 'try 3 of 3'
	bare --qemu -bogus -- true
	expect "QEMU's own errors" ended 125 'QEMU'
	expect "nothing is left behind" nothing_left
}

# kill_it SIGNAL STATUS
kill_it()
{
	local pid

	# A background job of a script ignores SIGINT, unless told otherwise.
	env --default-signal=INT "$here/run" --kernel "$kernel" --no-module -- \
		sh -c 'echo up; sleep 1000' >"$T/out" 2>"$T/err" &
	pid=$!
	while ! grep -q up "$T/out" && kill -0 "$pid"; do
		sleep 0.2
	done
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null
	status=$?
	expect "ended by SIG$1" ended "$2"
	if [[ $1 == KILL ]]; then
		# No shell can remove its files then.
		sleep 1
		rm -rf "$T/tmp"/*
	fi
	expect "SIG$1: nothing is left behind" nothing_left
}

# said N: what run number N of test_parallel said and ended with
said()
{
	[[ $status == "$1" && $(<"$T/out$1") == "$1" ]]
}

test_parallel()
{
	local i pids=()

	status='(parallel)'
	if [[ $kernel == debug ]]; then
		echo "# an empty cache would have the debug kernel built again: skipped"
		return
	fi
	for i in 1 2 3; do
		PVAS_VM_CACHE=$T/cache "$here/run" --kernel "$kernel" --no-module -- \
			sh -c "echo $i; exit $i" >"$T/out$i" 2>"$T/err" &
		pids+=($!)
	done
	for i in 1 2 3; do
		wait "${pids[i - 1]}"
		status=$?
		expect "three at once with an empty cache: $i" said "$i"
	done
}

test_kill()
{
	kill_it TERM 143
	kill_it INT 130
	kill_it KILL 137
}

(($#)) && shift
(($#)) || set -- usage status output streaming environment judge races end kill parallel
cd "$T" || exit 1
for name; do
	"test_$name"
done
sum_up
