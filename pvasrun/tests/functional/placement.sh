# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Placement, limits, orphans, and terminals. Sourced by functional.sh.

# shellcheck disable=SC2016,SC2086,SC2034

# ---- placement and --map ----

test_map_and_verbose()
{
	pvasrun --map -n 2 true : -n 1 echo x
	status_is 0
	check "map has a head and 3 rows" [ "$(wc -l <err)" -eq 4 ]
	check "rows" [ "$(grep -cE '^ +[0-2] +[0-9]+ +[0-9]+  [0-9a-f]{12}-[0-9a-f]{12}  [^ ]+ +/[^ ]+/(true|echo)$' err)" -eq 3 ]
	pvasrun -v -n 1 --bind-to none true
	check "verbose tells the backend" grep -qE '^pvasrun: backend (kernel|user), space [0-9]+, partitions of 8T \(1 of [0-9]+ used\)$' err
	check "verbose tells the binding" grep -q '^pvasrun: tasks are not bound$' err
	pvasrun -v --partition-size 32G -n 1 true
	check "partition size" grep -q 'partitions of 32G' err
}

# A task that execs stays one, and keeps rank, pid and what a wrapper has set.
test_wrappers()
{
	local maps='^1[0-9a-f]{9}-.* /[^ ]*/grep$' with

	[ -z "$plain" ] || return 0	# no partitions
	printf '#!/bin/sh\nexec "$@"\n' >wrapper
	chmod +x wrapper
	for with in 'env A=1' 'nice -n 2' 'taskset 1' "$T/wrapper nice"; do
		pvasrun -n 1 --partition-size 64G $with grep -cE "$maps" /proc/self/maps
		status_is 0
		check "$with: in the space" [ "$(cat out)" -gt 0 ]
	done
	pvasrun -n 1 sh -c 'echo $$ $PVAS_RANK; exec env sh -c "echo \$\$ \$PVAS_RANK"'
	check "pid and rank stay" [ "$(uniq out | wc -l)" -eq 1 ]
	# Relative to what these tests run with
	pvasrun -n 1 nice -n 3 nice
	out_is "$(nice -n 3 nice)"
	pvasrun -n 1 --partition-size 64G env PVAS_EXEC=leave grep -cE "$maps" /proc/self/maps
	out_is 0
}

# One that can't be a task leaves, and --verbose says which and why.
test_left()
{
	[ -z "$plain" ] || return 0
	printf 'int sleep(int); int main(void) { sleep(1); return 0; }' |
		cc -x c -no-pie -o nopie - || return
	pvasrun -n 2 env "$T/nopie"
	status_is 0; silent
	pvasrun -v -n 2 env "$T/nopie"
	status_is 0
	check "both are named" [ "$(grep -cE "^pvasrun: rank [01] \(pid [0-9]+\) is no task any more: $T/nopie runs outside the space: not a position-independent" err)" -eq 2 ]
	pvasrun -v -n 2 env sleep 1
	check "none is" eval '! grep "no task" err'
	# This limit would be compared with the memory of all tasks.
	pvasrun --backend user -v -n 1 sh -c 'ulimit -v 1000000000; exec sleep 1'
	check "limited one is named" grep -qE '^pvasrun: rank 0 .* is no task any more: .*sleep runs outside the space \(see PVAS_EXEC in pvas\(7\)\)$' err
}

# A file that can't be opened in time, as on another user's server, delays nothing.
test_left_file_hangs()
{
	local begin=$SECONDS

	[ -n "$plain" ] || return 0
	FAKEPVAS_LEFT=1 pvasrun -v --timeout 2 -n 2 sleep $((60 * SLOW))
	status_is 124
	check "in time" [ $((SECONDS - begin)) -lt $((20 * SLOW)) ]
	check "both are named" [ "$(grep -cE "^pvasrun: rank [01] .* is no task any more: .*sleep runs outside the space \(see PVAS_EXEC in pvas\(7\)\)$" err)" -eq 2 ]
}

# The addresses of program, heap, libraries and stack of the task in partition 1
places() { "$@" $PVASRUN --partition-size 64G -n 1 $ASLR cat /proc/self/maps 2>&1 | grep -oE '^1[0-9a-f]{9}-[0-9a-f]*'; }

