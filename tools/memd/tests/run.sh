#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests pvas-memd and its stores between two network namespaces. Needs root, for those.
#
# usage: run.sh [PART]...
#
# O		where things are built
# FUZZ		connections of each seed (30)

top=$(cd "$(dirname "$(readlink -f "$0")")/../../.." && pwd) || exit 1
O=$(readlink -f "${O:-$top/build}")
quiet=1 subject=memd
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
bin=$O/memd
export PVAS_FAR_PLUGINS=$O/libpvasfar
[ -x "$bin/pvas-memd" ] || skip_all "built without UCX"

here=pvm$$a there=pvm$$b at=10.77.0.2 port=7700 server=
cleanup()
{
	stop_server
	ip netns del $here 2>/dev/null
	ip netns del $there 2>/dev/null
	rm -rf "$T"
}

# UCX takes the devices that work when it starts.
carrier_of() { ip -n $here link show "$1" | grep -q LOWER_UP && ip -n $there link show "$1" | grep -q LOWER_UP; }

# Inside both namespaces there is nothing but each other.
make_link()
{
	ip netns add $here && ip netns add $there &&
		ip link add memd0 netns $here type veth peer name memd0 netns $there &&
		ip -n $here addr add 10.77.0.1/24 dev memd0 && ip -n $there addr add $at/24 dev memd0 &&
		ip -n $here link set memd0 up && ip -n $there link set memd0 up &&
		ip -n $here link set lo up && ip -n $there link set lo up && until_true 10 carrier_of memd0
}

# start_server OPTION...: its output is in $T/server
start_server()
{
	port=$((port + 1))
	# The lines of the last one must not be taken for those of this one.
	: >"$T/server"
	ip netns exec $there "$bin/pvas-memd" --listen $at:$port --verbose "$@" \
		>"$T/server" 2>"$T/server.err" </dev/null &
	server=$!
	until_true 10 grep -q '^pvas-memd: listening' "$T/server"
}

stop_server()
{
	[ -n "$server" ] || return 0
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=
}

begin_test() { stop_server; : >"$T/out"; }
end_server() { verdict "$(kill -0 "$server" 2>/dev/null; echo $?)" "the server is there still"; stop_server; }

# store KEY PAGE_SIZE PAGES STEP...
store() { ask_store "$@" >"$T/out" 2>&1 </dev/null; }
ask_store() { timeout 100 ip netns exec $here "$bin/t_store" $at:$port "$T/$1" "${@:2}"; }
# In the background; its pid is $client
begin_store()
{
	ip netns exec $here "$bin/t_store" $at:$port "$T/$1" "${@:2}" >"$T/client" 2>&1 </dev/null &
	client=$!
}
says() { grep -qE -- "$2" "$T/out"; verdict $? "$1"; }
one_line() { [ "$(wc -l <"$T/out")" = 1 ]; verdict $? "$1: one line"; }

ask() { kill -USR1 "$server" && sleep 0.2; }
# The last report has this line.
reports() { ask; grep -a 'reserved' "$T/server" | tail -n "${2:-3}" | grep -qE -- "$1"; }
resident() { awk '/^VmRSS/ {print $2}' "/proc/$server/status"; }
descriptors() { find "/proc/$server/fd" -mindepth 1 | wc -l; }
# Of a second, how much its threads ran: hundredths
busy() { local t; t=$(awk '{print $14 + $15}' "/proc/$server/stat"); sleep 2; awk -v t="$t" '{printf "%d", ($14 + $15 - t) / 2}' "/proc/$server/stat"; }
has_descriptors() { [ "$(descriptors)" -le "$1" ]; }
is_idle() { [ "$(busy)" -lt 20 ]; }

test_keys()
{
	local words='other users have rights'

	"$bin/pvas-memd" --make-key "$T/new" && [ "$(stat -c %a "$T/new")" = 600 ] &&
		grep -qE '^[0-9a-f]{64}$' "$T/new"
	verdict $? "a new key"
	! "$bin/pvas-memd" --make-key "$T/new" 2>"$T/out"
	verdict $? "is not made twice"
	chmod 640 "$T/new"
	! "$bin/pvas-memd" --key "$T/new" 2>"$T/out"
	says "one that the group may read is refused" "$words"
	chmod 600 "$T/new"
	ln -s new "$T/link"
	! "$bin/pvas-memd" --key "$T/link" 2>"$T/out"
	says "and a symbolic link" 'pvas-memd: key .*link'
	printf 'abc\n' >"$T/short" && chmod 600 "$T/short"
	! "$bin/pvas-memd" --key "$T/short" 2>"$T/out"
	says "and one too short" 'no key'
	! "$bin/pvas-memd" --key fd:99 2>"$T/out"
	verdict $? "and no descriptor"
	! "$bin/pvas-memd" 2>"$T/out"
	says "there must be one" 'no job.s key'
	chmod 666 "$T/a"
	store a 4096 1
	says "the store refuses one, too" "$words"
	chmod 600 "$T/a"
}

