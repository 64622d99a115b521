# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# --far-start: servers that pvasrun starts itself, here by stand-ins for ssh and srun. Part of run.sh.

# shellcheck disable=SC2154 # run.sh sets these
for agent in ssh srun; do
	printf '#!/bin/sh\nAGENT=%s exec "%s/bin/agent" "$@"\n' $agent "$here" >"$tmp/agents-$agent"
	mkdir -p "$tmp/agents" && mv "$tmp/agents-$agent" "$tmp/agents/$agent" && chmod +x "$tmp/agents/$agent"
done
export SAW=$tmp/saw

# Servers that a pvasrun of this build has started
find_servers() { pgrep -f -- "^$(readlink -f "$O")/memd/pvas-memd --key - --until-eof"; }
servers() { find_servers | wc -l; }

until_gone()
{
	for _ in {1..150}; do
		[ "$(servers)" -eq 0 ] && return 0
		sleep 0.1
	done
	return 1
}

# starts NAME RANKS OPTION...: the job works, and nothing is left
starts()
{
	local name=$1 n=$2 status
	shift 2
	PATH=$tmp/agents:$PATH timeout -k 5 120 "$pvasrun" --verbose --mpi none --ram 16M "$@" -n "$n" "$task" fill \
		>"$tmp/log" 2>&1
	status=$?
	[ $status -eq 0 ] && grep -q 'memory server on .*: 127\.0\.0\.1 port' "$tmp/log" &&
		! grep -q 'MiB came in, 0 MiB went out' "$tmp/log" && [ "$(servers)" -eq 0 ]
	ok "start-$name" $?
}

# refuses_start NAME WORDS HOST...
refuses_start() { PATH=$tmp/agents:$PATH refuses "start-$1" "$2" --ram 16M --far-start "$3"; }

# Its process is $launcher.
begin_forever()
{
	PATH=$tmp/agents:$PATH "$pvasrun" --mpi none --ram 16M --far-start ssh:node7=127.0.0.1 -n 2 "$task" forever >"$tmp/log" 2>&1 &
	launcher=$!
	disown
	for _ in $(seq 300); do
		[ "$(servers)" -gt 0 ] && [ "$(ps -o pid= --ppid $launcher | wc -l)" -ge 4 ] && break
		sleep 0.1
	done
	sleep 1
}

starts local 2 --far-start localhost
# With a connection to a server anybody reads the pages.
timeout -k 5 120 "$pvasrun" --mpi none --ram 16M --far-start localhost -n 1 sh -c 'ls -l /proc/$$/fd; echo listed' \
	>"$tmp/log" 2>&1
grep -q '^listed' "$tmp/log" && ! grep -qE 'socket:|eventpoll|eventfd' "$tmp/log"
ok start-no-sockets $?
starts ssh 2 --far-start node7=127.0.0.1
SLURM_JOB_ID=1 starts srun 2 --far-start node7=127.0.0.1
starts several 2 --far-start ssh:a=127.0.0.1,srun:greets=127.0.0.1 --far-copies 2
starts with-others 2 --far "file:$tmp" --far-start ssh:u@node7=127.0.0.1
"$memd" --make-key "$tmp/mine" && starts own-key 1 --far-key "$tmp/mine" --far-start ssh:node7=127.0.0.1
grep -q node7 "$SAW" && ! grep -qE '[0-9a-f]{64}' "$SAW"
ok start-key-is-no-argument $?

refuses_start option "'-oProxyCommand' is not the name" -oProxyCommand=x
refuses_start option-of-way 'is not the name' ssh:-x
# shellcheck disable=SC2016 # none is meant
refuses_start shell 'is not the name' 'a$(id)'
refuses_start space 'is not the name' 'a b'
refuses_start empty 'is not the name' 'a,,b'
refuses_start long 'is not the name' "$(printf 'a%.0s' {1..300})"
refuses_start many 'at most 16 hosts' "$(printf 'a,%.0s' {1..16})b"
refuses_start address 'not the number of an address' 'a=b;c'
refuses_start unknown 'no-such-host.invalid=ADDRESS' no-such-host.invalid
refuses_start login '(ssh ended with status 255: Permission denied (publickey).)' refuses=127.0.0.1
refuses_start chatty 'prints much' chatty=127.0.0.1
refuses_start port 'ssh ended with status 3' liar=127.0.0.1
refuses_start escapes 'status 4: a?\[2Jb)' escapes=127.0.0.1
refuses_start closes '(ssh has closed its output, and goes on)' closes=127.0.0.1
refuses_start foreign-address 'can.t listen' local=192.0.2.1
start=$SECONDS
PATH=$tmp/agents:$PATH "$pvasrun" --mpi none --timeout 1.5 --ram 16M --far-start mute=127.0.0.1 -n 1 "$task" fill >"$tmp/log" 2>&1
[ $? -eq 124 ] && [ $((SECONDS - start)) -lt 20 ] &&
	[ "$(cat "$tmp/log")" = 'pvasrun: --timeout 1.5: the time is over, and no server listens on mute' ]
ok start-timeout $?
refuses start-without-ram -- '--ram' --far-start a
[ -z "$(pgrep -f "$here/bin/agent")" ]
ok start-refused-leave-nothing $?

# No task has the servers' input, which would keep them.
begin_forever
kill -KILL "$launcher"
until_gone
ok start-pvasrun-killed $?
begin_forever
kill -TERM "$launcher"
until_gone
ok start-pvasrun-ended $?
# The process that watches is killed: the job goes on, and its end still ends the server.
begin_forever
kill -KILL "$(pgrep -P "$launcher" pvas-far-agent)"
sleep 1
[ "$(servers)" -eq 1 ] && kill -KILL "$launcher" && until_gone
ok start-agent-killed $?
begin_forever
kill -KILL "$(find_servers)"
timeout 30 tail --pid="$launcher" -f /dev/null
! kill -KILL "$launcher" 2>/dev/null && grep -q '127.0.0.1:.*: the job ends$' "$tmp/log"
ok start-server-killed $?
# It is stopped, as if its node hangs, with pages on their way: pvasrun's end waits for none.
begin_forever
stopped=$(find_servers)
kill -STOP "$stopped"
sleep 2
kill -TERM "$launcher"
timeout 30 tail --pid="$launcher" -f /dev/null
ended=$?
kill -KILL "$launcher" "$stopped" 2>/dev/null
[ $ended -eq 0 ] && until_gone
ok start-server-stopped $?
# Its host closes the output, and stays.
starts host-stays 1 --far-start leaves=127.0.0.1
for _ in $(seq 150); do [ -z "$(pgrep -f "$here/bin/agent")" ] && break; sleep 0.1; done
# One that doesn't end by itself
PATH=$tmp/agents:$PATH timeout 60 "$pvasrun" --mpi none --ram 16M --far-start deaf=127.0.0.1 -n 1 "$task" fill \
	>"$tmp/log" 2>&1
for _ in $(seq 150); do kill -0 "$(cat "$SAW.deaf")" 2>/dev/null || break; sleep 0.1; done
[ -s "$SAW.deaf" ] && ! kill -0 "$(cat "$SAW.deaf")" 2>/dev/null
ok start-deaf $?
