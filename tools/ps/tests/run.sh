#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# pvasps beside real jobs. Other spaces may come and go on this machine, so tests
# look at their own.
#
# BACKEND	user (natively) or kernel (on a machine with the module, as root)
# TASKS		how many in the large job
# O		where things are built

BACKEND=${BACKEND:?user or kernel?}
top=$(cd "$(dirname "$(readlink -f "$0")")/../../.." && pwd) || exit 1
O=${O:-$top/build}
TASKS=${TASKS:-16}
SLOW=${SLOW:-1}
export SLOW
ps=$O/pvasps/pvasps
tests=$top/tools/ps/tests
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
chmod 755 "$T"
job=

end_job() { [ -z "$job" ] || { kill "$job"; wait "$job"; } 2>/dev/null; job=; }
trap 'end_job; rm -rf "$T"' EXIT

ready() { [ "$(grep -c ready "$T/job")" -eq "$1" ]; }
first_task() { tasks_of "$job" | head -n 1; }

# start_job READY ARGS: a job, and wait until so many of its tasks say "ready"
start_job()
{
	: >"$T/job"	# or the last one's tasks would be ready
	"$O/pvasrun/pvasrun" --backend "$BACKEND" -q "${@:2}" >"$T/job" 2>&1 &
	job=$!
	until_true 30 ready "$1" || { fail "the job does not start"; cat "$T/job"; exit 1; }
	task=$(first_task)
}

# ask OPTIONS... -- LABEL EXPRESSION...: each of the job's space, all from one look
ask()
{
	local options=()

	while [ "$1" != -- ]; do options+=("$1"); shift; done
	"$ps" --json --pid "$task" "${options[@]}" | python3 "$tests/ask.py" "${@:2}"
}

# The same, and count what it says.
checks()
{
	ask "$@" >"$T/asked" 2>&1
	passed=$((passed + $(grep -c '^ok ' "$T/asked")))
	grep -q '^ok \|^FAIL ' "$T/asked" || echo "FAIL: no answer" >>"$T/asked"
	failed=$((failed + $(grep -c '^FAIL' "$T/asked")))
	grep -v '^ok ' "$T/asked"
}

# refused TEXT ARGS: exit status 1, and one line of error that matches
refused()
{
	"$ps" "${@:2}" >"$T/refused.out" 2>"$T/refused"
	[ $? -eq 1 ] && [ ! -s "$T/refused.out" ] && [ "$(wc -l <"$T/refused")" -eq 1 ] &&
		grep -qE "^pvasps: $1" "$T/refused"
}

# ---- the accounting of time that slow processes take ----

[ "$BACKEND" = kernel ] || try "each user's time" "$O/pvasps/unit_reader"

# ---- memory, by partition ----

start_job 3 -n 1 "$O/pvasps/big" 24 : -n 1 "$O/pvasps/big" 1 busy : -n 1 "$O/pvasps/big" 8 huge
huge=("huge pages in the third"
	"t[2]['huge_kib'] >= 4096 and space['huge_kib'] >= t[2]['huge_kib']")
if grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled; then
	skip "huge pages: this machine has none (transparent_hugepage is never)"
	huge=()
fi
busy="t[1]['cpu_ms'] > 300 and t[0]['cpu_ms'] < t[1]['cpu_ms']"
try "the busy one's time grows" until_true 10 ask -n -- busy "$busy"
checks --areas -- \
	"backend" "space['backend'] == '$BACKEND' and space['detail']" \
	"task count" "len(t) == 3 and all(x['state'] == 'running' for x in t)" \
	"names" "[x['name'] for x in t] == ['big'] * 3" \
	"pids are the job's" "sorted(x['pid'] for x in t) == sorted([$(tasks_of "$job" | paste -sd,)])" \
	"launcher" "space['launcher'] == ($job if '$BACKEND' == 'user' else None)" \
	"24 MiB are in the first" "24 << 10 <= t[0]['resident_kib'] < 40 << 10" \
	"and not in the second" "1 << 10 <= t[1]['resident_kib'] < 16 << 10" \
	"no huge pages in the first" "t[0]['huge_kib'] == 0" \
	"${huge[@]}" \
	"parts make the whole" "abs(space['resident_kib'] - space['header_kib'] - space['outside_kib']
		- sum(x['resident_kib'] for x in t)) <= space['resident_kib'] // 4" \
	"page tables" "space['pagetables_kib'] >= 4 * len(t)" \
	"maps" "space['maps'] >= sum(x['maps'] for x in t) > 3 * len(t)" \
	"areas" "all(x['areas'][0]['kind'] == 'program' and x['areas'][-1]['kind'] == 'stack' for x in t)"
