#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Four tasks take more memory than their cgroup has: all of them are killed, and
# nobody else; the memory is back, and the next job runs.

# In a mount namespace of our own: the cgroup file system goes with us.
[ -n "${PVAS_OOM_NS:-}" ] || [ "$(id -u)" != 0 ] ||
	PVAS_OOM_NS=1 exec unshare -m --propagation private "$0"
. "$(dirname "$0")/common"
need_root
run=$PVAS_BUILD/pvasrun/pvasrun
hog=$PVAS_BUILD/selftests/attack/hog
mount -t cgroup2 none /mnt || skip_all "no cgroup2"
echo +memory >/mnt/cgroup.subtree_control 2>/dev/null
group=/mnt/pvas-oom.$$
mkdir "$group"
[ -e "$group/memory.max" ] || { rmdir "$group"; skip_all "no memory controller"; }
echo 64M >"$group/memory.max"
for round in 1 2 3 4; do
	# The launcher stays outside: its tasks enter before they exec.
	timeout 60 "$run" -q --no-kill -n 4 sh -c "echo \$\$ >$group/cgroup.procs; exec $hog" \
		>/dev/null 2>&1
	check "round $round: the job is killed" [ $? = 137 ]
	check "round $round: no space is left" [ "$(spaces)" = 0 ]
	# From the second round on: the first fills the page allocator's CPU lists.
	[ $round -gt 1 ] || before=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
done
# A space goes by a work item, its pages by RCU.
for ((i = 0; i < 100; i++)); do
	after=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
	[ $((before - after)) -gt 49152 ] || break
	sleep 0.1
done
check "memory is back ($before, then $after KiB)" [ $((before - after)) -le 49152 ]
check "the next job runs" "$run" -n 4 true
check "the cgroup is empty" rmdir "$group"
end_attack
