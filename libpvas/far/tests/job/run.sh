#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Run the tests of a job's far memory: as this user, and as an ordinary one if this is root, since
# the kernel then serves no faults of its own.
# usage: O=build-dir run.sh [test...|start]

here=$(dirname "$(readlink -f "$0")")
O=${O:-$here/../../../../build}
task=$O/libpvasfar/tests/task
memd=$O/memd/pvas-memd
pvasrun=$O/pvasrun/pvasrun
tmp=$(mktemp -d) || exit 1
chmod 1777 "$tmp"
trap 'rm -rf "$tmp"' EXIT
export FAR_TEST_FILE=$tmp/records
passed=0
failed=0
ordinary=()
[ "$(id -u)" -ne 0 ] ||
	ordinary=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all)
if [ ${#ordinary[@]} -gt 0 ]; then
	# Others may not enter this folder.
	mkdir "$tmp/bin" "$tmp/bin/pvasrun" "$tmp/bin/libpvasfar"
	cp "$pvasrun" "$tmp/bin/pvasrun/"
	cp "$O"/libpvasfar/libpvasfar.so* "$O"/libpvasfar/pvasfar-host.so "$tmp/bin/libpvasfar/" 2>/dev/null
	cp "$task" "$tmp/bin/task"
	cp "$O/libpvasfar/tests/storage" "$tmp/bin/storage"
	export PVAS_FAR_PLUGINS=$tmp/bin/libpvasfar
else
	export PVAS_FAR_PLUGINS=$O/libpvasfar
fi

ok() { # name status
	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok $1"
	else
		failed=$((failed + 1))
		echo "not ok $1"
		sed 's/^/# /' "$tmp/log"
	fi
}

# Not by all users: $tmp/bin belongs to root.
job() { # how ranks test options...
	local how=$1 n=$2 name=$3 run=("$pvasrun") program=$task
	shift 3
	[ "$how" = ordinary ] && run=("${ordinary[@]}" env "HOME=$tmp" "$tmp/bin/pvasrun/pvasrun") program=$tmp/bin/task
	[ "$name" = storage ] && program=$(dirname "$program")/storage
	timeout -k 5 120 "${run[@]}" --mpi none --ram 16M "$@" -n "$n" "$program" "$name" > "$tmp/log" 2>&1
}

works() { # how ranks test options...
	job "$@"
	ok "$1-$3${4:+ ${*:4}}" $?
}

# It fails with a line that has these words, and status 1.
refuses() { # name words options...
	local name=$1 words=$2 status
	shift 2
	timeout -k 5 60 "$pvasrun" --mpi none "$@" -n 1 "$task" fill > "$tmp/log" 2>&1
	status=$?
	[ "$status" -eq 1 ] && [ "$(wc -l < "$tmp/log")" -eq 1 ] && grep -q -- "$words" "$tmp/log"
	ok "$name" $?
}

if [ "$*" = start ]; then
	. "$here/start.sh"
	echo "$passed passed, $failed failed"
	exit $((failed > 0))
fi
tests=(calls messages waiting file unmap storage spans stacks remap protection robust neighbours madvise mprotect fixed fork exec threads heap closed fuzz watched)
[ $# -eq 0 ] || tests=("$@")
hows=(own)
[ ${#ordinary[@]} -eq 0 ] || hows+=(ordinary)
for how in "${hows[@]}"; do
	for t in "${tests[@]}"; do
		works "$how" 1 "$t" --far-page 64K
	done
	works "$how" 4 fill --far "file:$tmp"
	works "$how" 3 peer --far-page 16K
	works "$how" 3 peer --far-page auto
	works "$how" 2 leaving --far-page 16K
	works "$how" 4 fill --far-page auto --far "file:$tmp"
	rm -f "$FAR_TEST_FILE"
	works "$how" 4 append
done
[ $# -eq 0 ] || exit $((failed > 0))

# Most of these wait for servers to start and to end: beside the others.
starts=
if [ -x "$memd" ]; then
	O=$O "$0" start > "$tmp/starts" 2>&1 &
	starts=$!
fi

works own 2 peer --far "file:$tmp,file:$tmp" --far-copies 2
works own 1 full --far-size 48M
# DLM's protocols: what tasks do with their memory is the same. Two tests page so much that a disk
# would take most of the time.
for protocol in r3 r58 r77; do
	for t in "1 calls zip" "1 threads file:$tmp" "1 remap zip" "1 protection zip" "1 neighbours zip" "1 fork zip" "3 peer file:$tmp" \
		"4 append zip" "4 fill file:$tmp"; do
		rm -f "$FAR_TEST_FILE"
		read -r n name store <<< "$t"
		works own "$n" "$name" --far-page 64K --far "$store" --far-protocol $protocol
	done
	[ ${#ordinary[@]} -eq 0 ] || works ordinary 1 storage --far-page 64K --far-protocol $protocol
done
refuses no-protocol 'pvas, r3, r58 or r77' --ram 16M --far-protocol r99
refuses protocol-without-ram '--ram' --far-protocol r77
refuses page 'auto or a power of two' --ram 16M --far-page automatic
refuses budget 'too small' --ram 64K --far-page 64K
refuses no-store 'No such file' --ram 16M --far "file:$tmp/none"
refuses bad-store 'is_no_server' --ram 16M --far is_no_server:1
refuses without-ram '--ram' --far zip
refuses kernel-start 'user backend' --ram 16M --backend kernel --far-start 127.0.0.1
refuses small-partitions '16 GiB' --ram 16M --partition-size 4G
refuses too-many-pages 'too small for' --ram 16M --far-page 4K --far-size 2T
refuses no-room 'no room' --ram 16M --far "file:$tmp" --far-size 30T
refuses key 'key' --ram 16M --far 127.0.0.1:9 --far-key "$tmp/none"

# serve NAME: a server, whose messages are in $tmp/NAME. Its process is $server, its address $at.
serve()
{
	"$memd" --key "$tmp/key" --ram 300M --listen 127.0.0.1:0 > "$tmp/$1" 2>&1 &
	server=$!
	for _ in $(seq 300); do grep -q listening "$tmp/$1" && break; sleep 0.1; done
	at=127.0.0.1:$(sed -n 's/.*listening at .* port \([0-9]*\),.*/\1/p' "$tmp/$1")
}

# A memory server: with the key, without it, with another one, too small
if [ -x "$memd" ]; then
	"$memd" --make-key "$tmp/key" && "$memd" --make-key "$tmp/other"
	serve dies
	dies=$server dies_at=$at
	serve memd
	works own 2 fill --far "$at" --far-key "$tmp/key"
	works own 1 fill --far "$at,$at" --far-copies 2 --far-size 64M --far-key fd:9 9< "$tmp/key"
	refuses no-key 'key' --ram 16M --far "$at"
	refuses wrong-key 'key' --ram 16M --far "$at" --far-key "$tmp/other"
	refuses server-full "$at" --ram 16M --far "$at" --far-key "$tmp/key" --far-size 400M
	# One of two is killed: the job goes on, without a wrong byte, and says so.
	FAR_TEST_FILE=$tmp/rounds timeout -k 5 300 "$pvasrun" --mpi none --ram 16M --far "$dies_at,$at" --far-copies 2 --far-size 64M \
		--far-key "$tmp/key" -n 1 "$task" rounds > "$tmp/log" 2>&1 &
	launcher=$!
	for _ in $(seq 600); do [ -e "$tmp/rounds" ] && break; sleep 0.1; done
	kill -KILL $dies
	for _ in $(seq 600); do grep -q 'second copies$' "$tmp/log" && break; sleep 0.1; done
	rm -f "$tmp/rounds"
	wait $launcher
	[ $? -eq 0 ] && [ "$(wc -l < "$tmp/log")" -eq 1 ] &&
		grep -q "server $dies_at: .*used no more, its pages have second copies$" "$tmp/log"
	ok server-killed-with-copies $?
	# Killed in the middle
	"$pvasrun" --mpi none --ram 16M --far "$at" --far-key "$tmp/key" -n 2 "$task" forever \
		> "$tmp/log" 2>&1 &
	launcher=$!
	sleep 2
	kill -KILL $server
	timeout 30 tail --pid=$launcher -f /dev/null
	kill -KILL $launcher 2> "$tmp/none" || true
	wait $launcher
	[ $? -eq 1 ] && grep -q "$at.*: the job ends$" "$tmp/log"
	ok server-killed $?
fi

# On a terminal, with --verbose, a line each second says what the pager does.
timeout 60 script -qec "timeout 5 $pvasrun -v --mpi none --ram 16M -n 1 $task forever" /dev/null > "$tmp/log" < /dev/null
grep -q 'far memory: [0-9]* of 32 MiB here, [1-9][0-9]* faults/s, .* hits, [0-9]* MiB/s in' "$tmp/log"
ok live-line $?

# Of the processes that stay, only those of tasks are named.
timeout 60 "$pvasrun" --mpi none --ram 16M -n 1 sh -c 'sleep 2 & :' > "$tmp/log" 2>&1
grep -q ': sleep (pid [0-9]*), left running by a task' "$tmp/log"
ok orphans $?

# The pager is killed: so are the tasks, and nothing is left.
"$pvasrun" --mpi none --ram 16M --far "file:$tmp" -n 2 "$task" forever > "$tmp/log" 2>&1 &
launcher=$!
disown
sleep 2
# Two tasks, and the process that keeps the pager's descriptor
tasks=$(ps -o pid= --ppid $launcher)
kill -KILL $launcher
sleep 1
ps -o stat= -p "$(echo $tasks | tr ' ' ,)" > "$tmp/log"
# Dead ones may wait for a parent that does not look.
[ "$(wc -w <<< "$tasks")" -ge 3 ] && ! grep -qv Z "$tmp/log" &&
	[ -z "$(find "$tmp" -maxdepth 1 -name '.pvas*')" ]
ok killed $?

# A page can't be got any more: one line, and the end.
truncate -s 300M "$tmp/store" && chmod 600 "$tmp/store"
"$pvasrun" --mpi none --ram 16M --far "file:$tmp/store" -n 2 "$task" forever > "$tmp/log" 2>&1 &
launcher=$!
sleep 2
truncate -s 0 "$tmp/store"
timeout 20 tail --pid=$launcher -f /dev/null; kill -KILL $launcher 2>/dev/null; wait $launcher
[ $? -eq 1 ] && grep -q 'store: .*: the job ends$' "$tmp/log"
ok store-fails $?

for protocol in r3 r58 r77; do
	truncate -s 300M "$tmp/store"
	"$pvasrun" --mpi none --ram 16M --far-protocol $protocol --far "file:$tmp/store" -n 2 "$task" forever > "$tmp/log" 2>&1 &
	launcher=$!
	sleep 2
	truncate -s 0 "$tmp/store"
	timeout 20 tail --pid=$launcher -f /dev/null; kill -KILL $launcher 2>/dev/null; wait $launcher
	[ $? -eq 1 ] && grep -q 'store: .*: the job ends$' "$tmp/log"
	ok store-fails-$protocol $?
done

# A core dump comes to its end, has the rest, and no page of far memory (a register may have some).
read -r pattern < /proc/sys/kernel/core_pattern
if [[ $pattern != *[/\|]* ]]; then
	mkdir "$tmp/core"
	(cd "$tmp/core" && ulimit -c unlimited && exec timeout -k 5 120 "$pvasrun" --mpi none --ram 16M --far "file:$tmp" \
		--far-page 64K -n 1 "$task" core) > "$tmp/log" 2>&1
	grep -q 'core dumped' "$tmp/log" && grep -qrE 'L{512}' "$tmp/core" && ! grep -qrE 'F{512}' "$tmp/core"
	ok core $?
	rm -r "$tmp/core"
fi

# Without --ram there is none.
timeout 60 "$pvasrun" --mpi none -n 1 "$task" fill > "$tmp/log" 2>&1
[ $? -eq 1 ] && grep -q 'is_far' "$tmp/log"
ok none-without-ram $?

if [ "$starts" ]; then
	wait "$starts"
	grep -v ' passed, ' "$tmp/starts"
	passed=$((passed + $(grep -c '^ok ' "$tmp/starts")))
	# One that has not come to its end has failed, too.
	failed=$((failed + $(grep -c '^not ok ' "$tmp/starts") + !$(grep -c ' passed, ' "$tmp/starts")))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