checks -n -- "no memory asked for, none told" "t[0]['resident_kib'] is None and space['huge_kib'] is None"

# ---- choosing, and the plain list ----

space_id() { "$ps" -n --json --pid "$task" | sed 's/.*"spaces":\[{"id":\([0-9]*\).*/\1/'; }

id=$(space_id)
try "--space chooses" sh -c "'$ps' --space $id | grep -c '^space ' | grep -qx 1"
: >"$T/opens"
LD_PRELOAD=$O/pvasps/log_opens.so LOG_OPENS=$T/opens "$ps" -n >/dev/null & main=$!
wait $main
try "a helper reads of processes" grep -qE '/proc/[0-9]+/stat$' "$T/opens"
try "and nobody else" eval "! grep -E '^$main /proc/[0-9]+/' '$T/opens'"
try "the list has the tasks" sh -c "'$ps' --space $id | grep -c ' running .* big\$' | grep -qx 3"
if [ "$BACKEND" = user ]; then
	try "no such space" refused 'no space 77777 ' --space 77777
	try "no task" refused 'process 1 is in no space' --pid 1
	try "bad id" refused "--space 'x1': not the id" --space x1
	try "bad pid" refused "--pid '0': not a process" --pid 0
	try "bad option" refused "unknown option '--frob'" --frob
	try "missing value" refused "--space needs a value" --space
	try "bad interval" refused "--watch 'soon': not a time" --watch soon
	try "word too many" refused "'frob': not an option" frob
	try "areas without json" refused "--areas goes with --json" --areas
	try "full disk" sh -c "! '$ps' >/dev/full 2>'$T/full' && grep -q '^pvasps: cannot write' '$T/full'"
	try "help" sh -c "'$ps' --help | grep -q '^Usage: pvasps'"
	try "no terminal: plain lists" sh -c "'$ps' --space $id --watch 0.1 | head -n 20 | grep -c '^space $id' | grep -vqx 1"
	try "json again and again" sh -c "'$ps' --space $id --json -w0.1 | head -n 2 | wc -l | grep -qx 2"
	try "no terminal known" sh -c "TERM=nonsense script -qec '$ps -w' /dev/null </dev/null | grep -q 'cannot use this terminal'"
fi
end_job
try "the space is gone" until_true 10 refused "no space $id" --space "$id"
if [ "$BACKEND" = kernel ]; then
	try "no spaces, no failure" sh -c "'$ps' | grep -qx 'no spaces'"
elif [ "$(id -u)" = 0 ]; then
	try "no spaces, no failure" unshare --pid --fork --mount-proc sh -c "'$ps' | grep -qx 'no spaces'"
else
	skip "no spaces, no failure: root only (unshare)"
fi

# ---- far memory ----