test_no_aslr()
{
	local fixed

	[ -z "$plain" ] || return 0	# no partitions
	fixed=$(ASLR=--no-aslr places env)
	check "places are printed" [ "$(echo "$fixed" | wc -l)" -gt 4 ]
	check "--no-aslr: the same in each run" [ "$fixed" = "$(ASLR=--no-aslr places env)" ]
	check "setarch -R: the same" [ "$fixed" = "$(places setarch -R)" ]
	[ "$(cat /proc/sys/kernel/randomize_va_space)" != 0 ] || return 0
	check "else others" [ "$fixed" != "$(places env)" ]
	check "and others in each run" [ "$(places env)" != "$(places env)" ]
}

test_binding()
{
	local cpus
	cpus=$(pvasrun -n 1 --bind-to none grep Cpus_allowed_list /proc/self/status; cut -f2 out)
	check "none: as before" [ "$cpus" = "$(grep Cpus_allowed_list /proc/self/status | cut -f2)" ]
	pvasrun -n 1 --bind-to numa grep Cpus_allowed_list /proc/self/status
	status_is 0
	pvasrun -n 40 --bind-to core grep -h Cpus_allowed_list /proc/self/status
	check "core: all cores are used" [ "$(sort -u out | wc -l)" -ge 1 ]
	check "core: one core each" [ "$(sort out | uniq -c | awk '{print $1}' | sort -n | tail -1)" -le 40 ]
	if [ "$(nproc)" -gt 1 ]; then
		pvasrun -n 2 grep -h Cpus_allowed_list /proc/self/status
		check "default: two tasks, two places" [ "$(sort -u out | wc -l)" -eq 2 ]
		taskset -c 0 $PVASRUN -n 1 --bind-to core grep -h Cpus_allowed_list /proc/self/status >out 2>err
		out_is $'Cpus_allowed_list:\t0'
	fi
	# With the user backend, what pvasrun loads is in the space: nothing that tasks don't need
	LD_DEBUG=files LD_DEBUG_OUTPUT=$T/loaded pvasrun -n 1 --bind-to core --mem-bind local true
	status_is 0
	check "libc is loaded, and no other library" [ "$(grep -hoE 'calling init: .*' loaded.* |
		sed 's,.*/,,' | grep -vxE 'ld-linux-x86-64\.so\.2|lib[cm]\.so\.6' | sort -u)" = "" ]
	check "libc is" grep -q 'calling init: .*/libc.so.6' loaded.*
	pvasrun -n 2 --mem-bind local true; status_is 0; silent
	pvasrun -n 2 --mem-bind interleave true; status_is 0; silent
	if [ -e /sys/devices/system/node/node1 ]; then
		pvasrun -n 1 --mem-bind interleave grep -c interleave: /proc/self/numa_maps
		status_is 0
		pvasrun -n 1 --mem-bind local grep -c local /proc/self/numa_maps
		status_is 0
		pvasrun -n 2 --bind-to numa grep -h Cpus_allowed_list /proc/self/status
		check "numa: two tasks, two nodes" [ "$(sort -u out | wc -l)" -eq 2 ]
	else
		pvasrun -v -n 1 --mem-bind local true
		check "one node is noted" grep -q 'one memory node: --mem-bind changes nothing' err
	fi
}

# ---- many tasks, and limits ----

test_many()
{
	SECONDS=0
	pvasrun -n 240 sh -c 'echo $PVAS_RANK'
	status_is 0; silent
	check "each rank once" [ "$(sort -n out | tr '\n' ' ')" = "$(seq 0 239 | tr '\n' ' ')" ]
	check "in time" [ $SECONDS -le $((10 * SLOW)) ]
	pvasrun --tag-output -n 240 sh -c 'echo $PVAS_RANK'
	check "each tagged" [ "$(grep -cE '^\[([0-9]+)\] \1$' out)" -eq 240 ]
	pvasrun -n 240 sh -c 'exit $((PVAS_RANK == 120))'
	status_is 1; one_line 'rank 120 \(pid [0-9]+, sh\) exited with status 1'
}

test_nothing_left()
{
	start -n 2 sh -c '[ $PVAS_RANK = 1 ] && exit 0;'"$WAIT"
	wait_files pid 1
	sleep 0.3
	check "no zombie while others run" until_true 5 eval "! ps -o stat= --ppid $job | grep -q Z"
	kill -TERM $job
	finish
	all_gone
	[ -r /proc/pvas ] && check "no space left" [ "$(grep -c . /proc/pvas)" -le 1 ]
}

