#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Actions of an administrator or of other tools on the kernel while jobs run:
# other users of ftrace, strace, processors that go and come, swapping, memory that ends. (perf
# is in perf.c, live patches in livepatch.sh, uprobes and rmmod in unload.sh.)

. "$(dirname "$0")/common"
need_root
run=$PVAS_BUILD/pvasrun/pvasrun
trace=/sys/kernel/tracing
[ -d $trace/events ] || mount -t tracefs none $trace 2>/dev/null

# --- ftrace -------------------------------------------------------------------

tracer()
{
	echo function >$trace/current_tracer && job >/dev/null &&
	echo nop >$trace/current_tracer && job >/dev/null
}

if [ -w $trace/current_tracer ] && grep -qw function $trace/available_tracers; then
	printf '%s\n' vm_unmapped_area __x64_sys_munmap __x64_sys_brk copy_page_range \
		>$trace/set_ftrace_filter
	check "another tracer on the same functions" tracer
	check "it comes and goes under jobs" with 8 sh -c \
		"echo function >$trace/current_tracer; echo nop >$trace/current_tracer"
	check "ftrace can't be switched off under a job" sh -c \
		"'$run' --backend kernel -n 1 /bin/sh -c '! echo 0 2>/dev/null >/proc/sys/kernel/ftrace_enabled'"
	echo >$trace/set_ftrace_filter
fi

# The sysctl is the administrator's until the first space; then not before the module goes.
off_and_on()
{
	local status

	reload || return
	echo 0 >/proc/sys/kernel/ftrace_enabled
	"$run" --backend kernel -n 1 /bin/true 2>"$T/said"
	status=$?
	echo 1 >/proc/sys/kernel/ftrace_enabled
	[ $status -ne 0 ] && [ "$(grep -c . "$T/said")" = 1 ] && job >/dev/null || return
	await_spaces 0
	unhooked && ! echo 0 2>/dev/null >/proc/sys/kernel/ftrace_enabled && reload || return
	echo 0 >/proc/sys/kernel/ftrace_enabled && echo 1 >/proc/sys/kernel/ftrace_enabled
}
check "with ftrace off: one line, and all is well when it is on again" off_and_on

# --- strace -----------------------------------------------------------------

program='i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $((i*PVAS_RANK)); /bin/true; done; exec /bin/echo end'

# From before the space exists: launcher, creator, tasks and their children.
whole_job()
{
	local dir status
	dir=$(mktemp -d /tmp/pvas-strace.XXXXXX) || return

	"$run" --backend kernel -n 3 /bin/sh -c "$program" | sort >"$dir/want" &&
	timeout -k 5 100 strace -ff -o "$dir/s" "$run" --backend kernel -n 3 /bin/sh -c \
		"$program" | sort | cmp - "$dir/want" &&
	cat "$dir"/s.* >"$dir/all" &&
	[ "$(grep -cE 'execve\("[^"]*/(da)?sh", .* = 0$' "$dir/all")" = 3 ] &&
	[ "$(grep -c 'execve("/bin/echo", .* = 0$' "$dir/all")" = 3 ] &&
	[ "$(grep -c '+++ exited with 0 +++' "$dir/all")" -ge 13 ]
	status=$?
	rm -rf "$dir"
	return $status
}

# Onto a running job, killed, and again: the job takes no notice.
attach_and_die()
{
	local job i tracer attached='' args=()

	"$run" --backend kernel -n 3 /bin/sh -c \
		'i=0; while [ $i -lt 60 ]; do i=$((i+1)); /bin/true; sleep 0.05; done' &
	job=$!
	for ((i = 0; i < 300; i++)); do
		[ "$(grep -c ' task .* running ' /proc/pvas)" = 3 ] && break
		sleep 0.1
	done
	for i in $(awk '/ task / { print $4 }' /proc/pvas); do
		args+=(-p "$i")
	done
	for i in 1 2 3; do
		strace -f "${args[@]}" 2>"$T/said" &
		tracer=$!
		while kill -0 $tracer 2>/dev/null; do
			[ "$(grep -c attached "$T/said")" -ge 3 ] && attached=1 && break
			sleep 0.1
		done
		kill -9 $tracer 2>/dev/null
		{ wait $tracer; } 2>/dev/null
	done
	wait $job && [ -n "$attached" ]
}

if command -v strace >/dev/null; then
	check "strace -f of a whole job" whole_job
	check "strace comes and is killed" attach_and_die
fi

# --- processors ---------------------------------------------------------------

cpu1=/sys/devices/system/cpu/cpu1/online
[ ! -w $cpu1 ] ||
	check "a processor goes and comes under jobs" with 8 sh -c "echo 0 >$cpu1; echo 1 >$cpu1"

# --- memory -------------------------------------------------------------------

swapping()
{
	local file=/dev/shm/pvas-swap loop status

	# Swap needs a block device: zram or a loop, where the kernel has one.
	if modprobe zram 2>/dev/null && [ -e /sys/block/zram0/disksize ]; then
		echo 256M >/sys/block/zram0/disksize && loop=/dev/zram0
		[ -b $loop ] || mknod $loop b "$(tr : ' ' </sys/block/zram0/dev)"
	else
		modprobe loop 2>/dev/null
		truncate -s 256M $file && loop=$(losetup -f --show $file) || return 2
	fi
	mkswap "$loop" >/dev/null && swapon "$loop" || return 2
	"$run" --backend kernel -n 4 /usr/bin/perl -e \
		'my $x = "x" x 40_000_000; for (1 .. 3) { substr($x, $_ * 4096, 1) = "y"; sleep 1 }
		 exit(length($x) == 40_000_000 ? 0 : 1)' &
	sleep 1
	# All that can go out goes out, again and again.
	for p in $(awk '/ task /{print $4}' /proc/pvas); do
		echo 1 >"/proc/$p/clear_refs"
	done
	sync
	echo 3 >/proc/sys/vm/drop_caches
	wait $!
	status=$?
	swapoff "$loop"
	[ "$loop" = /dev/zram0 ] && echo 1 >/sys/block/zram0/reset
	[ -e $file ] && losetup -d "$loop" && rm -f $file
	return $status
}
if [ -d /lib/modules/"$(uname -r)"/kernel/drivers/block ]; then
	check "tasks under memory pressure, with swap" swapping
fi

end_attack
