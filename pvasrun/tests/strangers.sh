#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Attacks on the launcher of an MPI job, of root and of an ordinary user: by another user,
# and by a process of the same user that does not know the job's name, as in a sandbox. The
# job must continue undisturbed.
#
#	make -C pvasrun mpi && pvasrun/tests/strangers.sh [name]...
#
# SLOW	multiplies time limits (a VM without KVM), and divides the least number of attacks

# Commands of tasks are in single quotes, with the tasks' own variables.
# shellcheck disable=SC2016

top=$(dirname "$(readlink -f "$0")")/../..
B=$(readlink -f "${O:-$top/build}")
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"

[ "$(id -u)" -eq 0 ] || { skip "strangers: only root can be other users"; passed=1; sum_up; exit; }
[ -x "$B/pvasrun/tests/stranger" ] || { echo "not built: make -C pvasrun mpi"; exit 1; }

# Both users need access to the programs, whoever owns the tree.
mkdir -m 755 "$T/bin"
cp "$B"/pvasrun/{pvasrun,pvasexec,pvasrun-pmix.so} "$B"/pvasrun/tests/{stranger,no_sock_diag.so,pmix,rank-openmpi,rank-mpich} "$T/bin"
chmod 755 "$T"
SLOW=${SLOW:-1}
user_of=([1]=0 [2]=1234)	# whose job
# In the background, without a shell in between
as() { exec setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }

