# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Programs, exit status and signals. Sourced by functional.sh.

# shellcheck disable=SC2016,SC2086,SC2034

# ---- programs and their environment ----

test_environment()
{
	pvasrun -n 3 sh -c 'echo $PVAS_RANK $PVAS_SIZE'
	status_is 0; silent
	sorted_is $'0 3\n1 3\n2 3'
	pvasrun -n 2 sh -c 'echo ${PVAS_SPACE:-none}'
	check "one space for all" [ "$(sort -u out | wc -l)" -eq 1 ]
	check "space is a number" grep -qE '^[1-9][0-9]*$' out
	INHERITED=yes pvasrun -n 1 sh -c 'echo $INHERITED'
	out_is yes
	A=old pvasrun -n 1 -x A=new -x B='x y' sh -c 'echo "$A $B"'
	out_is 'new x y'
	A=kept pvasrun -n 1 -x A sh -c 'echo $A'
	out_is kept; silent
	pvasrun -n 1 -x NOSUCHVAR true
	status_is 0
	one_line "-x NOSUCHVAR: not set here, so the tasks don't get it .*"
	pvasrun -q -n 1 -x NOSUCHVAR true
	silent
	pvasrun -n 1 printenv GLIBC_TUNABLES
	check "malloc is not told to keep memory" grep -q 'glibc.malloc.trim_threshold=' out
	GLIBC_TUNABLES=glibc.malloc.arena_max=1 pvasrun -n 1 printenv GLIBC_TUNABLES
	out_is glibc.malloc.arena_max=1
}

test_several_programs()
{
	pvasrun -n 2 sh -c 'echo a $PVAS_RANK $PVAS_SIZE' : -np 1 echo b : --np 2 -x X=5 \
		sh -c 'echo c $PVAS_RANK $X'
	status_is 0; silent
	sorted_is $'a 0 5\na 1 5\nb\nc 3 5\nc 4 5'
	pvasrun -n 1 -x ONLY=here true : -n 1 sh -c 'echo ${ONLY-unset}'
	out_is unset
	pvasrun -n 1 -- echo a : b
	out_is 'a : b'
	pvasrun -n 1 echo -n --timeout -- x
	out_is '--timeout -- x'
}

test_wdir()
{
	mkdir -p sub
	printf '#!/bin/sh\necho here $PWD\n' >sub/script
	chmod +x sub/script
	pvasrun -n 1 --wdir "$T/sub" ./script
	status_is 0; out_is "here $T/sub"
	pvasrun -n 1 --wd sub ./script : -n 1 pwd
	status_is 0; sorted_is $T$'\n'"here $T/sub"
	pvasrun -n 1 --wdir nosuch true
	status_is 1; one_line '--wdir nosuch: No such file or directory \(.*\)'
	pvasrun -n 1 --wdir sub/script true
	status_is 1; one_line '--wdir sub/script: Not a directory \(.*\)'
}

test_programs_that_cannot_start()
{
	pvasrun -n 2 nosuchprogram
	status_is 127; one_line 'cannot start nosuchprogram: No such file or directory \(not in PATH.*\)'
	pvasrun -n 2 ./nosuch
	status_is 127; one_line 'cannot start ./nosuch: No such file or directory \(check its path\)'
	echo text >plain
	pvasrun -n 2 ./plain
	status_is 126; one_line 'cannot start ./plain: Permission denied \(.*chmod.*\)'
	pvasrun -n 2 /
	status_is 126; one_line 'cannot start /: Permission denied \(it is a directory\)'
	cp /bin/true fixed
	printf '\002' | dd of=fixed bs=1 seek=16 conv=notrunc 2>/dev/null
	pvasrun -n 2 ./fixed
	status_is 126; one_line 'cannot start ./fixed: .*position.independent.*'
	pvasrun -n 1 touch started : -n 1 nosuchprogram
	status_is 127; check "nothing starts if one can't" [ ! -e started ]
}

