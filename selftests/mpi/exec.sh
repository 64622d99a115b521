#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# pvasexec without MPI: who meets whom, and what it says when it can't be. Where
# /dev/pvas is, for example: selftests/vm/run -- selftests/mpi/exec.sh

# shellcheck source=selftests/mpi/common
. "$(dirname "$(readlink -f "$0")")/common"

[ -c /dev/pvas ] || { skip exec "no /dev/pvas: the module is not loaded"; sum_up; exit; }

# begin [VAR=VALUE]... [-- OPTION...]: one more member of a job of $size, in the background
begin()
{
	local vars=()

	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		vars+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	env "${vars[@]}" timeout "$PVAS_LIMIT" "$pvasexec" "$@" "$bin/member" "$size" \
		>"$work/m${#pids[@]}" 2>&1 &
	pids+=($!)
}

# met NAME SPACES: all members ended well, and were in so many spaces, none in another's place
met()
{
	local pid status=0 i

	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	cat "$work"/m[0-9]* >"$out"
	[ "$(awk '{ print $2 }' "$out" | sort -u | wc -l)" -eq "$2" ] || status=1
	[ "$(awk '{ print $2, $4 }' "$out" | sort -u | wc -l)" -eq "${#pids[@]}" ] || status=1
	verdict $status "$1"
	for i in "${!pids[@]}"; do rm "$work/m$i"; done
	pids=()
}

pids=()
size=3
begin -- --key a; begin -- --key a; begin -- --key a
met "three by --key" 1
size=2
begin PVAS_JOB_KEY=b; begin PVAS_JOB_KEY=b
met "PVAS_JOB_KEY" 1
begin PMIX_NAMESPACE=7 OMPI_COMM_WORLD_LOCAL_RANK=1
begin PMIX_NAMESPACE=7 OMPI_COMM_WORLD_LOCAL_RANK=0
met "PMIX_NAMESPACE" 1
begin PMIX_NAMESPACE=7 OMPI_COMM_WORLD_LOCAL_RANK=5
begin PMIX_NAMESPACE=7 OMPI_COMM_WORLD_LOCAL_RANK=5
met "two of one local rank: the second gets another place" 1
begin SLURM_JOB_ID=7 SLURM_STEP_ID=0; begin SLURM_JOB_ID=7 SLURM_STEP_ID=0
begin SLURM_JOB_ID=7 SLURM_STEP_ID=1; begin SLURM_JOB_ID=7 SLURM_STEP_ID=1
begin SLURM_JOB_ID=8 SLURM_STEP_ID=0; begin SLURM_JOB_ID=8 SLURM_STEP_ID=0
met "two steps of one Slurm job, and another job, all at once" 3
begin PMIX_NAMESPACE=9 SLURMD_NODENAME=n1; begin PMIX_NAMESPACE=9 SLURMD_NODENAME=n1
begin PMIX_NAMESPACE=9 SLURMD_NODENAME=n2; begin PMIX_NAMESPACE=9 SLURMD_NODENAME=n2
met "one job on two nodes of one kernel" 2
begin PMI_JOBID=x; begin PMI_JOBID=x
met "PMI_JOBID" 1
long=$(printf 'x%.0s' {1..250})
begin PMIX_NAMESPACE="${long}1"; begin PMIX_NAMESPACE="${long}1"
begin PMIX_NAMESPACE="${long}2"; begin PMIX_NAMESPACE="${long}2"
met "two jobs whose long names differ at their end" 2

# Another user with the same key has a space of his own; and we get not into his.
size=1
for id in 0 65534; do
	setpriv --reuid $id --regid $id --clear-groups "$pvasexec" --key shared \
		sh -c "echo in >$work/$id; until [ -e $work/go ]; do sleep 0.1; done" &
	pids+=($!)
done 2>"$out"
chmod 777 "$work"
for _ in $(seq 600); do
	[ -s "$work/0" ] && [ -s "$work/65534" ] && break
	sleep 0.1
done
grep '^space' /proc/pvas >"$out"
touch "$work/go"
[ "$(wc -l <"$out")" -eq 2 ] && grep -q 'uid 0 .*tasks 1 ' "$out" && grep -q 'uid 65534 .*tasks 1 ' "$out"
verdict $? "another user's job of the same name"
wait "${pids[@]}"
pids=()
rm -f "$work/go"

# Ranks that end at once: the space comes and goes under those that join.
for i in $(seq 10); do
	"$pvasexec" --key brief true 2>>"$work/brief" &
	pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
pids=()
cp "$work/brief" "$out"
verdict $status "ten ranks that end at once"