# start_job UID ARGS: in the background; sets $port to the port that strangers can connect to.
# $files: a limit of open files; $preload: a library
files='' preload=''
start_job()
{
	local dir=$T/job-$1

	mkdir -p "$dir"
	chmod 700 "$dir"
	chown "$1" "$dir"
	rm -f "$dir"/*
	true >"$T/out"	# or the loop below may find the port of the previous job
	TMPDIR=$dir as "$1" env ${preload:+"LD_PRELOAD=$preload"} ${files:+prlimit --nofile="$files"} \
		"$T/bin/pvasrun" --backend user "${@:2}" >"$T/out" 2>"$T/err" &
	job=$!
	until_true 20 grep -q '^port [0-9]' "$T/out" || fail "the job does not start"
	port=$(sed -n 's/^port //p' "$T/out" | head -n 1)
}
PORT='echo "port ${PMIX_SERVER_URI41##*:}"; '

# attack SECONDS: all kinds of attacks at once
attack()
{
	local how

	attackers=()
	for how in churn reset hold half; do
		as 65534 timeout $(($1 + 20)) "$T/bin/stranger" "$port" "$1" $how >"$T/$how" 2>&1 &
		attackers+=($!)
	done
}
attack_is_over() { wait "${attackers[@]}"; }

# There were many connections, and none was answered.
was_attacked()
{
	check "too few calls" [ "$(awk '{ sum += $1 } END { print sum + 0 }' "$T"/{churn,reset,hold,half})" -ge $(($1 / SLOW)) ]
	check "a stranger was answered" \
		[ "$(awk '{ sum += $3 } END { print sum + 0 }' "$T"/{churn,reset,hold,half})" -eq 0 ]
}

ended() { wait "$job"; status=$?; }
status_is() { check "exit status $status, not $1" [ "$status" -eq "$1" ]; }
silent() { check "pvasrun said something" [ ! -s "$T/err" ]; }
files_of() { find "/proc/$1/fd" -mindepth 1 | wc -l; }
rss_of() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# watch_size SECONDS: during the attack the launcher neither grows nor opens files.
watch_size()
{
	local most_files=0 n now files rss

	files=$(files_of "$job") rss=$(rss_of "$job")
	for ((n = 0; n < $1 * 5; n++)); do
		now=$(files_of "$job")
		[ "$now" -le "$most_files" ] || most_files=$now
		sleep 0.2
	done
	# a connection that is accepted but not checked yet
	check "it opens files: $files, then $most_files" [ "$most_files" -le $((files + 1)) ]
	check "it grows: $rss kB, then $(rss_of "$job")" [ "$(rss_of "$job")" -le $((rss + 4096)) ]
}

# ---- a job without MPI, and one with ----

idle_of()
{
	start_job "$1" -n 2 sh -c "$PORT"'trap "" TERM; exec sleep 60'
	attack 3
	watch_size 2
	# signals are handled meanwhile
	SECONDS=0
	kill -INT $job
	ended
	check "SIGINT is not heard" [ $SECONDS -le $((5 * SLOW)) ]
	status_is 130
	attack_is_over
	was_attacked 1000
	silent
}
test_idle() { for uid in "${user_of[@]}"; do idle_of "$uid"; done; }

# Ranks of both kinds find each other during the attack, and the result is right.
ranks_of()
{
	start_job "$1" -n 2 bash -c "$PORT"'sleep 1; '"'$T/bin/$2' ring"
	attack 3
	ended
	status_is 0
	silent
	check "the result is wrong" grep -qx 'ring: 2 ranks' "$T/out"
	attack_is_over
	was_attacked 300
}
test_openmpi() { for uid in "${user_of[@]}"; do ranks_of "$uid" rank-openmpi; done; }
test_mpich() { ranks_of "${user_of[2]}" rank-mpich; }

# The server runs already: strangers can't reach it either.
served_of()
{
	start_job "$1" -n 1 bash -c "'$T/bin/rank-openmpi' ring; $PORT sleep 6; '$T/bin/pmix' log"
	check "it listens to other machines" eval '! awk "\$4 == \"0A\" { print \$2, \$10 }" /proc/net/tcp /proc/net/tcp6 |
		grep -v "^0100007F:" | grep -qwFf <(find /proc/$job/fd -lname "socket:*" -printf "%l\n" | tr -dc "0-9\n")'
	check "it listens on more than its port" \
		[ "$(find /proc/$job/fd -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n' |
			grep -cxFf - <(awk '$4 == "0A" { print $10 }' /proc/net/tcp /proc/net/tcp6))" -eq 1 ]
	attack 2
	watch_size 2
	ended
	status_is 0
	check "it serves nobody" grep -qx 'pmix log: good' "$T/out"
	attack_is_over
	was_attacked 300
	check "the server complained" eval '! grep -qvx "from b\|to stderr\|a, once\|a, each time\|b\|no topic\|a number" "$T/err"'
}
test_served() { for uid in "${user_of[@]}"; do served_of "$uid"; done; }

# ---- the same user, who does not know the job's name ----

now_ms() { date +%s%3N; }

# same HOW SECONDS: in the background
same()
{
	as 1234 timeout $(($2 + 20)) "$T/bin/stranger" "$port" "$2" "$1" "$(sed -n 's/^name //p' "$T/out" | head -n 1)" \
		>"$T/same.$1" 2>&1 &
	attackers+=($!)
}
NAME='echo "name $PMIX_NAMESPACE"; '

# ring_among HOW...: two ranks find each other; $took: how many ms that took
ring_among()
{
	local how

	attackers=()
	rm -f "$T/go"
	start_job 1234 --timeout 40 -n 2 bash -c "$NAME$PORT"'until [ -e "$1" ]; do sleep 0.1; done; d=$(date +%s%3N)
		'"'$T/bin/rank-openmpi' ring;"' echo "took $(($(date +%s%3N) - d))"' - "$T/go"
	for how in "$@"; do same "$how" 6; done
	sleep 2
	true >"$T/go"
	ended
	status_is 0
	silent
	check "the result is wrong ($*)" grep -qx 'ring: 2 ranks' "$T/out"
	took=$(sed -n 's/^took //p' "$T/out" | sort -n | tail -n 1)
	attack_is_over
	for how in "$@"; do
		check "$how: no calls: $(cat "$T/same.$how")" [ "$(sed 's/ .*//' "$T/same.$how")" -ge 50 ]
		check "$how: was answered" grep -q ', 0 bytes answered$' "$T/same.$how"
	done
}

# Alone, and then during attacks: not slower, except for the processor time they take
test_same_user()
{
	local how alone

	ring_among
	alone=$took
	for how in many one drip name wrong; do
		ring_among $how
		check "$how: MPI took $took ms, $alone ms alone" [ "$took" -le $((alone * 3 + 2500)) ]
	done
	ring_among many one drip name wrong
	# each opens more connections than are accepted, and some do so all the time
	check "all: MPI took $took ms, $alone ms alone" [ "$took" -le $((alone * 3 + 8000)) ]
}

# A low limit of descriptors, until the server starts and raises it
test_same_user_few_files()
{
	files=100:4096
	ring_among many
	files=''
}