test_check()
{
	printf '#!/bin/sh\ntouch started\n' >script
	chmod +x script
	cp /bin/true gawk
	cp /bin/true only-here
	pvasrun --check ./script only-here ./gawk
	check "a program that isn't there" [ "$status" = 127 ]
	silent
	check "a script" grep -qx './script: can be a task (a script, and so can its interpreter /bin/sh)' out
	check "not looked up here" grep -q '^only-here: cannot be a task: No such file.*not in PATH' out
	check "a program" grep -qx './gawk: can be a task (position-independent, interpreter /lib64/ld-linux-x86-64.so.2)' out
	printf '\002' | dd of=gawk bs=1 seek=16 conv=notrunc 2>/dev/null
	pvasrun --check ./gawk nosuch
	status_is 126; silent
	check "another to take" grep -q '^./gawk: cannot be a task: .*(mawk and .*)$' out
	mv gawk nosuch; cp /bin/true mariadbd
	pvasrun --check ./nosuch ./mariadbd
	check "no other to take" grep -q '^./nosuch: cannot be a task: .*(or start it by env, .*)$' out
	check "a condition" grep -q '^./mariadbd: can be a task (position-independent, interpreter /.*, but it reserves more than a partition: .*)$' out
	pvasrun --check /lib64/ld-linux-x86-64.so.2
	check "no interpreter" grep -q ': can be a task (position-independent, no interpreter)$' out
	cp /bin/true "$(printf 'a\033b')" && printf '#!a\033b\n' >strange && chmod +x strange
	pvasrun --check ./strange
	check "an interpreter's name with control characters" grep -qx './strange: can be a task (.* interpreter a?b)' out
	pvasrun --check true; status_is 0; silent
	pvasrun --check; status_is 1; one_line 'no program given .*'
	check "nothing is started" [ ! -e started ]
}

# --check-run: what a program reserves, and where; its signals, arguments and end
test_check_run()
{
	pvasrun --check-run perl -e 'syscall(9, 0, 3 << 40, 0, 0x4022, -1, 0); print "@ARGV\n"' x -n : y
	status_is 0; silent
	check "its arguments" grep -qx 'x -n : y' out
	check "large" grep -qx 'perl: up to 31457[0-9][0-9] MiB of address space, which fits a partition of 8T, as up to 4 tasks have' out
	pvasrun -n 4 perl -e 'exit(syscall(9, 0, 3 << 40, 0, 0x4022, -1, 0) == -1)'
	[ -n "$plain" ] || status_is 0
	pvasrun --check-run perl -e 'syscall(9, 0, 5 << 40, 0, 0x4022, -1, 0)'
	status_is 126; check "larger" grep -q 'may not fit the largest partition (8T)$' out
	pvasrun --check-run perl -e 'syscall(9, 1 << 42, 4096, 0, 0x100022, -1, 0)'
	status_is 0; check "where" grep -q '^perl: memory at 0x40000000000, an address of its own choice: .*PVAS_EXEC=leave perl' out
	pvasrun --check-run true
	check "small" grep -qxE 'true: up to [0-9]+ MiB of address space, which fits a partition of 4G' out
	check "no address" eval '! grep -q choice out'
	pvasrun --check-run sh -c 'kill -9 $$'
	status_is 0; one_line 'sh: status 137: more may be reserved if it succeeds'
	start --check-run sh -c 'trap "echo told; exit 0" TERM; echo >ready; while :; do sleep 0.05; done'
	check "it runs" until_true 10 [ -e ready ]
	kill $job; finish
	status_is 0; check "SIGTERM is passed on" grep -qx told out
	# The last thread is not the first, or another one executes the program.
	pvasrun --check-run perl -Mthreads -e 'threads->create(sub {
		select(undef, undef, undef, 0.2); syscall(9, 0, 3 << 40, 0, 0x4022, -1, 0); syscall(231, 0) });
		syscall(60, 0)'
	status_is 0; check "of the last thread" grep -q 'up to 3145[78].* fits a partition of 8T' out
	pvasrun --check-run perl -Mthreads -e 'threads->create(sub {
		exec "perl", "-e", "syscall(9, 0, 3 << 40, 0, 0x4022, -1, 0); syscall(231, 0)" }); sleep 100'
	status_is 0; check "of a program that another thread executed" grep -q 'up to 3145[78].* fits a partition of 8T' out
	pvasrun --check-run ./nosuch; status_is 127
	pvasrun --check-run; status_is 1; one_line 'no program given .*'
}

# A program that fails, and can't be a task in all cases
test_condition()
{
	printf '#!/bin/sh\nexit $1\n' >java
	chmod +x java
	pvasrun -n 2 --no-kill ./java 3
	status_is 3; check "is named once" [ "$(grep -c '^pvasrun: ./java: can be a task, but not with ZGC' err)" -eq 1 ]
	pvasrun -n 1 ./java 0; status_is 0; silent
}

