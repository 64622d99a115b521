#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# gdb on tasks, with the extension: attached to one of eight, to one of another
# program, and on a core file.
#
# BACKEND	user (natively) or kernel (on a machine with the module)
# O		where things are built

BACKEND=${BACKEND:?user or kernel?}
top=$(cd "$(dirname "$(readlink -f "$0")")/../../.." && pwd) || exit 1
O=$(readlink -f "${O:-$top/build}")
SLOW=${SLOW:-1}
extension=$top/tools/gdb/pvas-gdb.py
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
job=

end_job() { [ -z "$job" ] || { kill "$job"; wait "$job"; } 2>/dev/null; job=; }
trap 'end_job; rm -rf "$T"' EXIT
cd "$T" || exit 1

# says LABEL REGEX: what gdb has printed
says() { if grep -qE -- "$2" "$T/out"; then pass; else fail "$1 (no '$2')"; fi; }
says_not() { if grep -qE -- "$2" "$T/out"; then fail "$1 ('$2')"; else pass; fi; }

run_gdb() { timeout $((60 * SLOW)) gdb -nx -q -batch -ex 'set debuginfod enabled off' "$@" >"$T/out" 2>&1; }

# ranks 0 to 6 row, rank 7 paddles
start_job()
{
	local tries=$((300 * SLOW))

	: >"$T/job"	# or the last one's tasks would be ready
	"$O/pvasrun/pvasrun" --backend "$BACKEND" --partition-size 64G -q -n 7 "$O/gdb/crew" : -n 1 "$O/gdb/crew2" \
		>"$T/job" 2>&1 &
	job=$!
	until [ "$(grep -c ready "$T/job")" -eq 8 ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { echo "FAIL: the job does not start"; cat "$T/job"; exit 1; }
		sleep 0.1
	done
}

# Tasks start one after the other, but pids may wrap.
pid_of_rank()
{
	local pid

	for pid in $(tasks_of "$job"); do
		tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "PVAS_RANK=$1" && echo "$pid" && return
	done
	# The user backend's tasks have the launcher's environ.
	tasks_of "$job" | sed -n "$(($1 + 1))p"
}

# line FILE-MARK: the line of crew.c with this text
line() { grep -n -m 1 -- "$1" "$top/tools/gdb/tests/crew.c" | cut -d: -f1; }

start_job
rank3=$(pid_of_rank 3)
rank7=$(pid_of_rank 7)

run_gdb -x "$extension" -p "$rank3" -ex 'pvas info' -ex 'break stroke' -ex continue -ex bt \
	-ex 'print n' -ex 'info symbol usleep' -ex 'pvas symbols 8' -ex 'info symbol paddle' \
	-ex 'pvas symbols 9' -ex 'maint info breakpoints'
says "finds the task" "^pvas: space [0-9]+, task 4, pid $rank3: symbols of [3-9] files"
says "lists all tasks" "^   +8 +$rank7 running "
says "marks this one" "^\* +4 +$rank3 running "
says "breaks in the partition" "^Breakpoint 1 at 0x4[0-9a-f]{9}: file .*crew\.c, line"
says "stops there" "^Breakpoint 1, stroke \(n=.*\) at .*crew\.c:$(line 'strokes += n')"
says "the caller" "^#1 .* eight \(rank=3\) at .*crew\.c:$(line $'^\t\tSTROKE(rank);')"
says "main" "^#2 .* main \(.*\) at .*crew\.c:"
says "an argument" "^[$]1 = 3$"
says "libc is known" '^usleep in section .text of .*libc'
says "other tasks on request" '^paddle in section .text of .*crew2'
says "no such task" '^pvas: no task 9 '

says_not "no breakpoint in a dynamic linker" 'shlib events'
says_not "no errors of Python" 'Traceback|Python Exception'

run_gdb -x "$extension" -p "$rank7" -ex bt -ex 'info symbol paddle' -ex 'info symbol stroke'
says "the other program's frames" "^#[0-9]+ .* canoe \(rank=7\) at .*crew\.c:"
says "its symbols" '^paddle in section .text of .*crew2'
says "and no others" '^No symbol "stroke" in current context'

# All others have gone on.
run_gdb -x "$extension" -p "$rank3" -ex 'break stroke' -ex continue -ex continue -ex bt
says "attached again" '^#1 .* eight \(rank=3\)'
if [ "$(tasks_of "$job" | wc -l)" -eq 8 ]; then pass; else fail "a task was lost"; fi

# Not a task: quiet, and a command says so.
sleep 300 &
other=$!
run_gdb -x "$extension" -p "$other" -ex 'pvas info'
says "no task" '^pvas: no space header in this process or core'
kill "$other"
end_job

# ---- what looks like a task ----

# forged SHIFT ENTRIES [FILE...]: gdb on it
forged()
{
	local tries=$((100 * SLOW))

	rm -f "$T/name.$1.$2"* "$T/forged"
	"$O/gdb/forge" "$1" "$2" "$T/name.$1.$2" "${@:3}" >"$T/forged" 2>&1 &
	other=$!
	until grep -qs ready "$T/forged" || [ $((tries -= 1)) -eq 0 ]; do sleep 0.1; done
	run_gdb -x "$extension" -p "$other" -ex 'pvas info' -ex 'echo came to the end'
	kill -KILL "$other"
	wait "$other" 2>/dev/null
}

# 513: the stack's partition is among them
forged 38 513
says "a FIFO as a program: gdb goes on" 'came to the end'
# The table would go on where the mapping ends.
for header in '38 20000' '38 4294967295' '4294967295 10' '0 10' '29 10'; do
	# shellcheck disable=SC2086 # two words
	forged $header
	says "forged, $header: not believed" '^pvas: no space header in this process or core'
	says "forged, $header: gdb goes on" 'came to the end'
done

# A file that is cut off, and names that would give the terminal orders or end a line.
head -c 100 "$O/gdb/crew" >cut.elf
head -c 600 "$O/gdb/crew" >cut.table
evil=$'gone\rx\e[31m\xc2\x9b1m'
echo text >"$evil"
forged 38 513 cut.elf cut.table "$evil"
says "a cut ELF file: gdb goes on" '^pvas: space 7, task [0-9]+: symbols of 0 files'
says_not "no errors of Python" 'Traceback|Python Exception|struct.error'
says "a name with control characters" 'gone.x0dx.x1b.31m.xc2.x9b1m.*: no such file here'
if LC_ALL=C grep -q $'[\r\e\x9b]' "$T/out"; then fail "control characters of a name"; else pass; fi

# A line feed in a name would end a command, and the rest of the name would be the next one.
lines=$T/$'names\nshell touch owned\n'
mkdir "$lines"
cp "$O/gdb/forge" "$lines/prog"
run_gdb -x "$extension" -ex "python gdb.execute('echo ' + str(find_file('$T/names\nshell touch owned\n/prog')))" \
	-ex "python gdb.execute('symbol-file ' + quote('$T/names\nshell touch owned\n/prog'))" \
	-ex "python gdb.execute('file ' + quote('$O/gdb/forge'))" -ex 'info symbol main' -ex 'echo came to the end'
says "a name of several lines: not found" '^None'
says "a name of several lines: refused" 'control characters in the name .*names.x0ashell'
says "other names are not" '^main in section .text'
says "a name of several lines: gdb goes on" 'came to the end'
if [ -e owned ]; then fail "a name became a command"; else pass; fi

# A file of 65535 segments, mapped a thousand times
python3 - >many.elf <<'EOF'
import struct, sys
head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 65535, 0, 0, 0)
loads = (struct.pack("<IIQQQQQQ", 1, 5 if i else 4, (i << 12) + ((i > 0) << 30), i << 12, 0, 0, 0, 0) for i in range(65535))
sys.stdout.buffer.write(head + b"".join(loads))
EOF
mapfile -t many < <(yes many.elf | head -n 1000)
forged 38 513 "${many[@]}"
says "many segments, mapped often: gdb goes on" 'came to the end'

# ---- a core ----

if [ "$(cat /proc/sys/kernel/core_pattern)" != core ]; then
	[ "$BACKEND" = kernel ] && echo core >/proc/sys/kernel/core_pattern
fi
case $(cat /proc/sys/kernel/core_pattern) in
core)
	(ulimit -c unlimited && CRASH_RANK=3 "$O/pvasrun/pvasrun" --backend "$BACKEND" -q -n 5 "$O/gdb/crew") \
		>"$T/job" 2>&1
	cp "$T/job" "$T/out"
	core=$(find "$T" -name 'core*' | head -n 1)
	says "the task dumps core" 'rank 3 .*core dumped'
	run_gdb -c "$core" -x "$extension" -ex bt -ex 'pvas info'
	says "the core's task" '^pvas: space [0-9]+, task 4, pid [0-9]+: symbols of [3-9] files'
	says "where it died" "^#0 .* eight \(rank=3\) at .*crew\.c:$(line '(volatile int \*)8')"
	says "its main" '^#1 .* main \(.*\) at .*crew\.c:'
	says "the core's tasks" '^\* +4 +[0-9]+ (running|ending) '
	;;
*)
	skip "core files: core_pattern is not 'core' on this machine, and not ours to change"
	;;
esac

sum_up
