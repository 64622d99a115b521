#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Real programs through the loader, with no module (see run_loader.c).
# usage: loader.sh build-dir

# The patterns are meant as such; the programs of other languages too.
# shellcheck disable=SC2254,SC2016

dir=$(cd "$1" && pwd) || exit 1
run=$dir/run_loader
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
failed=0

# expect STATUS OUTPUT-PATTERN DESCRIPTION command...
expect()
{
	want=$1 pattern=$2 what=$3
	shift 3
	n=$((n + 1))
	out=$( ("$@") 2>&1 </dev/null)
	status=$?
	case $status:$out in
	"$want":$pattern) echo "ok $n $what" ;;
	*)
		echo "not ok $n $what"
		echo "# status $status, not $want; or this is not '$pattern':"
		echo "$out" | sed 's/^/# /'
		failed=1
		;;
	esac
}

echo "TAP version 13"

expect 0 '' "a program of the system" "$run" /bin/true
expect 1 '' "its exit status" "$run" /bin/false
expect 0 'hi there' "arguments" "$run" /bin/echo hi there
expect 0 'a b c*' "a shell: pipes, subshells, children" "$run" /bin/bash -c \
	'echo a | { read x; echo $x $(echo b) $(/bin/echo c); }; (exit 0) && /bin/true'
expect 0 '45' "perl" "$run" /usr/bin/perl -e '$s += $_ for 0..9; print $s'
expect 0 '*libc.so*' "the interpreter itself, as a program" \
	"$run" /lib64/ld-linux-x86-64.so.2 --list /bin/ls

expect 0 '' "libpvas inside, dynamic" "$run" "$dir/task"
expect 0 '' "libpvas inside, static-PIE" "$run" "$dir/task-static"
expect 0 '' "libpvas.so inside" env LD_LIBRARY_PATH="$dir/.." "$run" "$dir/task-so"
expect 0 '' "no AT_EXECFD in the vector" "$run" --noaux "$dir/task"
expect 0 '' "a space header that is completed late" "$run" --late "$dir/task"
for shape in "$dir"/shape-*; do
	name=${shape##*/}
	expect 0 "$name: 0" "$name" "$run" "$shape" "$name"
done

# ---- what goes wrong after the point of no return: one line, and a status ----

put()	# put FILE OFFSET OCTAL-BYTES...: change bytes of a copy of /bin/true
{
	cp /bin/true "$tmp/$1"
	# shellcheck disable=SC2059
	printf "$3" | dd of="$tmp/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# Where the path of the interpreter is: after PT_INTERP is found by its text.
interp=$(grep -obUa /lib64/ld-linux-x86-64.so.2 /bin/true | head -n 1 | cut -d: -f1)

put exec 16 '\002'
expect 126 "pvas: $tmp/exec: can't read the program: malformed ELF file" "ET_EXEC" \
	"$run" "$tmp/exec"
put machine 18 '\003'
expect 126 "pvas: $tmp/machine: can't read the program: malformed ELF file" "wrong machine" \
	"$run" "$tmp/machine"
head -c 5000 /bin/true > "$tmp/short"
expect 126 "pvas: $tmp/short: can't read the program: malformed ELF file" "truncated" \
	"$run" "$tmp/short"
: > "$tmp/empty"
expect 126 "pvas: $tmp/empty: can't read the program: malformed ELF file" "empty" \
	"$run" "$tmp/empty"
expect 126 "pvas: /: can't read the program: permission denied" "a directory" "$run" /
put nointerp "$interp" '/lib/none\000'
expect 127 "pvas: $tmp/nointerp: can't open the interpreter /lib/none: not found" \
	"no interpreter" "$run" "$tmp/nointerp"
put badinterp "$interp" '/etc/passwd\000'
expect 126 "pvas: $tmp/badinterp: can't read the interpreter /etc/passwd: malformed ELF interpreter" \
	"interpreter is no ELF file" "$run" "$tmp/badinterp"
put twointerp "$interp" '/bin/true\000'
expect 126 "pvas: $tmp/twointerp: can't read the interpreter /bin/true: malformed ELF interpreter" \
	"interpreter has an interpreter" "$run" "$tmp/twointerp"
put dirinterp "$interp" '/tmp\000'
expect 126 "pvas: $tmp/dirinterp: can't read the interpreter /tmp: permission denied" \
	"interpreter is a directory" "$run" "$tmp/dirinterp"
expect 126 "pvas: /bin/true: the address space was never completed: its creator was killed" \
	"a space header that is never completed" "$run" --never /bin/true
put emptyinterp "$interp" '\000'
expect 126 "pvas: $tmp/emptyinterp: can't read the interpreter's path: malformed ELF file" \
	"empty interpreter path" "$run" "$tmp/emptyinterp"
expect 126 "pvas: $dir/shape-align2m: can't map the program: invalid argument" \
	"a load bias that breaks the alignment" "$run" --misalign "$dir/shape-align2m"
expect 126 "pvas: /bin/true: can't map the program: addresses already in use" \
	"something in the way" "$run" --occupy /bin/true
# The stack is not executable then, and the program finds out.
expect 139 '*' "an executable stack that can't be had" "$run" --nostack "$dir/shape-execstack"

echo "1..$n"
exit $failed