# exchanged WHAT: ./program, while a FIFO takes its place and gives it back
exchanged()
{
	local all=() status

	for _ in {1..100}; do all+=(./program); done
	mkfifo -m 755 fifo
	"$EXCHANGE" program fifo 30 "${EXCHANGE%/tests/*}/pvasrun" --check "${all[@]}" >out 2>&1
	status=$?
	check "while $1 is exchanged: status $status" [ $status = 0 ]
	rm -f program fifo
}

# Another user's program may become a device at any moment; to open that has effects.
test_check_exchanged()
{
	[ -n "$EXCHANGE" ] || return
	cp /bin/true program
	exchanged "a program"
	printf '#!/bin/sh\n' >program
	chmod 755 program
	exchanged "a script"
}

test_usage_errors()
{
	pvasrun; status_is 1; one_line 'no program given .*'
	pvasrun -n 1; status_is 1; one_line 'no program given .*'
	pvasrun true; status_is 1; one_line "how many tasks of 'true'\? .*"
	pvasrun -n 0 true; status_is 1; one_line "-n '0': .*"
	pvasrun --frob -n 1 true; status_is 1; one_line "option '--frob' is unknown.*--help.*"
	pvasrun -n 1 --stdin 1 true; status_is 1; one_line '--stdin 1: .*'
	pvasrun --help; status_is 0; silent
	check "help has all options" grep -q -- --tag-output out
	pvasrun --version; status_is 0; silent
	check "version" grep -qE '^pvasrun [0-9]+\.[0-9]+ \(libpvas [0-9]+\.[0-9]+\)$' out
}

# ---- the end of the job ----

test_exit_status()
{
	pvasrun -n 4 true; status_is 0; silent
	pvasrun -n 1 sh -c 'exit 7'
	status_is 7; one_line 'rank 0 \(pid [0-9]+, sh\) exited with status 7'
	pvasrun -n 1 sh -c 'exit 255'; status_is 255
	pvasrun -n 3 sh -c '[ $PVAS_RANK = 1 ] && kill -SEGV $$; exit 0'
	status_is 139
	one_line 'rank 1 \(pid [0-9]+, sh\) died from signal 11 \(Segmentation fault\)(, core dumped)?'
	pvasrun -n 1 sh -c 'kill -KILL $$'
	status_is 137; one_line 'rank 0 \(pid [0-9]+, sh\) died from signal 9 \(Killed\)'
	pvasrun -n 2 true : -n 1 sh -c 'exit 3'
	status_is 3; one_line 'rank 2 \(pid [0-9]+, sh\) exited with status 3'
}

test_failure_ends_job()
{
	pvasrun -n 4 sh -c "$READY"' [ $PVAS_RANK = 2 ] && exit 9; sleep 100'
	status_is 9; one_line 'rank 2 \(pid [0-9]+, sh\) exited with status 9'
	all_gone
	rm -f pid.*
	# the children of a task get the signal too
	pvasrun -n 2 sh -c '[ $PVAS_RANK = 1 ] && { until [ -e $T/pid.0 ]; do sleep 0.05; done; exit 4; }
		sh -c "echo \$\$ >$T/p; mv $T/p $T/pid.0; exec sleep 100"; :'
	status_is 4; all_gone
	# one that ignores SIGTERM gets SIGKILL
	rm -f pid.*
	SECONDS=0
	pvasrun -n 2 sh -c 'trap "" TERM;'"$READY"' [ $PVAS_RANK = 1 ] &&
		{ until [ -e $T/pid.0 ]; do sleep 0.05; done; exit 4; }; while :; do sleep 0.1; done'
	status_is 4; one_line 'rank 1 .* exited with status 4'; all_gone
	check "grace is kept" [ $SECONDS -ge 2 ]
	check "grace is 3 s" [ $SECONDS -le $((6 * SLOW)) ]
	# and one that is stopped dies too
	rm -f pid.*
	SECONDS=0
	pvasrun -n 2 sh -c "$READY"' [ $PVAS_RANK = 0 ] && kill -STOP $$
		until [ -e $T/pid.0 ]; do sleep 0.05; done; sleep 0.2; exit 5'
	status_is 5; all_gone
	check "SIGTERM wakes a stopped task" [ $SECONDS -le $((2 * SLOW)) ]
}

