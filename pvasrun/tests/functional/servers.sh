# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Part of functional.sh: file servers that answer at first, and not later.

# A server that answers $1 times; the rest is pvasrun's command line but for the programs. The first
# rank has nothing to do with it: what hangs in a call of such a server can't be killed.
silent_after()
{
	local n=$1 began=$SECONDS
	shift

	mkdir -p "server.$n"
	timeout -s KILL 50 "$FALLS_SILENT" "server.$n" /bin/true lookup "$n" \
		env --default-signal=TERM "$@" --mpi none -n 1 sleep 100 : -n 1 "server.$n/prog" >"out.$n" 2>"err.$n"
	echo "$n $? $((SECONDS - began))" >"ended.$n"
}

# With exit status $1
all_in_time()
{
	local n status took

	while read -r n status took; do
		check "after $n answers: status $status, not $1" [ "$status" -eq "$1" ]
		check "after $n answers: $took s" [ "$took" -le $((15 * SLOW)) ]
	done < <(cat ended.*)
	rm -f ended.*
}

# A program's server falls silent, be it while the program is looked for or while it is started.
test_silent_program_server()
{
	local n total

	[ -n "$FALLS_SILENT" ] && mkdir -p server || return
	total=$("$FALLS_SILENT" server /bin/true lookup -1 $PVASRUN --mpi none -n 1 true : -n 1 server/prog) || return 0
	check "it was asked $total times" [ "$total" -ge 4 ]
	for n in $(seq 0 $((total - 1))); do
		silent_after "$n" $PVASRUN --timeout 1 &
	done
	wait
	all_in_time 124
	check "a start that hangs is not named" grep -q 'rank 1 .* has not started yet' err.*
	for n in 0 $((total - 3)) $((total - 1)); do
		silent_after "$n" sh -c '"$@" & sleep 1; kill $!; wait $!' sh $PVASRUN &
	done
	wait
	all_in_time 143
}

# $1: what is said of the server. The rest: a job to which a server matters that never answers.
unasked()
{
	local whose=$1 began=$SECONDS
	shift

	timeout -s KILL 50 "$FALLS_SILENT" server /bin/true lookup 0 "$@" >out 2>err; status=$?
	status_is 124; one_line "--timeout 1: the time is over, and $whose file server has not answered"
	check "$whose: $((SECONDS - began)) s" [ $((SECONDS - began)) -le $((10 * SLOW)) ]
}

# Servers of other files that pvasrun itself needs
test_silent_other_servers()
{
	local far='--ram 64M --far-size 64M --mpi none'

	[ -n "$FALLS_SILENT" ] && mkdir -p server || return
	"$FALLS_SILENT" server /bin/true lookup 0 true || return 0
	# shellcheck disable=SC2086 # several words
	unasked "--far-key's" $PVASRUN --timeout 1 $far --far 127.0.0.1:7 --far-key server/prog -n 1 true
	# shellcheck disable=SC2086
	unasked "--far's" $PVASRUN --timeout 1 $far --far zip,file:server/prog -n 1 true
	# shellcheck disable=SC2086
	unasked "PVAS_FAR_PLUGINS'" env PVAS_FAR_PLUGINS="$PWD/server" $PVASRUN --timeout 1 $far --far 127.0.0.1:7 -n 1 true
	unasked "TMPDIR's" env TMPDIR="$PWD/server/prog" $PVASRUN --timeout 1 --mpi pmix -n 1 true
}

# A FIFO's file system is asked nothing once it is open.
test_silent_fifo()
{
	[ -n "$FALLS_SILENT" ] && mkdir -p server && mkfifo fifo || return
	"$FALLS_SILENT" server fifo getattr 0 true || return 0
	# Both have opened it, and no program asks about it, before it falls silent.
	timeout -s KILL 50 "$FALLS_SILENT" server fifo getattr silent \
		sh -c '(exec <server/prog; read -r line; echo "$line") & exec 5>server/prog; touch silent
			"$@" >&5; s=$?; exec 5>&-; wait; exit $s' sh \
		$PVASRUN --timeout 5 --mpi none --pty always -n 1 echo arrives >out 2>err; status=$?
	status_is 0; out_is arrives
}
