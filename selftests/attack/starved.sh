#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A user who starves some tasks (by cpu.max of a cgroup) delays every wait for "no task is
# preempted". The spaces of other users must still be made and destroyed in time.

. "$(dirname "$0")/common"
need_root
run=$PVAS_BUILD/pvasrun/pvasrun
tree=$(mktemp -d /tmp/pvas-starved.XXXXXX) || exit 1
group=$tree/starved

# Their end takes time that they must be given: else it takes minutes, with RCU waiting for
# those that were stopped in the middle of it.
leave()
{
	[ ! -e "$group/cpu.max" ] || echo max >"$group/cpu.max"
	[ ! -e "$group/cgroup.kill" ] || echo 1 >"$group/cgroup.kill"
	while ! rmdir "$group" 2>/dev/null && [ -d "$group" ]; do sleep 0.1; done
	umount "$tree"
	rmdir "$tree"
	rm -rf "$T"
}

mount -t cgroup2 none "$tree" || { rmdir "$tree"; skip_all "no cgroup2"; }
echo +cpu >"$tree/cgroup.subtree_control" 2>/dev/null
mkdir "$group" && trap leave EXIT
[ -e "$group/cpu.max" ] || skip_all "no cpu.max (CONFIG_CFS_BANDWIDTH)"

job()
{
	timeout -k 5 "$1" "$run" --backend kernel -n 2 /bin/true
}

# Of 1 ms a second each of them gets next to nothing, and is preempted when it is used up.
# All are well under way by then: one that is stopped while it has a lock is another matter.
starve()
{
	local i

	for ((i = 0; i < 40; i++)); do
		setpriv --reuid 7001 --regid 7001 --clear-groups sh -c 'while :; do :; done' &
	done
	sleep 6
	for i in $(jobs -p); do
		echo "$i" >"$group/cgroup.procs" || return
	done
	echo "1000 1000000" >"$group/cpu.max"
	sleep 2
	grep -q '^nr_throttled [1-9]' "$group/cpu.stat"
}

again()
{
	local i

	for ((i = 0; i < 5; i++)); do
		unhooked && job 20 || return
	done
}

[ -e /sys/kernel/tracing/enabled_functions ] || mount -t tracefs none /sys/kernel/tracing
check "a job alone" job 60
check "a user's tasks are starved" starve
check "with them, jobs one after the other, each from no hooks to no hooks" again
check "in between another user's job" setpriv --reuid 7002 --regid 7002 --clear-groups \
	timeout -k 5 20 "$run" -n 2 /bin/true
check "the hooks go" unhooked
end_attack