test_limits()
{
	local kib

	(ulimit -n 100; exec $PVASRUN --backend kernel --tag-output -n 240 true) >out 2>err; status=$?
	status_is 1; one_line 'the limit of 100 open files is too low: 784 are needed with --tag-output \(.*ulimit -n\)'
	(ulimit -S -n 100; exec $PVASRUN --tag-output -n 60 sh -c 'ulimit -S -n') >out 2>err; status=$?
	status_is 0
	check "tasks have the old limit" [ "$(grep -c '\] 100$' out)" -eq 60 ]
	# their mapping calls are pvasrun's time
	(ulimit -S -t 100; exec $PVASRUN -n 2 sh -c 'ulimit -S -t; [ $PVAS_RANK = 0 ] || grep "cpu time" /proc/$PPID/limits') >out 2>err
	check "tasks have the old limit of time, pvasrun has not" eval '[ "$(grep -c "^100$" out)" -eq 2 ] && ! grep "time  *100 " out'
	# room for files that are open until execve(), and for PMI_FD
	(ulimit -S -n 20; exec $PVASRUN -n 2 sh -c 'ulimit -S -n') >out 2>err; status=$?
	status_is 0; silent; out_is $'64\n64'
	(ulimit -n 100; exec $PVASRUN --backend user -n 240 true) >out 2>err; status=$?
	status_is 1; one_line 'the limit of 100 open files is too low: 544 are needed \(.*ulimit -n\)'
	if [ -n "$plain" ] || [ -r /proc/pvas ]; then
		(ulimit -n 100; exec $PVASRUN --backend kernel --mpi none --no-pty -n 240 true) >out 2>err; status=$?
		status_is 0; silent
	fi
	for kib in 40 63; do
		(ulimit -s $kib; exec env -i "PATH=$PATH" $PVASRUN -n 1 true) >out 2>err; status=$?
		status_is 1; one_line "the stack limit of $kib KiB is too low: 64 are needed \\(ulimit -s\\)"
	done
	(ulimit -S -s 64; exec $PVASRUN -n 1 sh -c 'ulimit -s') >out 2>err; status=$?
	status_is 0; silent; out_is 64
	[ "$(id -u)" = 0 ] && [ -n "$plain" ] || return
	cp "$PVASRUN" "$T/pvasrun-copy" && chmod 755 "$T/pvasrun-copy"
	setpriv --reuid 65534 --clear-groups prlimit --nproc=100:100 "$T/pvasrun-copy" -n 240 true >out 2>err
	status=$?
	status_is 1; one_line 'the limit of 100 processes is too low for 240 more tasks \(.*ulimit -u\)'
}

# Errors name limits that count for all tasks, and places where no space can be created.
test_reasons()
{
	[ -z "$plain" ] || return
	local opt
	for opt in -d -v; do
		(ulimit $opt 60000; exec $PVASRUN --partition-size 64G --mpi none -n 2 true) >out 2>err; status=$?
		check "ulimit $opt is named" grep -qE "^pvasrun: .*ulimit $opt 60000 counts for all tasks together" err
		status_is 1
	done
	if user_backend; then
		pvasrun -n 2 $PVASRUN -n 2 true
		status_is 1
		check "no space in a task" grep -q 'runs inside a job of another one with the user backend.*(start it outside' err
		pvasrun -n 1 sh -c "$PVASRUN -n 2 true; :"
		status_is 0
		check "no space below a task" grep -q 'runs inside a job of another one with the user backend.*(start it outside' err
		# what systemd's MemoryDenyWriteExecute= asks for: PR_SET_MDWE, if the kernel has it
		perl -e 'exit(syscall(157, 65, 1, 0, 0, 0) != 0)' || return
		perl -e 'syscall(157, 65, 1, 0, 0, 0); exec @ARGV' $PVASRUN -n 1 true >out 2>err; status=$?
		[ $status -eq 0 ] || check "W^X is named" grep -q 'MemoryDenyWriteExecute' err
	else
		pvasrun -n 2 $PVASRUN -n 2 sh -c 'echo $PVAS_SPACE'
		status_is 0; silent
		check "two jobs in two tasks" [ "$(sort out | uniq -c | awk '{print $1}' | paste -sd' ')" = "2 2" ]
	fi
}