test_contents()
{
	start_server --key "$T/a" --ram 1G
	store a 4096 1000 put:0:1000:1 get:0:1000:1 put:7:1:2 get:7:1:2 get:8:992:1 get:0:7:1
	verdict $? "small pages"
	store a 65536 100 put:0:100:1 get:3:50:1 put:99:1:4 get:99:1:4
	verdict $? "pages of 64 KiB"
	store a 4194304 9 put:0:9:1 put:3:2:2 get:3:2:2 get:0:3:1 get:5:4:1
	verdict $? "pages larger than a message"
	store a 32768 64 churn:2
	verdict $? "many at a time"
	begin_store a 4096 100 put:0:100:1 discard:10:20 churn:2
	until_true 5 reports '0\.[0-9] MiB held; .*put' && until_true 5 reports 'job a: 1 stores, 0.4 MiB reserved'
	verdict $? "the report"
	wait $client
	verdict $? "and the store goes on"
	until_true 5 reports 'pvas-memd: 0.0 of 1024.0 MiB reserved, 0.0 MiB held; 1 jobs, 0 stores'
	verdict $? "nothing is left"
	end_server
	grep -aq 'job a: .* put' "$T/server"
	verdict $? "a report at the end"
}

test_plugin()
{
	start_server --key "$T/a" --ram 1G
	ip netns exec $here "$bin/t_plugin" $at:$port "$T/a" >"$T/out"
	verdict $? "libpvasfar loads its plugin"
	PVAS_FAR_KEY=$T/a ip netns exec $here "$bin/t_plugin" $at:$port "$T/b" >"$T/out"
	verdict $? "and reads the file PVAS_FAR_KEY"
	! PVAS_FAR_KEY=$T/none ip netns exec $here "$bin/t_plugin" $at:$port "$T/a" >"$T/out"
	says "if it can" 'key .*/none \(PVAS_FAR_KEY\): No such file'
	end_server
	# nor is it taken from beside the program, or where others may have put it
	mkdir -p "$T/app" "$T/app/pvas" "$T/libpvasfar" "$T/lib/pvas"
	cp "$bin/t_plugin" "$T/app"
	for place in app app/pvas libpvasfar lib/pvas; do
		cp "$O/libpvasfar/pvasfar-host.so" "$T/$place"
	done
	(cd "$T/app" && PVAS_FAR_PLUGINS='' ./t_plugin $at:$port "$T/a" >"$T/out")
	says "and says if there is none" 'no memory servers in this installation'
	one_line "without a plugin"
}

# Others may have put a file ucx.conf where the server or a program is started.
test_directory()
{
	mkdir "$T/shared"
	echo "UCX_LOG_FILE=$T/written" >"$T/shared/ucx.conf"
	(cd "$T/shared" && "$bin/pvas-memd" --version >/dev/null && "$bin/pvas-memd" --make-key k)
	verdict $? "the server starts"
	start_server --key "$T/a" --ram 1G
	(cd "$T/shared" && ip netns exec $here "$bin/t_plugin" $at:$port "$T/a" >"$T/out")
	verdict $? "a store opens"
	end_server
	[ ! -e "$T/written" ]
	verdict $? "neither obeys it"
	(cd "$T/shared" && "$bin/pvas-memd" --key none >"$T/out" 2>&1)
	says "paths begin there" 'key none: No such file'
	(cd "$T/shared" && timeout 2 "$bin/pvas-memd" --listen 127.0.0.1:0 --key k --ram 1M >"$T/out" 2>&1)
	says "also those of keys" 'listening at 127\.0\.0\.1 port'
}