# A stranger can't make a job without MPI start a server.
test_same_user_no_server()
{
	local how

	files=100:100
	attackers=()
	start_job 1234 -n 2 sh -c "$PORT exec sleep 5"
	for how in many one drip name wrong; do same $how 3; done
	sleep 1
	check "a server runs" eval '! grep -q pvasrun-pmix.so /proc/$job/maps'
	watch_same
	ended
	status_is 0
	silent
	attack_is_over
	files=''
}
watch_same() { check "it has $(files_of $job) files" [ "$(files_of "$job")" -lt 90 ]; }

# ---- a kernel without sock_diag: /proc/net/tcp is read once for many connections ----

test_no_sock_diag()
{
	preload=$T/bin/no_sock_diag.so
	attackers=()
	start_job 1234 --timeout 40 -n 2 bash -c "$PORT"'sleep 1; d=$(date +%s%3N)
		'"'$T/bin/rank-openmpi' ring;"' echo "took $(($(date +%s%3N) - d))"'
	attackers=()
	as 65534 timeout 40 "$T/bin/stranger" "$port" 16 hold >"$T/hold" 2>&1 &
	attackers+=($!)
	ended
	status_is 0
	silent
	took=$(sed -n 's/^took //p' "$T/out" | sort -n | tail -n 1)
	check "MPI took $took ms" [ "$took" -le 8000 ]
	check "it was over" kill "${attackers[@]}"
	wait "${attackers[@]}" 2>/dev/null
	# signals are handled
	start_job 1234 -n 2 sh -c "$PORT"'exec sleep 60'
	attack 8
	sleep 2
	SECONDS=0
	kill -INT "$job"
	ended
	status_is 130
	check "SIGINT is heard after $SECONDS s" [ $SECONDS -le 3 ]
	attack_is_over
	was_attacked 300
	preload=''
}

# ---- time, and the end of tasks ----

test_timeout()
{
	start_job 1234 --timeout 2 -n 1 sh -c "$PORT exec sleep 60"
	attack 5
	SECONDS=0
	ended
	check "--timeout 2 took $SECONDS s" [ $SECONDS -le 5 ]
	status_is 124
	attack_is_over
}

test_end()
{
	start_job 1234 -n 1 sh -c "$PORT exec sleep 1"
	attack 4
	SECONDS=0
	ended
	check "a task's end is seen after $SECONDS s" [ $SECONDS -le 3 ]
	status_is 0
	silent
	attack_is_over
}

# ---- without free descriptors the launcher waits, and does not spin ----

# limit N: set the launcher's limit of open files, as its own user
limit() { (as 1234 prlimit --pid "$job" --nofile="$1:") || fail "the limit can't be set"; }

# The lowest free descriptor: the limit is one of numbers.
free_number() { local n=0; while [ -e "/proc/$1/fd/$n" ]; do n=$((n + 1)); done; echo $n; }

test_no_files()
{
	local calls

	start_job 1234 -n 1 sh -c "$PORT sleep 6; '$T/bin/pmix' log"
	limit "$(free_number "$job")"
	attack 2
	# By attempts and not by time, for the kernel charges other work to any process.
	calls=$(timeout 2 strace -f -e trace=accept,accept4 -p "$job" 2>&1 >/dev/null |
		grep -c EMFILE)
	check "it spins: $calls tries in 2 s" [ "$calls" -lt 200 ]
	check "it does not try" [ "$calls" -gt 0 ]
	attack_is_over
	# and accepts again when there are some
	limit 256
	ended
	status_is 0
	check "it serves nobody any more" grep -qx 'pmix log: good' "$T/out"
}

# ---- names that a stranger could use first ----

# /dev/shm is full: ranks get a private directory elsewhere, or none and a reason.
test_no_shm()
{
	unshare -m sh -c 'mount -t tmpfs -o nr_inodes=2,mode=1777 none /dev/shm && : >/dev/shm/full &&
		TMPDIR="$1" "$2" -v --backend user -n 1 sh -c "env | grep backing_dir; exec $3 ring"' \
		- "$T" "$T/bin/pvasrun" "$T/bin/rank-openmpi" >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	check "another directory is used" grep -q "backing_directory=$T/pvasrun-" "$T/out"
	check "no reason is given" grep -q 'cannot make a directory for MPI in /dev/shm: ' "$T/err"
	unshare -m sh -c 'mount -t tmpfs -o nr_inodes=2,mode=1777 none /dev/shm && : >/dev/shm/full &&
		TMPDIR=/dev/shm "$2" --backend user -n 1 sh -c "env | grep backing_dir; exec $3 ring"' \
		- "$T" "$T/bin/pvasrun" "$T/bin/rank-openmpi" >"$T/out" 2>"$T/err"
	status=$?
	status_is 1
	check "a rank is told of it" eval '! grep -q backing_dir "$T/out"'
	check "no reason is given" grep -q '^pvasrun: cannot make a directory for MPI in /dev/shm: ' "$T/err"
	unshare -m sh -c 'mount -t tmpfs -o nr_inodes=2,mode=1777 none /dev/shm && : >/dev/shm/full &&
		TMPDIR="$1" "$2" --backend user -n 1 true' - "$T" "$T/bin/pvasrun" >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	silent
}

