#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Four tasks take more memory than their cgroup has: all of them are killed, and
# nobody else; the memory is back, and the next job runs.

run=$PVAS_BUILD/pvasrun/pvasrun
hog=$PVAS_BUILD/selftests/attack/hog
n=0

check()
{
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $n $1"
	else
		echo "not ok $n $1"
		bad=1
	fi
}

echo "TAP version 13"
bad=0
if [ ! -r /proc/pvas ] || [ "$(id -u)" != 0 ]; then
	echo "ok 1 oom # SKIP no module, or not root"
	exit 4
fi
# In a mount namespace of our own: the cgroup file system goes with us.
[ -n "${PVAS_OOM_NS:-}" ] || PVAS_OOM_NS=1 exec unshare -m --propagation private "$0"
mount -t cgroup2 none /mnt || { echo "ok 1 oom # SKIP no cgroup2"; exit 4; }
echo +memory >/mnt/cgroup.subtree_control 2>/dev/null
group=/mnt/pvas-oom.$$
mkdir "$group"
if [ ! -e "$group/memory.max" ]; then
	rmdir "$group"
	echo "ok 1 oom # SKIP no memory controller"
	exit 4
fi
echo 64M >"$group/memory.max"
for round in 1 2 3 4; do
	# The launcher stays outside: its tasks enter before they exec.
	timeout 60 "$run" -q --no-kill -n 4 sh -c "echo \$\$ >$group/cgroup.procs; exec $hog" \
		>/dev/null 2>&1
	check "round $round: the job is killed" $(($? != 137))
	check "round $round: no space is left" "$(grep -c '^space' /proc/pvas)"
	# From the second round on: the first fills the page allocator's CPU lists.
	[ $round -gt 1 ] || before=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
done
# A space goes by a work item, its pages by RCU.
for ((i = 0; i < 100; i++)); do
	after=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
	[ $((before - after)) -gt 49152 ] || break
	sleep 0.1
done
check "memory is back ($before, then $after KiB)" $((before - after > 49152))
"$run" -n 4 true >/dev/null 2>&1
check "the next job runs" $?
rmdir "$group"
check "the cgroup is empty" $?
echo "1..$n"
exit $bad