test_no_kill()
{
	pvasrun --no-kill -n 3 sh -c '[ $PVAS_RANK = 1 ] && exit 6; sleep 0.5; echo on $PVAS_RANK'
	status_is 6; sorted_is $'on 0\non 2'
	one_line 'rank 1 \(pid [0-9]+, sh\) exited with status 6'
	pvasrun --no-kill -n 3 sh -c '[ $PVAS_RANK = 2 ] && until grep -q "rank 1" $T/err; do sleep 0.05; done
		exit $PVAS_RANK'
	status_is 1; check "each failure is told" [ "$(wc -l <err)" -eq 2 ]
}

test_timeout()
{
	SECONDS=0
	pvasrun --timeout 1 -n 3 sh -c "$READY sleep 100"
	status_is 124; one_line '--timeout 1: the time is over, ending 3 tasks'; all_gone
	check "in time" [ $SECONDS -le $((3 * SLOW)) ]
	pvasrun --timeout 1h -n 2 true
	status_is 0; silent
	SECONDS=0
	pvasrun --timeout $SLOW.0 -n 1 sh -c 'trap "" TERM; while :; do sleep 0.1; done'
	status_is 124
	check "SIGKILL after the grace" [ $SECONDS -ge 2 ]
}

# ---- signals ----

# The task leaves its process group, and a child stays in it.
test_left_group()
{
	SECONDS=0
	pvasrun --timeout 1 -n 1 perl -e 'open F, ">", "$ENV{T}/pid.0"; print F $$; close F;
		if (!fork) { $SIG{TERM} = "IGNORE"; sleep 6; exit }
		setpgrp(0, getpgrp(getppid)); sleep 100 while 1'
	status_is 124; check "it was not ended" [ $SECONDS -le 5 ]
	all_gone
}

test_signals_reach_all()
{
	local name
	for name in INT TERM HUP QUIT USR1 USR2; do
		rm -f pid.* got.*
		start -n 3 sh -c "trap 'touch $T/got.\$PVAS_RANK; exit 0' $name; $WAIT"
		wait_files pid 3
		kill -$name $job
		finish
		check "SIG$name reaches all" files got 3
		status_is 0; silent
	done
}