# on_silent DIR COMMAND...: as user 1234, in a mount namespace where a file system that
# nobody answers for is mounted on a stranger's directory. fusermount3 does that for him where
# /etc/fuse.conf has user_allow_other.
on_silent()
{
	# shellcheck disable=SC2016 # the inner shell's arguments
	unshare -m sh -c 'mount -t tmpfs -o mode=1777 none "${1%/*}" && mkdir "$1" && chown 65534 "$1" &&
		exec 5<>/dev/fuse &&
		mount -i -t fuse -o fd=5,rootmode=40000,user_id=65534,group_id=65534,allow_other none "$1" &&
		shift && exec timeout -k 1 20 setpriv --reuid 1234 --regid 1234 --clear-groups "$@"' - \
		"$@" >"$T/out" 2>"$T/err"
	status=$?
}

# A stranger's directory has a name of the victim's, and never answers: no job waits for it.
test_silent_directories()
{
	local name=pvasrun-1234-1-0123456789abcdef0123456789abcdef

	[ -w /dev/fuse ] || { skip "no FUSE here"; return; }
	mkdir -m 1777 "$T/public"
	on_silent "/dev/shm/$name" env HOME=/ "$T/bin/pvasrun" --backend user -n 1 echo hello
	status_is 0
	on_silent "$T/public/$name" env HOME=/ TMPDIR="$T/public" "$T/bin/pvasrun" --backend user \
		-n 1 "$T/bin/rank-openmpi" ring
	status_is 0
	check "MPI does not work" grep -qx 'ring: 1 ranks' "$T/out"
}

# Other jobs of the same user remove stale directories all the time: each job keeps its own.
# hwloc in MPICH's ranks would connect to X servers; here they never answer.
test_x_servers()
{
	local squatter

	as 65534 perl -MSocket -e 'for my $n (0 .. 9) {
		socket(my $s, PF_UNIX, SOCK_STREAM, 0); push @all, $s;
		bind($s, pack("Sa*", PF_UNIX, "\0/tmp/.X11-unix/X$n")) and listen($s, 9);
		} $| = 1; print "ready\n"; sleep 60' >"$T/x" &
	squatter=$!
	until grep -qs ready "$T/x"; do sleep 0.1; done
	timeout 30 "$T/bin/pvasrun" --backend user -n 2 "$T/bin/rank-mpich" ring >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	kill "$squatter"
	wait "$squatter" 2>/dev/null
}

# Another user has created the directory that pvasexec would use in /tmp. Without a module
# it gets as far as the secret, and then runs the program plainly.
test_squatting()
{
	local at=/tmp/pvasexec-1234 rank

	skip_if_exists "$at" || return
	install -d -o 65534 -m 777 "$at"
	for rank in 0 1; do
		(as 1234 env -u XDG_RUNTIME_DIR -u PMIX_SERVER_TMPDIR PVAS_DEBUG=1 PMI_JOBID=squat \
			"$T/bin/pvasexec" --fallback echo "rank $rank") >"$T/out" 2>"$T/err"
		status=$?
		status_is 0
		check "the secret is not in the keyring" grep -q "from the user's keyring" "$T/err"
	done
	check "something is in the stranger's directory" [ -z "$(ls -A "$at")" ]
	rmdir "$at"
}

# A place in /tmp that this test needs, and somebody may be using
skip_if_exists()
{
	[ ! -e "$1" ] || { skip "$1 exists already"; return 1; }
	keyctl_works || { skip "no keyring here"; return 1; }
}
keyctl_works() { python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(250, 0, -4, 1) < 0)'; }