# The maker of the space stands still when it is to be found but not yet complete.
size=2
strace -f -qq -o /dev/null -e trace=ioctl -e inject=ioctl:delay_exit=3000000 \
	"$pvasexec" --key slow "$bin/member" 2 >"$work/m0" 2>&1 &
pids+=($!)
for _ in $(seq 200); do
	grep -q '^space' /proc/pvas && break
	sleep 0.05
done
begin -- --key slow
met "a rank that joins before the space's header is complete" 1

# 8 TiB partitions: there are fewer than 16 places.
for i in $(seq 17); do
	"$pvasexec" --partition-size 8T --key full \
		sh -c "until [ -e $work/go ]; do sleep 0.2; done" 2>>"$work/full" &
	pids+=($!)
done
for _ in $(seq 600); do
	[ "$(($(wc -l <"$work/full") + $(grep -c 'running' /proc/pvas)))" -ge 17 ] && break
	sleep 0.1
done
touch "$work/go"
refused=0 status=0
for pid in "${pids[@]}"; do
	wait "$pid"
	case $? in 0) ;; 1) refused=$((refused + 1)) ;; *) status=1 ;; esac
done
pids=()
cp "$work/full" "$out"
[ $refused -ge 2 ] && [ $refused -lt 17 ] && [ $status -eq 0 ] &&
	[ "$(grep -cx "pvasexec: cannot enter the job's address space: all partitions are taken" "$out")" -eq $refused ]
verdict $? "a full space: who finds no place says so, the others run"

# ---- what can't be: one line, and the status that a shell has for it ----
unset PVAS_JOB_KEY PVAS_FALLBACK
key="--key status"
fails "no job" 1 '^pvasexec: no job to join: ' "$pvasexec" true
fails "not a PIE" 126 'nopie: .*not.*position-independent' "$pvasexec" $key "$O/selftests/nopie"
fails "not found" 127 '^pvasexec: /none: not found$' "$pvasexec" $key /none
fails "not executable" 126 '^pvasexec: /etc/passwd: ' "$pvasexec" $key /etc/passwd
fails "a directory" 126 '^pvasexec: /etc: ' "$pvasexec" $key /etc
fails "set-user-id" 126 'pvasexec: .*set-user-id|pvasexec: .*set-uid' "$pvasexec" $key /bin/su
fails "no program" 1 '^pvasexec: no program given' "$pvasexec" $key
fails "a bad option" 1 '^pvasexec: --none: no such option' "$pvasexec" --none true
fails "a bad size" 1 '^pvasexec: --partition-size many: not a size' "$pvasexec" --partition-size many true
fails "a size out of range" 1 '^pvasexec: cannot join' "$pvasexec" $key --partition-size 1G true
fails "a key too long" 1 '^pvasexec: cannot join.*1 to 128' "$pvasexec" --key "$long" true
fails "the program's own exit status" 7 '^out$' "$pvasexec" $key sh -c 'echo out; exit 7'
fails "the signal that kills it" 137 '^out$' "$pvasexec" $key sh -c 'echo out; kill -9 $$'

fails "malloc is told to keep memory" 0 '^glibc.malloc.mmap_threshold=.*top_pad=' "$pvasexec" $key printenv GLIBC_TUNABLES
fails "what the user said of malloc stands" 0 '^glibc.malloc.arena_max=1$' \
	env GLIBC_TUNABLES=glibc.malloc.arena_max=1 "$pvasexec" $key printenv GLIBC_TUNABLES

# As on a machine without the module
hidden=(unshare -m sh -c 'mount -t tmpfs none /dev && exec "$@"' sh)
fails "no module" 1 '/dev/pvas: is the module.*modprobe pvas' "${hidden[@]}" "$pvasexec" $key "$bin/member"
fails "no module, --fallback" 0 '^plain$' "${hidden[@]}" "$pvasexec" $key --fallback "$bin/member"
fails "no module, PVAS_FALLBACK" 0 '^plain$' env PVAS_FALLBACK=1 "${hidden[@]}" "$pvasexec" $key "$bin/member"
chmod 600 /dev/pvas
nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
fails "a device that this user may not open" 1 "can't open /dev/pvas: Permission denied" \
	$nobody "$pvasexec" $key "$bin/member"
fails "such a device, --fallback" 0 '^plain$' $nobody "$pvasexec" $key --fallback "$bin/member"
chmod 666 /dev/pvas

for _ in $(seq 100); do
	[ -s /proc/pvas ] || break
	sleep 0.1
done
cp /proc/pvas "$out"
! grep -q . "$out"
verdict $? "no space is left"
sum_up