test_signals_kill()
{
	local name
	for name in INT:130 TERM:143 HUP:129 QUIT:131; do
		rm -f pid.*
		start -n 3 sh -c "$READY exec sleep 100"
		wait_files pid 3
		kill -${name%:*} $job
		finish
		status_is ${name#*:}; silent; all_gone
	done
	# an error of the program, and not the user's request
	rm -f pid.*
	start -n 2 sh -c "$READY exec sleep 100"
	wait_files pid 2
	kill -USR1 $job
	finish
	status_is 138; one_line 'rank [01] \(pid [0-9]+, sh\) died from signal 10 \(User defined signal 1\)'
}

test_saving_work_on_int()
{
	# one task dies at once; the other has time to save its work
	start -n 2 sh -c "[ \$PVAS_RANK = 1 ] && trap 'sleep 1; touch $T/saved.1; exit 0' INT
		$READY while :; do sleep 0.05; done"
	wait_files pid 2
	kill -INT $job
	finish
	status_is 130; silent
	check "the work was saved" [ -e saved.1 ]
}

test_second_int_kills()
{
	start -n 2 sh -c "trap '' INT; $WAIT"
	wait_files pid 2
	kill -INT $job
	sleep 0.5
	check "one is not enough" kill -0 $job
	SECONDS=0
	kill -INT $job
	finish
	status_is 130; all_gone
	check "at once" [ $SECONDS -le $((2 * SLOW)) ]
	# two at once count as one: timeout(1) sends them
	rm -f pid.*
	start -n 1 sh -c "trap 'sleep 1; touch $T/saved.t; exit 0' TERM; $WAIT"
	wait_files pid 1
	kill -TERM $job; [ $SLOW -gt 1 ] || sleep 0.05; kill -TERM $job
	finish
	check "no SIGKILL" [ -e saved.t ]
}

# No shell: it waits by vfork() for what it starts, and if that is stopped before its exec,
# the shell is in state D.
test_stop_and_continue()
{
	# A process group whose leader's parent is of the session, as a shell makes it
	perl -e 'setpgrp; exec @ARGV' $PVASRUN -n 3 sh -c "$READY exec sleep 60" >out 2>err & job=$!
	wait_files pid 3
	kill -TSTP $job
	check "SIGTSTP stops all" until_true 5 all_in_state T
	kill -CONT $job
	check "SIGCONT wakes all" until_true 5 all_in_state S
	kill -TERM $job
	finish; status_is 143; all_gone
}

# SIGCONT while pvasrun stops the tasks, before it has stopped itself: of each plain process
# the kernel forgets the SIGTSTP then. A window of nanoseconds remains, in raise() itself.
test_continued_at_once()
{
	local i stuck=0

	perl -e 'setpgrp; exec @ARGV' $PVASRUN -n 16 sh -c "$READY exec sleep 60" >out 2>err & job=$!
	wait_files pid 16
	for i in {1..30}; do
		perl -e 'kill TSTP => $ARGV[0]; select undef, undef, undef, rand 2e-4; kill CONT => $ARGV[0]' $job
		until_true 2 all_in_state S || stuck=$((stuck + 1))
		kill -CONT $job
		until_true 5 all_in_state S
	done
	check "$stuck of 30 times all stay stopped" [ $stuck -le 1 ]
	kill -TERM $job
	finish; status_is 143; all_gone
}

test_pvasrun_killed()
{
	start -n 4 sh -c "$WAIT"
	wait_files pid 4
	kill -KILL $job
	finish 2>/dev/null
	status_is 137; all_gone
}

test_ignored_stays_ignored()
{
	(trap '' HUP INT; exec $PVASRUN -n 2 sh -c "$READY sleep 1") >out 2>err & job=$!
	wait_files pid 2
	kill -HUP $job; kill -INT $job
	finish; status_is 0; silent
	pvasrun -n 1 grep SigIgn /proc/self/status
	(trap '' HUP; exec $PVASRUN -n 1 grep SigIgn /proc/self/status) >out 2>err
	out_is $'SigIgn:\t0000000000000001'
	# each signal that is passed on
	(exec env --ignore-signal=INT,TERM,HUP,QUIT,USR1,USR2,TSTP,CONT $PVASRUN -n 1 grep SigIgn /proc/self/status) >out 2>err
	out_is $'SigIgn:\t00000000000a4a07'
	rm -f pid.*
	(trap '' USR1 USR2 TERM TSTP; exec $PVASRUN -n 2 sh -c "$READY sleep 1") >out 2>err & job=$!
	wait_files pid 2
	kill -USR1 $job; kill -USR2 $job; kill -TERM $job; kill -TSTP $job; kill -CONT $job
	finish; status_is 0; silent
}

# Nothing stops a process group without a parent in the session, nor then its tasks.
test_stop_orphaned_group()
{
	setsid $PVASRUN -n 2 sh -c "$READY exec sleep 60" >out 2>err & job=$!
	wait_files pid 2
	kill -TSTP $job
	sleep 0.5
	check "tasks are stopped for ever" until_true 5 all_in_state S
	kill -TERM $job
	finish; status_is 143; all_gone
}

# A task that is stopped, by whichever signal, does not keep the job from being ended.
test_stopped_are_ended()
{
	local signal

	for signal in STOP TSTP TTIN; do
		rm -f pid.*
		# A group of its own, which is not orphaned, in the tasks' case
		start -n 2 perl -e 'open F, ">", "$ENV{T}/pid.$ENV{PVAS_RANK}"; print F "$$\n"; close F; sleep 60'
		wait_files pid 2
		check "the tasks have written" until_true 5 eval '[ "$(cat pid.* | wc -l)" -eq 2 ]'
		# shellcheck disable=SC2046 # numbers
		kill -$signal $(cat pid.*)
		check "$signal stops them" until_true 5 all_in_state T
		SECONDS=0
		kill -TERM $job
		finish; status_is 143; all_gone
		check "$signal: TERM waits" [ $SECONDS -le 4 ]
	done
}

# A process of the library's own, which reads a fork child's memory, is waited for: pid 1 may not.
test_no_reader_left()
{
	perl -e 'syscall 157, 36, 1, 0, 0, 0; system @ARGV; exit(waitpid(-1, 0x40000000) != -1)' \
		$PVASRUN -q -n 1 perl -e 'exit print(readlink("/proc/self/exe"), "\n") != 1 if !fork; wait' >out 2>err
	status=$?
	status_is 0; out_is "$(readlink -f "$(command -v perl)")"
}