# ---- orphans ----

# A daemon, with its own session and without its parent. It reports its pid, SIGTERM, and that
# it could map memory at its end.
DAEMON='perl -MPOSIX -e "fork and exit; setsid; \$SIG{TERM} = sub { open F, q(>), qq($T/termed); exit };
	open F, q(>), qq($T/p.\$ENV{PVAS_RANK}); print F qq(\$\$\\n); close F;
	rename qq($T/p.\$ENV{PVAS_RANK}), qq($T/pid.\$ENV{PVAS_RANK}); sleep \$ARGV[0];
	\$x = q(a) x 50000000; open F, q(>), qq($T/mapped)"'
DAEMON_UP='until [ -e $T/pid.$PVAS_RANK ]; do sleep 0.05; done'
user_backend() { $PVASRUN -v -n 1 true 2>&1 | grep -q 'backend user'; }

test_orphans_warn()
{
	pvasrun --bind-to none -n 2 sh -c "$DAEMON 100; $DAEMON_UP"
	status_is 0
	if user_backend; then
		one_line 'perl \(pid [0-9]+\) and 1 more, left running by a task, can map no memory .* --orphans\)'
	else
		silent
	fi
	check "they live on" xargs kill < <(cat pid.*)
	rm -f pid.*
	pvasrun -q -n 1 sh -c "$DAEMON 100; $DAEMON_UP"
	status_is 0; silent; kill "$(cat pid.0)"
	# none is reported that ends at once
	pvasrun -n 2 sh -c 'sleep 0.05 & exit 0'
	status_is 0; silent
}

# A child that fork() makes after the signal has come for its parent, which blocks it meanwhile
test_orphans_missed()
{
	user_backend || return
	pvasrun -n 2 perl -MPOSIX -e '$all = POSIX::SigSet->new; $all->fillset; $term = POSIX::SigSet->new;
		sigprocmask(SIG_BLOCK, $all); open P, ">$ENV{T}/p.$ENV{PVAS_RANK}"; print P $$; close P;
		rename "$ENV{T}/p.$ENV{PVAS_RANK}", "$ENV{T}/pid.$ENV{PVAS_RANK}";
		if ($ENV{PVAS_RANK}) { select undef, undef, undef, 0.05 until -e "$ENV{T}/pid.0"; exit 4 }
		do { select undef, undef, undef, 0.05; sigpending($term) } until $term->ismember(SIGTERM);
		$child = fork; sigprocmask(SIG_UNBLOCK, $all); sleep 100'
	status_is 4; one_line 'rank 1 \(pid [0-9]+, perl\) exited with status 4'
}

# One that has got it, and restores the default to be ended at once by a second one, gets no second.
# pvasrun looks when all tasks have ended.
test_orphans_save_state()
{
	user_backend || return
	# shellcheck disable=SC2016 # for perl and the tasks
	pvasrun -n 1 sh -c 'perl -e "open S, q(>), qq($T/saved);
			\$SIG{TERM} = sub { \$SIG{TERM} = q(DEFAULT); \$told = 1 };
			open F, q(>), qq($T/ready); close F; select undef, undef, undef, 0.05 until \$told;
			open F, q(>), qq($T/saving); close F; select undef, undef, undef, 0.5; syswrite S, q(x)"; :' \
		: -n 1 sh -c 'trap "until [ -e $T/saving ]; do sleep 0.05; done; exit 0" TERM
			touch $T/trapped; while :; do sleep 0.05; done' \
		: -n 1 sh -c 'until [ -e $T/ready ] && [ -e $T/trapped ]; do sleep 0.05; done; sleep 0.1; exit 4'
	status_is 4
	check "the state is not saved" until_true 10 [ -s saved ]
}

# The name of a process is printed without control characters.
test_orphans_name()
{
	user_backend || return
	pvasrun -n 1 sh -c 'perl -e "open N, q(>), q(/proc/self/comm); print N qq(a\\e[31m\\x9bb); close N;
		open F, q(>), qq($T/p); print F \$\$; close F; rename qq($T/p), qq($T/pid.0); sleep 100" &
		until [ -e $T/pid.0 ]; do sleep 0.05; done'
	status_is 0
	one_line 'a\?\[31m\?b \(pid [0-9]+\), left running by a task, .*'
	kill "$(cat pid.0)"
}

