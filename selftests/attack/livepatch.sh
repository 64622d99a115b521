#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A live patch and our hooks want the same function: whoever comes second is
# refused, with nothing half-installed, and can come when the first has gone.

. "$(dirname "$0")/common"
need_root
ko=$PVAS_BUILD/selftests/livepatch/$(uname -r)/pvaspatch.ko
run=$PVAS_BUILD/pvasrun/pvasrun
sys=/sys/kernel/livepatch
trace=/sys/kernel/tracing
[ -d $sys ] || skip_all "this kernel has no live patches (CONFIG_LIVEPATCH)"
[ -e "$ko" ] || skip_all "no $ko (make -C selftests livepatch KERNEL=...)"
[ -e $trace/enabled_functions ] || mount -t tracefs none $trace || skip_all "no tracefs"

# settled ON: until every process has changed over
settled()
{
	local i

	for ((i = 0; i < 600; i++)); do
		if [ "$1" = 1 ]; then
			[ "$(cat $sys/pvaspatch/transition)" = 0 ] && return
		else
			[ -e $sys/pvaspatch ] || return 0
		fi
		sleep 0.1
	done
	return 1
}

patch_on()
{
	insmod "$ko" 2>"$T/insmod" && settled 1
}

patch_off()
{
	echo 0 >$sys/pvaspatch/enabled && settled 0 && rmmod pvaspatch
}

# The errno of set_mempolicy_home_node(0, 0, 0, 1): EINVAL, or EXFULL if patched
errno_is()
{
	[ "$(perl -e 'syscall(450, 0, 0, 0, 1); print $! + 0')" = "$1" ]
}

job()
{
	timeout -k 5 60 "$run" --backend kernel -n 2 /bin/sh -c '/bin/true; exec /bin/true' >/dev/null
}

# Without the module's own functions: there a hook may stay, on its way to nowhere.
hooked()
{
	cut -d ' ' -f 1 $trace/enabled_functions | grep -v '^pvas_hook_idle_' | sort
}

refused()
{
	unhooked || return
	hooked >"$T/before"
	if job 2>"$T/said"; then
		echo "# the job runs"
		return 1
	fi
	sed 's/^/# /' "$T/said"
	[ "$(grep -c . "$T/said")" = 1 ] && grep -q 'see the kernel log' "$T/said" &&
		dmesg | tail -20 | grep -q "pvas: can't hook .*live patch" &&
		hooked | diff "$T/before" - &&
		[ "$(cat /sys/module/pvas/refcnt)" = 0 ] && [ "$(spaces)" = 0 ]
}

check "without the patch" errno_is 22
await_spaces 0
unhooked
check "the patch goes in while there is no space" patch_on
check "and is active" errno_is 54
check "a job is refused in one line, no hook and no space stays" refused
check "again" refused
check "the patch is still active" errno_is 54
check "the patch comes out" patch_off
check "then the job runs" job

# The other way round.
"$run" --backend kernel -n 1 /bin/sleep 60 &
sleeper=$!
await_spaces 1
check "a patch is refused while there is a space" eval '! patch_on && [ -s "$T/insmod" ] && [ ! -e $sys/pvaspatch ]'
check "and is not active" errno_is 22
check "another job in the meantime" job
kill "$sleeper"
wait "$sleeper" 2>/dev/null
await_spaces 0
unhooked
check "it goes in after the last space" patch_on
# Now all hooks are registered, and stand elsewhere.
check "and refuses a job once more" refused
check "and comes out" patch_off
check "and a job runs" job
end_attack