if [ "$BACKEND" = user ] && [ -e "$O/libpvasfar/libpvasfar.so" ]; then
	start_job 2 --ram 16M -n 1 "$O/pvasps/big" 24 : -n 1 "$O/pvasps/big" 1
	task=$(first_task)
	try "it is shown after a second" until_true 10 ask -n -- far "space['far_kib'] > 0"
	checks -- "more than 24 MiB are far" "24 << 10 <= space['far_kib'] < 36 << 10" \
		"16 of them local, at most" "0 < space['far_local_kib'] <= 16 << 10 == space['far_budget_kib']" \
		"the rest is stored" "space['far_stored_kib'] > 0 and space['far_faults'] > 0" \
		"it is quiet now" "space['far_hits_per_1000'] is None or space['far_hits_per_1000'] <= 1000" \
		"most of it the first's" "t[0]['far_kib'] + t[1]['far_kib'] == space['far_kib'] and t[0]['far_kib'] >= 24 << 10" \
		"of which some is local" "t[0]['far_local_kib'] <= 16 << 10 > t[1]['far_local_kib']"
	id=$(space_id)
	try "the list has columns" sh -c "'$ps' --space $id | grep -q ' FAR  LOCAL '"
	try "and sums" sh -c "'$ps' --space $id | grep -q '^  far .* of it local .* faults [0-9]*/s'"
	end_job
	start_job 1 -n 1 "$O/pvasps/big" 24
	checks -n -- "no far memory, none told" "space['far_kib'] is None and t[0]['far_kib'] is None"
	end_job
else
	skip "far memory: the user backend has it"
fi

# ---- many tasks: what is shown stays readable, and the terminal whole ----

start_job "$TASKS" -n "$TASKS" "$O/pvasps/big" 1
checks -- "$TASKS tasks" "len(t) == $TASKS and space['task_count'] == $TASKS" \
	"each has its own" "all(x['resident_kib'] >= 1024 for x in t)" \
	"page tables grow with the tasks, no faster" "space['pagetables_kib'] < 100 * ($TASKS + 4)"
id=$(space_id)
ends=(q ^C SIGTERM SIGHUP)
[ "$BACKEND" = user ] || ends=(q)
for end in "${ends[@]}"; do
	try "live view, ended by $end" python3 "$tests/screen.py" "$end" "$ps" --space "$id" -w 0.5
done
end_job

# ---- another user's process that claims to be in our space ----

# forged ID PID...: the forger, which was there first, has this space now
forged() { echo "$@" >&9; until_true 10 grep -qs forged "$T/forged"; }
start_forger()
{
	rm -f "$T/orders" "$T/forged"
	mkfifo "$T/orders"
	cp "$O/pvasps/forge" "$T/forge"
	exec 9<>"$T/orders"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$T/forge" <"$T/orders" >"$T/forged" &
	forger=$!
}
# stranger COMMAND...: a forger that needs no orders
stranger()
{
	: >"$T/forged"
	"$@" </dev/null >"$T/forged" &
	forger=$!
	until_true 10 grep -q forged "$T/forged"
}
end_stranger() { kill $forger; wait $forger 2>/dev/null; }
lines_of() { timeout 60 "$ps" -n --pid "$1" 2>&1 | wc -l; }
end_forger() { exec 9>&-; kill $forger; wait $forger 2>/dev/null; }