# UCX uses each network that both nodes have: a connection that waits for its first long message
# is no stranger's.
test_two_networks()
{
	ip link add memd1 netns $here type veth peer name memd1 netns $there &&
		ip -n $here addr add 10.78.0.1/24 dev memd1 && ip -n $there addr add 10.78.0.2/24 dev memd1 &&
		ip -n $here link set memd1 up && ip -n $there link set memd1 up && until_true 10 carrier_of memd1
	verdict $? "a second network"
	! ip netns exec $there "$bin/pvas-memd" --key "$T/a" --listen 7700 2>"$T/out"
	says "a server must know which" 'several networks \(name an address'
	start_server --key "$T/a" --ram 1G
	[ "$(ip netns exec $there ss -tlnH | grep -vc "^LISTEN.* $at:")" = 0 ]
	verdict $? "and listens nowhere else"
	(sleep 8; echo) | ask_store a 65536 64 put:0:1:1 wait put:0:64:2 get:0:64:2 >"$T/out" 2>&1
	verdict $? "a store that says nothing for a while goes on"
	end_server
	ip -n $here link del memd1
}

test_wrong_key()
{
	start_server --key "$T/a" --ram 1G
	store b 4096 10
	says "is refused" "server $at:$port: it doesn't know this job's key"
	one_line "a wrong key"
	until_true 5 grep -q 'refused, no job has its key$' "$T/server.err" && [ "$(grep -c . "$T/server.err")" = 1 ]
	verdict $? "the server says it in one line"
	for _ in {1..20}; do store b 4096 10; done
	[ "$(grep -c . "$T/server.err")" -le 2 ]
	verdict $? "and doesn't repeat it"
	end_server
}

# Nobody reads what the server says, and the pipe is full.
test_unread()
{
	rm -f "$T/server.err"
	mkfifo "$T/server.err"
	exec 8<>"$T/server.err"
	dd if=/dev/zero of="$T/server.err" bs=4096 oflag=nonblock 2>/dev/null
	start_server --key "$T/a" --ram 1G 8>&-
	store b 4096 10
	says "a stranger is refused" "doesn't know this job's key"
	store a 4096 10 put:0:10:1 get:0:10:1
	verdict $? "and a job is served"
	exec 8>&-
	end_server
	rm -f "$T/server.err"
}

test_limits()
{
	start_server --key "$T/a" --key "$T/b" --ram 100M --job-ram 60M
	store a 1048576 61
	says "more than a job may have" 'it has 60 MiB free, 61 MiB are needed'
	begin_store a 1048576 60 churn:5
	until_true 5 reports 'job a: 1 stores'
	store a 4096 1
	says "and no more later" 'it has 0 MiB free, 1 MiB are needed'
	store b 1048576 41
	says "more than there is" 'it has 40 MiB free, 41 MiB are needed'
	one_line "no room"
	store b 1048576 40 put:0:40:1 get:0:40:1
	verdict $? "the rest is the other's"
	[ "$(resident)" -lt 130000 ]
	verdict $? "resident memory: $(resident) KiB"
	wait $client
	until_true 5 reports 'pvas-memd: 0.0 of 100.0 MiB' && store b 1048576 60 put:0:60:1
	verdict $? "room that comes back"
	end_server
}

test_isolation()
{
	start_server --key "$T/a" --key "$T/b" --ram 1G
	begin_store a 65536 200 put:0:200:1 churn:4
	until_true 5 reports 'job a: 1 stores, 12.5 MiB reserved, 12.5'
	store b 65536 200 zero:0:200 put:0:200:9 get:0:200:9
	verdict $? "another job has none of the pages"
	store a 65536 200 zero:0:200
	verdict $? "nor has another store of the same job"
	wait $client
	verdict $? "and changes none"
	for _ in 1 2 3; do store b 65536 200 zero:0:200; verdict $? "pages are wiped after a store's end"; done
	store b 4096 500 put:0:500:3 discard:100:200 zero:100:200 get:0:100:3 get:300:200:3
	verdict $? "and after they are discarded"
	end_server
}

test_versions()
{
	start_server --key "$T/a" --ram 1G
	ip netns exec $here "$bin/t_future" $at:$port "$T/a" 4096 10 >"$T/out"
	says "another version" 'it has version 1 of the protocol, this program 2'
	one_line "another version"
	end_server
}

test_no_server()
{
	local began=$SECONDS

	store a 4096 10
	says "no server" "server $at:$port: no connection \(is pvas-memd running there\?\)"
	one_line "no server"
	[ $((SECONDS - began)) -lt 10 ]
	verdict $? "said soon"
	ip netns exec $here "$bin/t_store" nowhere 	"$T/a" 4096 10 >"$T/out"
	says "no port" 'not HOST:PORT'
}