test_orphans_wait()
{
	start --orphans wait -n 2 sh -c "$DAEMON 2; $DAEMON_UP"
	wait_files pid 2
	check "they are there" xargs kill -0 < <(cat pid.*)
	finish; status_is 0; silent; all_gone
	check "by themselves" [ ! -e termed ]
	check "and could map memory" [ -e mapped ]
	rm -f pid.*
	start --orphans wait -n 1 sh -c "$DAEMON 100; $DAEMON_UP"
	wait_files pid 1
	sleep 0.5
	kill -TERM $job
	finish; status_is 143; silent; all_gone
	check "they got the signal" [ -e termed ]
	rm -f pid.* termed
	pvasrun --orphans wait --timeout $SLOW -n 1 sh -c "$DAEMON 100; $DAEMON_UP"
	status_is 124; all_gone
	one_line "--timeout $SLOW: the time is over, ending what tasks left running"
	rm -f pid.* termed
	pvasrun --orphans wait -n 1 sh -c "$DAEMON 100; $DAEMON_UP; exit 3"
	status_is 3; all_gone
	check "a failed job waits for none" [ -e termed ]
}

test_orphans_kill()
{
	# children from before the execve() of pvasrun do not count
	(sleep 100 & echo $! >$T/mine; exec $PVASRUN --orphans kill -n 2 sh -c "$DAEMON 100; $DAEMON_UP") >out 2>err
	status=$?
	status_is 0; silent; all_gone
	check "asked first" [ -e termed ]
	check "no others" kill "$(cat mine)"
	# processes that ignore SIGTERM, and their children
	rm -f pid.*
	pvasrun --orphans kill -n 1 sh -c 'sh -c "trap \"\" TERM; echo \$\$ >$T/pid.0; sh -c \"echo \\\$\\\$ >$T/pid.1; sleep 99; :\"; :" &
		until [ -e $T/pid.1 ]; do sleep 0.05; done'
	status_is 0; silent; all_gone
}

# The worker of a helper from before the execve() of pvasrun, which adopts it during the job
test_orphans_of_others()
{
	local adopted='until grep -q "^PPid:.$PVAS_LAUNCHER\$" /proc/$(cat $T/mine)/status; do sleep 0.05; done'

	(sh -c "sleep 100 & echo \$! >$T/mine; until [ -e $T/pid.0 ]; do sleep 0.05; done" &
		exec $PVASRUN --orphans kill -n 1 sh -c "$DAEMON 100; $DAEMON_UP; $adopted") >out 2>err
	status=$?
	status_is 0; silent; all_gone
	check "asked first" [ -e termed ]
	check "no others" kill "$(cat mine)"
}

# A reader of these files holds the process's memory: if it lets go of that last, it may have to wait
# for a file server of that process's user.
test_orphans_reads_no_memory()
{
	[ "$LOG_OPENS_SO" ] || return
	: >opens
	# children from before make it look at each process
	(sleep 100 & echo $! >mine
		export LD_PRELOAD=$LOG_OPENS_SO LOG_OPENS=$T/opens
		exec $PVASRUN --orphans kill -n 1 env -u LD_PRELOAD sh -c "$DAEMON 100; $DAEMON_UP") >out 2>err & job=$!
	finish; status_is 0; all_gone
	check "it looks for them" grep -qE "^$job /proc/[0-9]+/comm" opens
	check "it reads $(grep -E "^$job /proc/[0-9]+/(stat|statm|status|environ|cmdline|maps)$" opens | head -n 1)" \
		eval "! grep -qE '^$job /proc/[0-9]+/(stat|statm|status|environ|cmdline|maps)$' opens"
	kill "$(cat mine)"
}

# In a pid namespace without a /proc of its own: there, pid 2 has children 3, 4, ... that are
# other processes here.
test_orphans_other_proc()
{
	local how in='unshare --user --map-root-user --pid --fork --kill-child'

	user_backend && return		# refuses such a /proc
	$in --mount-proc true 2>/dev/null || return 0
	cat >inner <<-'EOF'
		$PVASRUN --orphans $1 ${2:+--timeout $2} -n 1 sh -c 'sleep 100 & exec sleep 1' 2>$T/err & job=$!
		for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 100 & done
		wait $job
		jobs -r >$T/running
		echo "$job $(grep -c "sleep 100" $T/running)"
	EOF
	cat >outer <<-'EOF'
		bash -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 100 & done; wait' &
		sleep 0.5
		unshare --pid --fork --kill-child bash $T/inner "$@"
	EOF
	for how in kill "wait 3"; do
		PVASRUN=$PVASRUN $in --mount-proc bash outer $how >out
		out_is "2 12"
		check "it says so" grep -q "can't find what tasks left running: /proc is" err
	done
}