if [ "$BACKEND" = user ] && [ "$(id -u)" = 0 ]; then
	start_forger
	start_job 2 -n 2 "$O/pvasps/big" 1
	id=$(space_id)
	tasks=$(tasks_of "$job" | paste -sd,)
	try "a header is forged" forged "$id" ${tasks//,/ } $forger
	checks -n -- "its own user's" "space['uid'] == 0 and space['launcher'] == $job" \
		"its own tasks, no others" "sorted(x['pid'] for x in t) == sorted([$tasks])"
	try "there is one of this id" sh -c "'$ps' -n --space $id | grep -c '^space ' | grep -qx 1"
	try "the forger is in no space" refused "process $forger is in no space" --pid $forger
	end_forger
	start_forger
	# it has one of its own: with the tasks of others in it
	try "a space is forged" forged $((0x80000000 | forger << 9)) ${tasks//,/ }
	checks -n -- "its own tasks still" "sorted(x['pid'] for x in t) == sorted([$tasks]) and space['uid'] == 0"
	try "the forged one has none of them" sh -c "'$ps' -n --json --pid $forger | grep -qv '\"pid\":[1-9]'"
	end_forger

	# ---- a stranger who would have pvasps grow, read a file, or wait ----

	nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	try "one process, 4096 tasks" stranger "${nobody[@]}" "$T/forge" many
	try "a pid is no task 4096 times" test "$(lines_of $forger)" -lt 10
	end_stranger
	mkdir "$T/names"
	chown 65534 "$T/names"
	try "a table in a file" stranger "${nobody[@]}" "$T/forge" file "$T/names/t rw-p 00000000 00:00 0 "
	try "it is not read" refused "process $forger is in no space" --pid $forger
	end_stranger
	# Another user, whose reading is limited by itself; with the right to stop the kernel's reads
	if stranger "${nobody[@]}" --inh-caps +sys_ptrace --ambient-caps +sys_ptrace \
		"$T/forge" hang; then
		try "memory that never answers: pvasps ends" timeout $((20 * SLOW)) "$ps" -n
		cp "$T/out" "$T/listed"		# the next check writes there
		# Other processes of that user are counted, too.
		try "it says so" grep -qE '^[1-9][0-9]* process(es)? passed over: ' "$T/listed"
		try "and shows the others" grep -q "^space $id: .* launcher $job" "$T/listed"
	else
		skip "memory that never answers: no userfaultfd on this machine"
	fi
	end_stranger
	# Each a little, and together much: the first lines of maps are enough
	if stranger "${nobody[@]}" "$T/forge" maps 200 30000; then
		try "200 processes of 30000 mappings: pvasps reads little" timeout $((20 * SLOW)) \
			strace -f -c -o "$T/calls" -e trace=read "$ps" -n
		calls=$(awk '$NF == "read" { print $4 }' "$T/calls")
		try "in $calls calls" test "$calls" -lt 8000
	fi
	end_stranger
	# A user with as many uids as subuid(5) gives him has 3 s in all, not each
	mount_subuid='mount --bind "$1" /etc/subuid && shift && exec "$@"'
	touch /etc/subuid && echo nobody:200000:65536 >"$T/subuid"
	if stranger "$T/forge" hang 70 200000; then
		try "70 uids of one user: pvasps ends" timeout $((12 * SLOW)) \
			unshare -m sh -c "$mount_subuid" - "$T/subuid" "$ps" -n
		cp "$T/out" "$T/listed"
		try "and shows the others' spaces" grep -q "^space $id: .* launcher $job" "$T/listed"
	else
		skip "many uids: no userfaultfd on this machine"
	fi
	end_stranger
	end_job
elif [ "$BACKEND" = user ]; then
	skip "forged headers: only root can be another user"
fi

# ---- others' spaces (the module's: it shows a user his own, root all) ----

as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

if [ "$BACKEND" = kernel ]; then
	start_job 1 -n 1 "$O/pvasps/big" 1
	as_nobody "$O/pvasrun/pvasrun" -q -n 2 "$O/pvasps/big" 1 >"$T/other" 2>&1 &
	other=$!
	until_true 30 grep -q ready "$T/other" || fail "nobody's job does not start"
	own="[s for s in spaces if s['uid'] == 65534][0]"
	as_nobody "$ps" --json | python3 "$tests/ask.py" "sees its own space only" "len(spaces) == 1" \
		"with its tasks" "${own}['detail'] and len(${own}['tasks']) == 2" \
		"and their memory" "${own}['tasks'][0]['resident_kib'] > 1024" >"$T/asked"
	"$ps" --json | python3 "$tests/ask.py" "root sees both" "sorted(s['uid'] for s in spaces) == [0, 65534]" \
		"with their tasks" "all(s['detail'] and s['tasks'] for s in spaces)" >>"$T/asked"
	passed=$((passed + $(grep -c '^ok ' "$T/asked")))
	failed=$((failed + 5 - $(grep -c '^ok ' "$T/asked")))
	grep -v '^ok ' "$T/asked"
	kill "$other"
	wait "$other" 2>/dev/null
	end_job
fi

sum_up
