#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests vm/run itself, mostly with what must fail.
# usage: test-run.sh [6.1|6.12|debug|kcsan [TEST]...]
#   TEST: usage status output streaming environment judge races end kill parallel
#   default: all of them, on 6.12
# Prints TAP; exits with 0 if all passed, 1 if not, 77 if nothing can be tested.

set -u

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd) || exit 1
kernel=${1:-6.12}
readonly ACTION=/sys/module/warnmod/parameters/action
passed=0 failed=0

command -v qemu-system-x86_64 >/dev/null || {
	echo "1..0 # SKIP qemu-system-x86_64 is not installed"
	exit 77
}

tmp=$(mktemp -d /tmp/pvas-test-run.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"

# What vm/run leaves behind goes here, so that it can be seen.
mkdir "$tmp/tmp"
export TMPDIR=$tmp/tmp

# vm OPTION...: output into $tmp/out and $tmp/err, exit status into $status.
vm()
{
	"$here/run" --kernel "$kernel" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
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
	PVAS_KO=$tmp/warnmod/warnmod.ko vm "$@"
}

# check DESCRIPTION COMMAND...: passes if the command succeeds.
check()
{
	local what=$1

	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok $((passed + failed)) - $what"
		return
	fi
	failed=$((failed + 1))
	echo "not ok $((passed + failed)) - $what"
	echo "# status $status"
	tail -n 20 "$tmp/out" | sed 's/^/# out: /'
	tail -n 20 "$tmp/err" | sed 's/^/# err: /'
}

# ended STATUS [ERE in stderr]
ended()
{
	[[ $status == "$1" ]] && { (($# == 1)) || grep -qE "$2" "$tmp/err"; }
}

out_is()
{
	[[ $(<"$tmp/out") == "$1" ]]
}

err_is()
{
	[[ $(<"$tmp/err") == "$1" ]]
}

nothing_left()
{
	[[ -z $(ls -A "$tmp/tmp") ]] &&
		! pgrep -f "qemu-system-x86_64.*$tmp/tmp/" >/dev/null
}

test_status()
{
	local n

	for n in 0 3 255; do
		bare -- sh -c "exit $n"
		check "exit $n" ended "$n"
	done
	bare -- /nonexistent
	check "127 for a command that is not there" ended 127 /nonexistent
	bare -- /etc/passwd
	check "126 for one that is not a program" ended 126 /etc/passwd
	# shellcheck disable=SC2016 # $$ is the guest's
	bare -- sh -c 'kill -SEGV $$'
	check "128 + n for death by a signal" ended 139
}

test_output()
{
	bare -- printf 'a\r\n\tb%s' ' c'
	check "stdout is unmangled" out_is $'a\r\n\tb c'
	check "stderr is empty" err_is ''
	bare -- sh -c 'echo to-out; echo to-err >&2; echo again >/dev/stdout'
	check "stdout apart from stderr" out_is $'to-out\nagain'
	check "stderr apart from stdout" err_is to-err
	bare -- sh -c 'head -c 30000000 /dev/urandom >big; cat big; md5sum <big >&2'
	check "30 MB come through whole" err_is "$(md5sum <"$tmp/out")"
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

	mkfifo "$tmp/fifo"
	"$here/run" --kernel "$kernel" --no-module -- \
		sh -c 'echo first; sleep 15; echo second' >"$tmp/fifo" 2>"$tmp/err" &
	pid=$!
	exec 5<"$tmp/fifo"
	status='(reading)'
	check "output arrives as it is written" first_line_alone
	exec 5<&-
	wait "$pid" 2>/dev/null
	rm "$tmp/fifo"
}

test_environment()
{
	cd "$here" || return
	bare -- pwd
	check "the directory is the caller's" out_is "$here"
	cd "$tmp" || return
	bare --user nobody -- sh -c 'id -un; echo x >/dev/stdout; touch /etc/x 2>&-'
	check "--user" out_is $'nobody\nx'
	check "--user has no more rights than that" ended 1
	bare --user no-such-user -- true
	check "--user of nobody known" ended 125 'no such user'
	# shellcheck disable=SC2016 # the variables are the guest's
	A=1 B='2  3' bare --keep-env B -- sh -c 'echo "${A-none}/$B/$PVAS_VM"'
	check "--keep-env, and no other variable" out_is 'none/2  3/1'
	bare --cpus 3 -- nproc
	check "--cpus" out_is 3
	# shellcheck disable=SC2016
	bare -- sh -c 'getent hosts "$(hostname)" >&2 && cat /sys/class/net/lo/flags'
	check "the host has a name, and lo is up" out_is 0x9
	bare -- sh -c "rm $here/run && test ! -e $here/run"
	check "the guest can change any file" ended 0
	check "but not the host's" test -x "$here/run"
	# shellcheck disable=SC2016
	bare --user nobody --out "$tmp/results" -- sh -c 'echo r >"$PVAS_VM_OUT/r"'
	check "--out brings files back" grep -q r "$tmp/results/r"
}

test_usage()
{
	bare
	check "no command" ended 125 'no command'
	bare --bogus -- true
	check "unknown option" ended 125 'no such option'
	bare --cpus x -- true
	check "not a number" ended 125 'not a number'
	bare --kernel 2.4 -- true
	check "unknown kernel" ended 125 'unknown'
	PVAS_KO=/nonexistent.ko vm -- true
	check "module that is not there" ended 125 'PVAS_KO'
	PVAS_KO=/etc/passwd vm -- true
	check "module that is none" ended 121 "can't be inserted"
}

build_warnmod()
{
	local kdir

	bare -- uname -r
	kdir=/lib/modules/$(<"$tmp/out")/build
	[[ $kernel == debug || $kernel == kcsan ]] &&
		kdir=${PVAS_VM_CACHE:-${XDG_CACHE_HOME:-/var/cache}/pvas-vm}/$kernel/build
	cp -r "$here/warnmod" "$tmp/warnmod" &&
		make -s -C "$kdir" M="$tmp/warnmod" modules >"$tmp/out" 2>"$tmp/err"
}

# misbehaves ACTION STATUS ERE
misbehaves()
{
	with_warnmod -- sh -c "echo before; echo $1 >$ACTION"
	check "module: $1" ended "$2" "$3"
}

test_judge()
{
	status='(make)'
	check "warnmod builds" build_warnmod || return
	with_warnmod -- grep warnmod /proc/modules
	check "module: nothing wrong" ended 0
	check "module: it was there" grep -q ^warnmod "$tmp/out"
	with_warnmod -- rmmod warnmod
	check "module: removed by the command" ended 0
	misbehaves warn 120 'failure in the kernel log.*WARNING'
	check "module: output before the failure is kept" out_is before
	check "module: the log is printed" grep -q 'Call Trace' "$tmp/err"
	misbehaves oops 120 'failure in the kernel log.*(NULL|Oops|KASAN)'
	misbehaves panic 120 'failure in the kernel log.*panic'
	misbehaves leak-ref 121 'references left: 1'
	if [[ $kernel == kcsan ]]; then
		misbehaves race 120 'KCSAN: data-race in race_(ours|with) \[warnmod\]'
		misbehaves race-marked 0
		with_warnmod --log "$tmp/races" -- sh -c "echo race-elsewhere >$ACTION"
		check "module: a race of the kernel's own, below a function of the module" ended 0
		check "module: it was seen" grep -q 'KCSAN: data-race in hex_dump_to' "$tmp/races"
	fi
	[[ $kernel == debug ]] || return
	misbehaves leak-memory 120 'suspected memory leak|unreferenced object'
	misbehaves overflow 120 'KASAN'
	misbehaves sleep 120 'sleeping function|scheduling while atomic'
	misbehaves lock-order 120 'possible circular locking'
	misbehaves list 120 'list_add'
}

# report ACCESS FRAME ACCESS FRAME: a report of KCSAN's between two other lines
report()
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

	report "${@:2}" >"$tmp/out"
	awk -v module=pvas -f "$here/races.awk" "$tmp/out" >"$tmp/err"
	status=$?
	titles=$(grep -c 'BUG: KCSAN' "$tmp/err")
	[[ $(wc -l <"$tmp/out") == "$(wc -l <"$tmp/err")" ]] &&
		[[ $titles == "$([[ $1 == ours ]]; echo $((1 - $?)))" ]]
}

test_races()
{
	local ours='pvas_a+0x1/0x2 [pvas]' kernel='do_mmap+0x1/0x2' copy='memcpy+0x1/0x2'

	check "races: ours" judged ours read "$ours" write "$kernel"
	check "races: ours is the second" judged ours write "$kernel" 'read-write (reordered)' "$ours"
	check "races: what ours had copied" judged ours write "$copy" read "$kernel"
	check "races: below the kernel's own" judged others write "$kernel" read "$kernel"
	check "races: ours is marked" judged others write "$kernel" 'read (marked)' "$ours"
	check "races: ours is marked, and reordered" \
		judged others write "$kernel" 'read (marked, reordered)' "$ours"
	check "races: one of ours is marked" judged ours 'write (marked)' "$ours" read "$ours"
	check "races: a module of another name" judged others write 'pvas_a+0x1/0x2 [pvas2]' \
		read "$kernel"
	check "races: a report that is cut off" judged ours write "$kernel" read "$kernel" cut
}

test_end()
{
	bare --timeout 15 -- sh -c 'echo started; sleep 1000'
	check "timeout" ended 124 'timeout after 15'
	check "timeout: the output is kept" out_is started
	bare -- sh -c 'sleep 1000 & exit 4'
	check "what runs in the background is ended" ended 4
	bare -- sh -c 'echo b >/proc/sysrq-trigger; sleep 100'
	check "a guest that ends early" ended 122 'without a result'
	bare --append rdinit=/none -- true
	check "a guest that never boots" ended 123 'try 3 of 3'
	bare --qemu -bogus -- true
	check "QEMU's own errors" ended 125 'QEMU'
	check "nothing is left behind" nothing_left
}

# kill_it SIGNAL STATUS
kill_it()
{
	local pid

	# A background job of a script ignores SIGINT, unless told otherwise.
	env --default-signal=INT "$here/run" --kernel "$kernel" --no-module -- \
		sh -c 'echo up; sleep 1000' >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	while ! grep -q up "$tmp/out" && kill -0 "$pid"; do
		sleep 0.2
	done
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null
	status=$?
	check "ended by SIG$1" ended "$2"
	if [[ $1 == KILL ]]; then
		# No shell can remove its files then.
		sleep 1
		rm -rf "$tmp/tmp"/*
	fi
	check "SIG$1: nothing is left behind" nothing_left
}

# said N: what run number N of test_parallel said and ended with
said()
{
	[[ $status == "$1" && $(<"$tmp/out$1") == "$1" ]]
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
		PVAS_VM_CACHE=$tmp/cache "$here/run" --kernel "$kernel" --no-module -- \
			sh -c "echo $i; exit $i" >"$tmp/out$i" 2>"$tmp/err" &
		pids+=($!)
	done
	for i in 1 2 3; do
		wait "${pids[i - 1]}"
		status=$?
		check "three at once with an empty cache: $i" said "$i"
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
cd "$tmp" || exit 1
for name; do
	"test_$name"
done
echo "1..$((passed + failed))"
echo "# $passed passed, $failed failed"
((failed == 0))