# Each process can make any of its memory its environment, which pvasrun reads if it had children.
test_orphans_environment()
{
	[ -n "$BIG_ENVIRONMENT" ] || return
	timeout -s KILL 30 bash -c "sleep 100 & echo \$! >$T/mine
		exec $PVASRUN --orphans kill -n 1 '$BIG_ENVIRONMENT' $T/pid.0" >out 2>err
	status=$?
	status_is 0; silent
	kill "$(cat mine)" "$(cat pid.0)" 2>/dev/null
	kill -KILL "$(cat pid.0)" 2>/dev/null
}

# pvasrun looks for them among all processes: a foreign one that hangs doesn't hold it up.
test_orphans_beside_hung_exec()
{
	[ -n "$HUNG_EXEC" ] && mkdir hung || return
	"$HUNG_EXEC" hung timeout -s KILL 30 $PVASRUN --orphans kill -n 1 \
		sh -c "$DAEMON 100; $DAEMON_UP" >out 2>err
	status=$?
	[ "$status" -ne 77 ] || return 0
	status_is 0; silent; all_gone
}

hung_server_known() { [ -s "$T/server" ]; }
job_is_gone() { ! kill -0 "$job" 2>/dev/null; }

# One that a task has left, and that hangs, keeps pvasrun neither from its end nor its signals.
test_orphans_hung()
{
	user_backend && [ -n "$HUNG_EXEC" ] && mkdir hung || return
	(sleep 100 & echo $! >mine; exec $PVASRUN -n 1 sh -c "'$HUNG_EXEC' hung >server & sleep 2") \
		>out 2>err & job=$!
	check "it ends" until_true 15 job_is_gone
	until_true 1 hung_server_known || return 0	# it can't be made here
	check "it is named" grep -q 'left running by a task' err
	kill "$(cat server)" "$(cat mine)" 2>/dev/null; kill -KILL "$job" 2>/dev/null
	wait "$job" 2>/dev/null
}

# Nor does a rank that has left the space, and hangs.
test_left_rank_hung()
{
	user_backend && [ -n "$HUNG_EXEC" ] && mkdir hung || return
	PVAS_EXEC=leave $PVASRUN -v --timeout 5 -n 1 sh -c "exec '$HUNG_EXEC' hung" : -n 1 sleep 100 >server 2>err & job=$!
	check "it ends" until_true 20 job_is_gone
	until_true 1 hung_server_known && kill "$(cat server)" 2>/dev/null
	kill -KILL "$job" 2>/dev/null
	wait "$job" 2>/dev/null
}

# pvasexec looks whether the owners of other jobs' secrets live.
test_pvasexec_beside_hung_exec()
{
	# add_key(2), to the user keyring
	local add='$_ = "0" x 32 . " $ENV{HUNG_PID} 1"; $name = "pvasexec-unit;hung";
		syscall(248, $type = "user", $name, $_, length $_, -4) > 0 or exit 77'

	[ -n "$HUNG_EXEC" ] && mkdir hung || return
	PMIX_NAMESPACE=unit.$$ "$HUNG_EXEC" hung sh -c 'perl -e "$1" || exit
		timeout -s KILL 20 "$2" --fallback true' sh "$add" "${HUNG_EXEC%/*/*}/pvasexec" >out 2>err
	status=$?
	[ "$status" -ne 77 ] || return 0
	status_is 0
}

# ---- at a terminal ----

at_terminal()
{
	local ended

	[ -n "$TERMINAL" ] || return
	"$TERMINAL" "${@:2}" >out 2>err
	ended=$?
	check "$1" [ $ended -eq 0 ]
}

test_terminal_input()
{
	at_terminal "the task with input has the terminal" expect=ready type=$'hello\n' \
		expect='got hello' state='exit 0' -- \
		$PVASRUN -n 2 sh -c '[ $PVAS_RANK = 0 ] || exit 0; test -t 0 && echo ready; read a; echo got $a'
	at_terminal "--stdin all" expect=ready0 type=$'hello\n' expect='=hello' expect='=hello' \
		type=$'\004' state='exit 0' -- \
		$PVASRUN --stdin all -n 2 sh -c 'echo ready0; while read a; do echo =$a; done'
}

