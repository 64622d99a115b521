#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The whole machine is out of memory, not a cgroup: the job dies, the machine lives.

. "$(dirname "$0")/common"
need_root
# Nobody wants that on a machine that is used for something else.
[ -n "${PVAS_VM:-}" ] || skip_all "in a virtual machine only"
pages=/proc/sys/vm/nr_hugepages
[ -e $pages ] || skip_all "no huge pages here"
echo -1000 >/proc/$$/oom_score_adj
others=0

# Nor those that wait for us: without them all other tests are lost, too.
protect_ancestors()
{
	local p=$PPID adj

	while [ "$p" -gt 1 ]; do
		read -r adj <"/proc/$p/oom_score_adj"
		echo "$p $adj"
		echo -1000 >"/proc/$p/oom_score_adj"
		p=$(awk '/^PPid:/ {print $2}' "/proc/$p/status")
	done >"$T/ancestors"
}

# Later tests inherit it.
restore_ancestors()
{
	local p adj

	while read -r p adj; do
		echo "$adj" >"/proc/$p/oom_score_adj"
	done <"$T/ancestors"
}

leave()
{
	restore_ancestors
	kill $bystander 2>/dev/null
	echo 0 >$pages
	rm -rf "$T"
}

# ordinary COMMAND...: one that the killer may choose, as we may not
ordinary()
{
	sh -c 'echo 0 >/proc/self/oom_score_adj; exec "$@"' sh "$@"
}

# Take the free memory as huge pages first, because that is fast; leave 250 MB.
fill()
{
	local free

	free=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
	echo $(((free - 250000) / 2048)) >$pages
	free=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
	[ "$free" -lt 500000 ] || echo "# $free KiB are still free"
}

# By the kernel and not by timeout, whose status would be another one.
killed()
{
	local status

	ordinary timeout $((${TIMEOUT:-60} * 4)) "$PVAS_BUILD/pvasrun/pvasrun" --backend kernel -q --no-kill -n 4 \
		"$PVAS_BUILD/selftests/attack/hog" >/dev/null 2>&1
	status=$?
	[ $status = 137 ] || { echo "# status $status"; return 1; }
}

# Whom the killer took, since MARK
victims()
{
	dmesg | sed "1,/pvas-test: $1\$/d" | sed -n 's/.*Out of memory: Killed process [0-9]* (\([^)]*\)).*/\1/p'
}

protect_ancestors
ordinary sleep 1000 &
bystander=$!
trap leave EXIT
for round in 1 2; do
	echo "pvas-test: nomemory round $round" >/dev/kmsg
	check "memory is filled" fill
	check "the job is killed" killed
	echo 0 >$pages
	check "no space is left" await_spaces 0
	log=$(victims "nomemory round $round")
	check "the killer was at work" [ -n "$log" ]
	# On a slow machine it can take one more while the first is still dying, with
	# or without us.
	! grep -qvx hog <<<"$log" || others=$((others + 1))
done
check "nobody else was killed, at least in one round" [ $others -lt 2 ]
check "the next job runs" timeout 240 "$PVAS_BUILD/pvasrun/pvasrun" --backend kernel -n 4 /bin/true
end_attack
