#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Short: uprobes that tasks run into, and rmmod in a loop beside jobs.

. "$(dirname "$0")/common"
need_root
libc=/lib/x86_64-linux-gnu/libc.so.6
trace=/sys/kernel/tracing
[ -d $trace/events ] || mount -t tracefs none $trace 2>/dev/null

uprobe()
{
	local offset hits

	offset=$(objdump -T $libc 2>/dev/null | awk '$NF == "getenv" { print "0x" $1; exit }')
	[ -n "$offset" ] || return
	echo "p:pvas_getenv $libc:$offset" >$trace/uprobe_events &&
	echo 1 >$trace/events/uprobes/pvas_getenv/enable &&
	job 2 2 >/dev/null
	hits=$(grep -c pvas_getenv $trace/trace)
	echo 0 >$trace/events/uprobes/pvas_getenv/enable
	echo >$trace/uprobe_events
	[ "$hits" -gt 0 ]
}
if [ -w $trace/uprobe_events ] && command -v objdump >/dev/null; then
	check "a uprobe that tasks run into" uprobe
else
	skip "a uprobe that tasks run into" "no uprobe_events, or no objdump"
fi

remove()
{
	rmmod pvas 2>/dev/null && insmod "$PVAS_BUILD/$(uname -r)/pvas.ko"
	return 0
}

# Under jobs it is refused, but for a moment when none runs; between two storms it must go.
remove_and_insert()
{
	for _ in 1 2; do
		with 1 remove || return
		reload
	done
}

# In a user namespace that may have one other at a time. It ends a moment after its last process.
first_namespace()
{
	reload && unshare -Ur bash -c '
		echo 1 >/proc/sys/user/max_user_namespaces && unshare -Ur "$@" || exit
		for _ in {1..50}; do
			unshare -Ur true && exit
			sleep 0.2
		done
		exit 1' - "$PVAS_BUILD/pvasrun/pvasrun" --backend kernel -n 1 /bin/true
}
if [ -e "$PVAS_BUILD/$(uname -r)/pvas.ko" ]; then
	check "rmmod in a loop under jobs" remove_and_insert
	[ -r /proc/pvas ] || insmod "$PVAS_BUILD/$(uname -r)/pvas.ko"
	check "and a job afterwards" job 2 2
	check "the first job's user namespace ends" first_namespace
else
	skip "rmmod in a loop under jobs" "the module is not the one built here"
fi
end_attack