test_terminal_keys()
{
	local once='trap "echo int\$PVAS_RANK >>$T/ints" INT;'
	at_terminal "Ctrl-C ends the job, and pvasrun dies from it" run="until [ -e $T/pid.2 ]; do sleep 0.05; done" \
		type=$'\003' state='signal 2' -- $PVASRUN -n 3 sh -c "$READY exec sleep 100"
	all_gone
	rm -f pid.*
	at_terminal "Ctrl-C reaches each once" run="until [ -e $T/pid.2 -a -e $T/pid.1 -a -e $T/pid.0 ]; do sleep 0.05; done" \
		type=$'\003' pause=1000 run="touch $T/go" state='exit 0' -- \
		$PVASRUN -n 3 sh -c "$once $READY"' until [ -e $T/go ]; do sleep 0.05; done'
	[ -n "$TERMINAL" ] && check "exactly once" [ "$(sort ints)" = $'int0\nint1\nint2' ]
	rm -f pid.* go
	mkfifo go.0 go.1 go.2
	# No child is stopped before its execve(), which these shells would wait for (vfork) and not stop.
	at_terminal "Ctrl-Z stops all, fg continues" run="until [ -e $T/pid.2 -a -e $T/pid.1 -a -e $T/pid.0 ]; do sleep 0.05; done" \
		type=$'\032' state='stopped 20' \
		run='for p in $(cat $T/pid.*); do until grep -q ") T" /proc/$p/stat; do sleep 0.05; done; done' fg \
		run='for i in 0 1 2; do echo >$T/go.$i; done' state='exit 0' -- \
		$PVASRUN -n 3 sh -c "$READY"' read go <$T/go.$PVAS_RANK'
}

# Output to a file is not a terminal's for the user, so no program waits in a pager.
test_terminal_pager()
{
	local show='echo $PAGER,$GIT_PAGER,$MANPAGER,$SYSTEMD_PAGER,$PSQL_PAGER'
	local user='PAGER=less GIT_PAGER= MANPAGER=more PSQL_PAGER=less'

	[ -n "$TERMINAL" ] || return
	at_terminal "to a file" state='exit 0' -- env -u SYSTEMD_PAGER $user sh -c "$PVASRUN -n 1 sh -c '$show' >shown"
	check "no pagers" [ "$(cat shown)" = cat,cat,cat,cat,less ]
	at_terminal "-x" state='exit 0' -- env $user sh -c "$PVASRUN -n 1 -x PAGER -x SYSTEMD_PAGER=pg sh -c '$show' >shown"
	check "but those of -x" [ "$(cat shown)" = less,cat,cat,pg,less ]
	# where nothing is there to wait for, and where the user has asked for a terminal, or for none
	at_terminal "else" state='exit 0' -- env -u SYSTEMD_PAGER $user sh -c "setsid -w $PVASRUN -n 1 sh -c '$show' >shown
		$PVASRUN --pty always -n 1 sh -c '$show' >>shown; $PVASRUN --pty never -n 1 sh -c '$show' >>shown"
	check "all are the user's" [ "$(sort -u shown)" = less,,more,,less ]
	at_terminal "output to the terminal" expect=less,,more,,less state='exit 0' -- \
		env -u SYSTEMD_PAGER $user $PVASRUN -n 1 sh -c "$show"
	type git >/dev/null 2>&1 || return 0
	git init -q repository && git -C repository -c user.name=one -c user.email=one@example.com commit -q --allow-empty -m subject
	at_terminal "git log" state='exit 0' -- env -u GIT_PAGER sh -c \
		"$PVASRUN -n 1 git -C repository -c core.pager='read key </dev/tty; cat' log >log"
	check "its output" grep -q subject log
}

