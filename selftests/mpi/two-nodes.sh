#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One job on two nodes: pvas inside each, tcp between. The nodes are network
# namespaces with names of their own, on one kernel, so one /dev/pvas serves
# both: that ranks of one node meet, and no others, is what the job's key does.
# As root, where /dev/pvas is: selftests/vm/run -- selftests/mpi/two-nodes.sh

# shellcheck source=selftests/mpi/common
. "$(dirname "$(readlink -f "$0")")/common"

name="one job on two nodes"
[ -c /dev/pvas ] || { skip "$name" "no /dev/pvas: the module is not loaded"; sum_up; exit; }
[ "${PVAS_VM:-}" = 1 ] || { skip "$name" "changes /etc/hosts: run it by selftests/vm/run"; sum_up; exit; }
for p in ip unshare mpirun; do
	command -v $p >/dev/null || { skip "$name" "no $p here"; sum_up; exit; }
done

add_node()	# NAME ADDRESS
{
	ip netns add "$1" && ip link set "veth-$1" netns "$1" &&
	ip -n "$1" link set lo up && ip -n "$1" addr add "$2/24" dev "veth-$1" &&
	ip -n "$1" link set "veth-$1" up && echo "$2 $1" >>/etc/hosts
}

modprobe veth 2>/dev/null
ip link add veth-n1 type veth peer name veth-n2 2>"$out" &&
	add_node n1 10.77.0.1 2>>"$out" && add_node n2 10.77.0.2 2>>"$out" ||
	{ skip "$name" "no virtual network: $(tail -1 "$out")"; sum_up; exit; }
trap 'ip netns del n1; ip netns del n2; rm -rf "$work"' EXIT

# job HOSTS COMMAND...: from node n1
job()
{
	local hosts=$1

	shift
	# shellcheck disable=SC2086 # a list of options
	"$here/agent" n1 $mpirun $lean --mca btl self,pvas,tcp --mca btl_tcp_if_include 10.77.0.0/24 \
		--mca oob_tcp_if_include 10.77.0.0/24 --mca plm_rsh_agent "$here/agent" \
		--map-by node --host "$hosts" "$@"
}
export -f job
export here mpirun lean

good "two ranks on each node: pvas inside, tcp between" \
	bash -c 'job n1:2,n2:2 "$@"' job "$pvasexec" "$bin/nodes" 2
cp "$out" "$work/nodes"
[ "$(grep -c 'on n1: 2 nodes, 1 local' "$work/nodes")" = 2 ] &&
	[ "$(grep -c 'on n2: 2 nodes, 1 local' "$work/nodes")" = 2 ]
verdict $? "each rank sees two nodes and one local peer"
good "two jobs at once, each on both nodes" bash -c '
	job n1:2,n2:2 "$@" & first=$!
	job n1:2,n2:2 "$@" && wait $first' job "$pvasexec" "$bin/nodes" 2
fails_quickly()
{
	timeout -k 5 "$PVAS_LIMIT" bash -c 'job n1:2,n2:2 "$@"' job "$pvasexec" /none >"$out" 2>&1 </dev/null
	local status=$?
	[ $status -ne 0 ] && [ $status -ne 124 ] && grep -q 'pvasexec: /none: not found' "$out"
}
fails_quickly
verdict $? "a program that is not there ends the job"
! grep -q . /proc/pvas
verdict $? "no space is left"
sum_up