test_kill_server()
{
	local page

	for page in 4096 65536 1048576; do
		start_server --key "$T/a" --ram 1G
		begin_store a $page $((33554432 / page)) churn:30
		sleep 1
		kill -9 "$server"
		wait "$server" 2>/dev/null
		wait $client
		[ $? = 1 ]
		verdict $? "the store ends with an error, pages of $page"
		cp "$T/client" "$T/out"
		says "which names the server" "^server $at:$port: the connection was lost"
		one_line "a killed server"
	done
	server=
}

test_kill_client()
{
	local page

	start_server --key "$T/a" --ram 1G
	for page in 4096 65536 1048576; do
		begin_store a $page $((33554432 / page)) churn:30
		sleep 1
		kill -9 $client
		wait $client 2>/dev/null
		until_true 10 reports 'pvas-memd: 0.0 of 1024.0 MiB reserved, 0.0'
		verdict $? "its memory is freed, pages of $page"
	done
	store a 65536 500 zero:0:500
	verdict $? "and wiped"
	end_server
}

# The server finds a broken connection before it has read what came by it; the other job goes on.
test_behind()
{
	local dying other

	start_server --key "$T/a" --key "$T/b" --ram 1G
	begin_store b 65536 500 churn:10
	other=$client
	for _ in {1..12}; do
		dying=()
		for _ in 1 2 3; do
			begin_store a 16384 2000 churn:30
			dying+=("$client")
		done
		sleep 0.4
		kill -STOP "$server"
		sleep 0.05
		kill -9 "${dying[@]}"
		wait "${dying[@]}" 2>/dev/null
		kill -CONT "$server"
		kill -0 $other 2>/dev/null || break
	done
	kill -0 "$server" && wait $other
	verdict $? "another job goes on, though the server is behind when jobs are killed"
	end_server
}

test_link_cut()
{
	start_server --key "$T/a" --ram 1G
	begin_store a 65536 100 churn:20
	sleep 1
	ip -n $here link set memd0 down
	sleep 10
	ip -n $here link set memd0 up
	wait $client
	verdict $? "a link cut for 10 s"
	cp "$T/client" "$T/out"
	says "the store waits" 'longest wait (9\.[5-9]|[1-9][0-9])'
	end_server
}

# A node that is gone without a word; the silence that is allowed is shortened here.
test_lost_node()
{
	start_server --key "$T/a" --ram 1G --silence 3
	ip netns exec $here "$bin/t_store" $at:$port "$T/a" 4096 100 put:0:100:1 wait < <(sleep 60) \
		>"$T/client" 2>&1 &
	client=$!
	until_true 5 reports 'job a: 1 stores'
	ip -n $here link set memd0 down
	kill -9 $client
	until_true 20 reports 'pvas-memd: 0.0 of 1024.0 MiB reserved, 0.0'
	verdict $? "its memory is freed"
	ip -n $here link set memd0 up
	wait $client 2>/dev/null
	end_server
}

# Beside keys there are files that are none.
test_keys_folder()
{
	local name

	mkdir -m 700 "$T/mixed" && mkdir "$T/mixed/folder" && cp -p "$T/a" "$T/mixed/first"
	cp "$T/b" "$T/mixed/readable" && chmod 644 "$T/mixed/readable"
	echo 'The keys of all jobs' >"$T/mixed/README" && chmod 600 "$T/mixed/README"
	ln -s ../b "$T/mixed/link"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$T/mixed/socket"
	start_server --key "$T/mixed" --ram 1G
	verdict $? "the server starts"
	cp "$T/server.err" "$T/out"
	for name in folder readable README link socket; do
		says "$name is left out" "pvas-memd: key .*/mixed/$name: "
	done
	store a 4096 10 put:0:10:1 get:0:10:1
	verdict $? "the key is served"
	kill -HUP "$server"
	store a 4096 10 put:0:10:1 get:0:10:1
	verdict $? "also after it was read again"
	store b 4096 10
	says "the others are not" "doesn't know"
	end_server
}

test_keys_change()
{
	mkdir -m 700 "$T/keys" && cp -p "$T/a" "$T/keys/first"
	start_server --key "$T/keys" --ram 1G
	begin_store a 4096 1000 churn:20
	until_true 5 reports 'job first: 1 stores'
	store b 4096 10
	says "a key not yet there" "doesn't know"
	cp -p "$T/b" "$T/keys/second"
	rm "$T/keys/first"
	kill -HUP "$server"
	wait $client
	[ $? = 1 ]
	verdict $? "a job ends with its key"
	store b 4096 10 put:0:10:1 get:0:10:1
	verdict $? "a new one is served"
	store a 4096 10
	says "the old one is not" "doesn't know"
	end_server
}