# The terminal is closed, and pvasrun is its session's leader, as with ssh -t HOST pvasrun.
test_terminal_closed()
{
	local ranks

	for ranks in 1 3; do
		rm -f pid.* saved.*
		check "$ranks: pvasrun lives on" timeout $((20 * SLOW)) python3 - $ranks $PVASRUN -n $ranks sh -c \
			"trap 'sleep 1; touch $T/saved.\$PVAS_RANK; exit 0' HUP; $WAIT" <<-'EOF'
			import glob, os, pty, sys, time
			ranks = int(sys.argv[1])
			pid, terminal = pty.fork()
			if not pid:
			    os.execvp(sys.argv[2], sys.argv[2:])
			while len(glob.glob("pid.*")) < ranks:
			    time.sleep(0.05)
			os.close(terminal)
			sys.exit(os.waitpid(pid, 0)[1] != 0)
			EOF
		check "$ranks: SIGHUP reaches all" files saved $ranks
		all_gone
	done
}

# A background rank that reads from the terminal or changes its settings is not stopped. One
# that stops itself is reported, and ends with the job or continues.
test_terminal_background()
{
	local stops='$SIG{TTIN} = $SIG{TTOU} = "DEFAULT"; $| = 1; print "up\n"; open(T, "+<", "/dev/tty") or die;'
	at_terminal "reading fails, setting does not" expect='read 1: 1' expect='set 1: 0' state='exit 0' -- \
		$PVASRUN -n 2 sh -c '[ $PVAS_RANK = 1 ] || exit 0; read a </dev/tty; echo read 1: $?
			stty sane </dev/tty; echo set 1: $?'
	at_terminal "printing with tostop" expect='out 1' state='exit 0' -- \
		sh -c "stty tostop; exec $PVASRUN -n 2 sh -c 'echo out \$PVAS_RANK'"
	at_terminal "no rank has it" expect='read 0: 1' state='exit 0' -- \
		$PVASRUN --stdin none -n 1 sh -c 'read a </dev/tty; echo read 0: $?'
	at_terminal "SIGTTIN is reported" expect=up expect='pvasrun: rank 1 (pid ' \
		expect='is stopped by signal 21' expect='it reads from the terminal, which rank 0 has: see --stdin)' \
		type=$'\003' state='signal 2' -- $PVASRUN -n 2 perl -e "\$ENV{PVAS_RANK} or sleep 100; $stops <T>"
	at_terminal "SIGTTOU is reported" expect=up expect='is stopped by signal 22' expect='it sets the terminal' \
		type=$'\003' state='signal 2' -- $PVASRUN -n 2 \
		perl -MPOSIX -e "\$ENV{PVAS_RANK} or sleep 100; $stops POSIX::tcsetpgrp(3, getpgrp) or POSIX::Termios->new->setattr(0) or kill TTOU => \$\$; sleep 100"
	at_terminal "Ctrl-Z and fg are not" run="until [ -e $T/pid.2 -a -e $T/pid.1 -a -e $T/pid.0 ]; do sleep 0.05; done" \
		type=$'\032' state='stopped 20' fg pause=1300 run="touch $T/go" expect=went expect=went expect=went \
		state='exit 0' -- $PVASRUN -n 3 sh -c "$READY"' until [ -e $T/go ]; do sleep 0.05; done; echo went'
	[ -n "$TERMINAL" ] && check "no word of it" eval '! grep -q stopped out'
}

test_stopped_rank()
{
	pvasrun -n 3 sh -c "$READY"' [ $PVAS_RANK = 0 ] || kill -STOP $$
		until grep -q "is stopped by" $T/err; do sleep 0.05; done; exit 3'
	status_is 3; all_gone
	rm -f pid.*
	start --no-kill -n 3 sh -c "$READY"' [ $PVAS_RANK = 0 ] || kill -STOP $$; exit 0'
	check "both in one line" until_true 10 grep -qE \
		'^pvasrun: rank 1 \(pid [0-9]+, sh\) is stopped by signal 19 \(.*\), and 1 more \(to let it go on: kill -CONT [0-9]+\)$' err
	kill -CONT $job
	finish; status_is 0
	check "once" [ "$(wc -l <err)" -eq 1 ]
	# none is reported that continues at once
	pvasrun -n 1 perl -e 'my $p = $$; fork or do { select undef, undef, undef, 0.2; kill CONT => $p; exit }; kill STOP => $$; sleep 2'
	status_is 0; silent
	# nor one that does so again and again
	pvasrun -n 1 perl -e 'my $p = $$; fork or do {
			for (1 .. 8) { kill STOP => $p; select undef, undef, undef, 0.4; kill CONT => $p }
			exit };
		for (1 .. 100) { select undef, undef, undef, 0.04 }'
	status_is 0; silent
}
