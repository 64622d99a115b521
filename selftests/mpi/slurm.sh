#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# srun: a Slurm cluster of two nodes on this machine, for the time of the test.
# As root, where /dev/pvas is: selftests/vm/run --mem 6144 -- selftests/mpi/slurm.sh

# shellcheck source=selftests/mpi/common
. "$(dirname "$(readlink -f "$0")")/common"

name="srun"
[ "${PVAS_VM:-}" = 1 ] || { skip "$name" "sets up daemons: run it by selftests/vm/run"; sum_up; exit; }
[ -c /dev/pvas ] || { skip "$name" "no /dev/pvas: the module is not loaded"; sum_up; exit; }
for p in munged slurmctld slurmd srun; do
	command -v $p >/dev/null || { skip "$name" "no $p (apt-get install munge slurmctld slurmd slurm-client)"; sum_up; exit; }
done

conf=/run/pvas-slurm
mkdir -p $conf/state $conf/spool-n1 $conf/spool-n2 $conf/tmp-n1 $conf/tmp-n2 $conf/log
export SLURM_CONF=$conf/slurm.conf
host=$(hostname)
# Slurm's daemons want an address that is not the loopback's, and its cgroups without systemd.
modprobe dummy 2>/dev/null
ip link add pvas0 type dummy 2>"$out" && ip link set pvas0 up && ip addr add 10.78.0.1/24 dev pvas0 ||
	{ skip "$name" "no virtual network: $(tail -1 "$out")"; sum_up; exit; }
sed -i "/[[:space:]]$host\$/d" /etc/hosts
echo "10.78.0.1 $host" >>/etc/hosts
mkdir -p /sys/fs/cgroup/system.slice
echo '+cpuset +cpu +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
printf '%s\n' CgroupPlugin=cgroup/v2 IgnoreSystemd=yes >$conf/cgroup.conf
cat >$SLURM_CONF <<END
ClusterName=pvas
SlurmctldHost=$host(10.78.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$conf/state
SlurmdSpoolDir=$conf/spool-%n
SlurmctldPidFile=$conf/slurmctld.pid
SlurmdPidFile=$conf/slurmd-%n.pid
SlurmctldLogFile=$conf/log/slurmctld
SlurmdLogFile=$conf/log/slurmd-%n
SlurmctldTimeout=300
SlurmdTimeout=300
MessageTimeout=100
SlurmdParameters=config_overrides
ReturnToService=2
SwitchType=switch/none
TmpFS=$conf/tmp-%n
NodeName=n1 NodeHostname=$host NodeAddr=10.78.0.1 Port=17001 CPUs=8 RealMemory=500 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=10.78.0.1 Port=17002 CPUs=8 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
END
# TmpFS: the PMIx plugin makes a directory there, named after the step only. Where
# two nodes have one, the second can't, and srun says "task launch failed".
daemons=()
trap 'kill "${daemons[@]}" 2>/dev/null; rm -rf "$work"' EXIT

start()
{
	"$@" >>$conf/log/console 2>&1 </dev/null &
	daemons+=($!)
}

# Munge wants its key and its folders to be its own.
dd if=/dev/urandom of=/etc/munge/munge.key bs=128 count=1 2>/dev/null
chmod 600 /etc/munge/munge.key
mkdir -p /run/munge /var/log/munge /var/lib/munge
chown munge: /etc/munge/munge.key /etc/munge /run/munge /var/log/munge /var/lib/munge
start setpriv --reuid munge --regid munge --clear-groups munged --foreground
start slurmctld -D
start slurmd -D -N n1
start slurmd -D -N n2

for _ in $(seq 40); do
	[ "$(timeout 5 sinfo -h -o '%t %D' 2>/dev/null)" = "idle 2" ] && break
	sleep 0.5
done
sinfo >"$out" 2>&1
tail -n 5 $conf/log/* >>"$out" 2>&1
[ "$(timeout 5 sinfo -h -o '%t %D' 2>/dev/null)" = "idle 2" ]
verdict $? "a cluster of two nodes is up"
[ $failed -eq 0 ] || { sum_up; exit; }

export OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx OMPI_MCA_btl_vader_backing_directory=/tmp
good "srun --mpi=pmi2 pvasexec: two processes on each of two nodes" \
	srun --mpi=pmi2 -N 2 --ntasks-per-node=2 "$pvasexec" "$bin/member" 2
[ "$(awk '{ print $2 }' "$out" | sort -u | wc -l)" -eq 2 ] && [ "$(wc -l <"$out")" -eq 4 ]
verdict $? "one space for each node"
if srun --mpi=list 2>&1 | grep -q pmix; then
	good "srun --mpi=pmix pvasexec: an MPI job on one node" \
		srun --mpi=pmix -N 1 -n 4 "$pvasexec" "$bin/nodes" 1
	# vader would mix up the nodes' files: they have one name, as their host has
	export OMPI_MCA_btl=self,pvas,tcp OMPI_MCA_btl_tcp_if_include=10.78.0.0/24
	good "srun --mpi=pmix pvasexec: an MPI job on two nodes, tcp between" \
		srun --mpi=pmix -N 2 --ntasks-per-node=2 "$pvasexec" "$bin/nodes" 2
	good "two such steps at once" sh -c '
		srun --mpi=pmix -N 2 --ntasks-per-node=2 "$@" & first=$!
		srun --mpi=pmix -N 2 --ntasks-per-node=2 "$@" && wait $first' sh "$pvasexec" "$bin/nodes" 2
	unset OMPI_MCA_btl
	good "two MPI steps at once, each on a node" sh -c '
		srun --mpi=pmix -N 1 -n 2 -w n1 "$@" & first=$!
		srun --mpi=pmix -N 1 -n 2 -w n2 "$@" && wait $first' sh "$pvasexec" "$bin/nodes" 1
else
	skip "srun --mpi=pmix" "Slurm has no such plugin (apt-get install slurm-wlm-basic-plugins)"
fi
timeout "$PVAS_LIMIT" srun -n 2 "$pvasexec" /none >"$out" 2>&1 </dev/null
[ $? -eq 127 ] && grep -q 'pvasexec: /none: not found' "$out"
verdict $? "srun: a program that is not there"
timeout "$PVAS_LIMIT" srun -n 1 "$pvasexec" sh -c 'exit 5' >"$out" 2>&1 </dev/null
[ $? -eq 5 ]
verdict $? "srun: the program's exit status"
for _ in $(seq 100); do
	grep -q . /proc/pvas || break
	sleep 0.1
done
! grep -q . /proc/pvas
verdict $? "no space is left"
sum_up