test_until_eof()
{
	port=$((port + 1))
	(cat "$T/a"; sleep 1) | ip netns exec $there timeout 20 "$bin/pvas-memd" --listen $at:$port --key - \
		--until-eof --ram 1M >"$T/out" 2>&1
	verdict $? "it ends with its input"
	says "it has listened" listening
}

# Hostile jobs, and strangers; beside them a store whose pages must stay as they are.
test_fuzz()
{
	local seed before

	start_server --key "$T/a" --key "$T/b" --ram 1G
	begin_store b 65536 16 churn:$((20 * ${SLOW:-1}))
	timeout 60 ip netns exec $here "$bin/t_fuzz" $at:$port "$T/a" 99 5 >"$T/out" 2>&1
	before=$(resident)
	for seed in 1 2 3; do
		timeout 100 ip netns exec $here "$bin/t_fuzz" $at:$port "$T/a" $seed "${FUZZ:-30}" >"$T/out" 2>&1
		verdict $? "seed $seed"
	done
	timeout 100 ip netns exec $here "$bin/t_fuzz" $at:$port - 1 "${FUZZ:-30}" >"$T/out" 2>&1
	verdict $? "strangers"
	[ $(($(resident) - before)) -lt 65536 ]
	verdict $? "the server's memory: $before KiB, then $(resident)"
	[ "$(grep -c . "$T/server.err")" -le $((2 + SECONDS / 8)) ]
	verdict $? "few lines"
	wait $client
	verdict $? "the other job's pages"
	until_true 10 reports 'pvas-memd: 0.0 of 1024.0 MiB reserved, 0.0'
	verdict $? "nothing is left"
	end_server
}

# Bytes that are no UCX at all, connections that say nothing, to all its ports
test_noise()
{
	local ports before files

	start_server --key "$T/a" --ram 1G
	files=$(descriptors)
	begin_store a 65536 16 churn:18
	(sleep 17; echo) | ask_store a 4096 10 put:0:10:1 wait get:0:10:1 &
	quiet_store=$!
	sleep 1
	before=$(resident)
	ports=$(ip netns exec $there ss -ltnp | awk -v p="pid=$server," -v at="$at:" '$0 ~ p && sub(at, "", $4) {print $4}')
	ip netns exec $here timeout 60 python3 "$top/tools/memd/tests/noise.py" $at $ports >"$T/out" 2>&1
	verdict $? "noise is sent to ports" "$ports"
	[ $(($(resident) - before)) -lt 65536 ]
	verdict $? "the server's memory: $before KiB, then $(resident)"
	wait $client
	status=$?
	cp "$T/client" "$T/out"
	verdict $status "the store goes on"
	wait $quiet_store
	verdict $? "and one that had nothing to do"
	until_true 10 has_descriptors "$files"
	verdict $? "its descriptors: $files, then $(descriptors)"
	until_true 10 is_idle
	verdict $? "it sleeps again"
	store a 4096 10 put:0:10:1 get:0:10:1
	verdict $? "a new one is served"
	end_server
}

# The server gets the numbers of their descriptors for its own connections to a job.
test_closed()
{
	local bad=0

	for _ in {1..3}; do
		start_server --key "$T/a" --ram 1G
		ip netns exec $there timeout 20 python3 -c 'import socket, sys, time
s = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for i in range(20)]
time.sleep(0.5)
for c in s:
	c.close()
time.sleep(1.5)' $at $port
		ip netns exec $there timeout 30 "$bin/t_store" $at:$port "$T/a" 65536 2000 put:0:2000:1 get:0:2000:1 \
			>"$T/out" 2>&1 </dev/null || bad=$((bad + 1))
		stop_server
	done
	verdict $bad "jobs after connections that ended without a word: $bad of 3 failed"
}

if ! make_link 2>"$T/err"; then
	cleanup
	skip_all "no network namespaces here"
fi
trap cleanup EXIT

# Those that wait most of the time run beside the others, each between namespaces of its own.
waiting=(link_cut noise fuzz closed behind) logs=()
if [ $# -eq 0 ]; then
	for part in "${waiting[@]}"; do
		"$0" test_$part >"$T/$part.log" 2>&1 &
		logs+=("$T/$part.log")
		unset -f "test_$part"
	done
fi
for key in a b; do "$bin/pvas-memd" --make-key "$T/$key" || exit 1; done
run_tests "$@"
stop_server
wait
for log in "${logs[@]}"; do
	grep -vE '^1\.\.|passed, ' "$log"
	[[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]] || { fail "$log: no sum"; continue; }
	passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
done
sum_up