# A stale directory whose path contains a pattern is removed, and no other.
test_pattern()
{
	local name=pvasrun-0-1-0123456789abcdef0123456789abcdef

	mkdir -p "$T/p[a]/$name/x" "$T/pa/$name/x"
	chmod 700 "$T/p[a]/$name" "$T/pa/$name"
	echo "$name $(uname -n)" | tee "$T/p[a]/$name/.pvasrun" >"$T/pa/$name/.pvasrun"
	TMPDIR="$T/p[a]" "$T/bin/pvasrun" --backend user -n 1 "$T/bin/rank-openmpi" ring >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	check "something is left" [ -z "$(ls "$T/p[a]")" ]
	check "another's was taken" [ -d "$T/pa/$name/x" ]
}

# Another user has taken all inodes of /dev/shm.
test_full_shared_memory()
{
	# shellcheck disable=SC2016 # for the inner shell
	unshare -m sh -c 'mount -t tmpfs -o mode=1777,nr_inodes=20 tmpfs /dev/shm &&
		setpriv --reuid 4001 --regid 4001 --clear-groups sh -c "for i in \$(seq 30); do mkdir /dev/shm/\$i; done" 2>/dev/null
		exec setpriv --reuid 4002 --regid 4002 --clear-groups "$@"' - \
		env HOME=/ "$T/bin/pvasrun" --backend user -n 2 "$T/bin/rank-openmpi" ring >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
}

# In a directory that a group shares others rename what they can neither enter nor remove.
test_renamed()
{
	local shared=$T/shared name=pvasrun-4001-1-0123456789abcdef0123456789abcdef
	local victim=(setpriv --reuid 4001 --regid 4001 --groups 4100 env "TMPDIR=$shared" HOME=/)

	mkdir -m 2770 "$shared"
	chown 0:4100 "$shared"
	"${victim[@]}" mkdir -p -m 700 "$shared/results/deep"
	setpriv --reuid 4002 --regid 4002 --groups 4100 mv "$shared/results" "$shared/$name"
	"${victim[@]}" "$T/bin/pvasrun" --backend user -n 1 "$T/bin/rank-openmpi" ring >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	check "the user's own directory was emptied" [ -d "$shared/$name/deep" ]
	check "something is left" [ "$(ls "$shared")" = "$name" ]
}

# Ranks that can't follow print their server's name: that is no secret.
test_server_name()
{
	"$T/bin/pvasrun" --backend user -n 1 bash -c '[[ $PMIX_SERVER_URI41 != *${PMIX_NAMESPACE##*-}* ]] && exec "$1" ring' - \
		"$T/bin/rank-openmpi" >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
}

# Another user's directories with this user's prefix are not even opened.
test_others_directories()
{
	local i name

	mkdir -m 1777 "$T/many"
	for i in {1..50}; do
		printf -v name 'pvasrun-0-%d-%032x' "$i" "$i"
		as 4002 mkdir "$T/many/$name" &
	done
	wait
	TMPDIR=$T/many strace -f -o "$T/trace" -e trace=openat,open,unlinkat,rmdir "$T/bin/pvasrun" --backend user \
		-n 1 "$T/bin/rank-openmpi" ring >"$T/out" 2>"$T/err"
	status=$?
	status_is 0
	check "the test made none" [ "$(find "$T/many" -mindepth 1 -maxdepth 1 | wc -l)" -eq 50 ]
	check "others' directories are opened" [ "$(grep -cE '"pvasrun-0-[0-9]+-0{20}' "$T/trace")" -eq 0 ]
}

test_sweep()
{
	local i pids=()

	mkdir "$T/sweep"
	for i in 1 2 3 4 5 6; do
		for _ in 1 2 3 4; do
			TMPDIR=$T/sweep "$T/bin/pvasrun" --backend user -n 1 sh -c \
				"'$T/bin/rank-openmpi' ring >/dev/null && "'[ -d "$OMPI_MCA_btl_vader_backing_directory" ] && ls "$TMPDIR" |
				grep -q "^pvasrun-0-$PPID-"' || echo lost
		done >"$T/sweep.$i" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$T"/sweep.* >"$T/out"
	check "a job lost its directory" eval '! grep -q lost "$T/out"'
	check "something is left" [ -z "$(ls "$T/sweep")" ]
}

begin_test() { true >"$T/out" 2>"$T/err"; }
run_tests "$@"
sum_up
