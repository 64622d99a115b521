#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Collective operations of one job on two and on four nodes, which are network namespaces on
# one kernel: each has a space of its own, and tcp goes between them.
# As root, where /dev/pvas is: selftests/vm/run -- coll_glue/tests/several-nodes.sh

here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
# shellcheck source=selftests/mpi/common
. "$top/selftests/mpi/common"
export PVAS_LIMIT=500		# seconds a job; several nodes on one emulated processor are slow
agent=$top/selftests/mpi/agent
bin=$O/coll_glue/tests
export OMPI_MCA_mca_base_component_path=$O/btl_glue:SYSTEM_DEFAULT
# Other components than basic fail with the datatypes of "move", with or without us.
basic='--mca coll pvas,basic,libnbc,self,inter'

name="one job on several nodes"
[ -c /dev/pvas ] || { skip "$name" "no /dev/pvas: the module is not loaded"; sum_up; exit; }
[ "${PVAS_VM:-}" = 1 ] || { skip "$name" "changes /etc/hosts: run it by selftests/vm/run"; sum_up; exit; }

# add_node NUMBER: a namespace nN, whose device is connected to the bridge
add_node()
{
	ip netns add "n$1" && ip link add "veth-n$1" type veth peer name "port-n$1" &&
	ip link set "port-n$1" master nodes up && ip link set "veth-n$1" netns "n$1" &&
	ip -n "n$1" link set lo up && ip -n "n$1" addr add "10.77.0.$1/24" dev "veth-n$1" &&
	ip -n "n$1" link set "veth-n$1" up && echo "10.77.0.$1 n$1" >>/etc/hosts
}

add_nodes()
{
	local i

	modprobe -a veth bridge 2>/dev/null
	ip link add nodes type bridge && ip link set nodes up || return
	for i in 1 2 3 4; do
		add_node $i || return
	done
}
add_nodes 2>"$out" || { skip "$name" "no virtual network: $(tail -1 "$out")"; sum_up; exit; }
trap 'for i in 1 2 3 4; do ip netns del n$i; done; ip link del nodes; rm -rf "$T"' EXIT

# job HOSTS OPTIONS PROGRAM [ARGUMENT]...: from node n1, with as many ranks as there are slots
job()
{
	# shellcheck disable=SC2086 # lists of options
	timeout -k 5 "$PVAS_LIMIT" "$agent" n1 $mpirun $lean --mca btl self,pvas,tcp \
		--mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
		--mca plm_rsh_agent "$agent" --mca coll_pvas_when_oversubscribed 1 $2 --host "$1" \
		"$pvasexec" "$bin/$3" "${@:4}"
}

# dies HOSTS ARGUMENT...: the job ends in time, and not well
dies()
{
	job "$1" '' die "${@:2}" >"$out" 2>&1 </dev/null
	local status=$?

	[ $status -ne 0 ] && [ $status -ne 124 ] && [ $status -ne 137 ]
}

# Ranks of a node have consecutive numbers, or, mapped by node, are dealt out.
two=n1:2,n2:2 uneven=n1:3,n2:1 four=n1:2,n2:1,n3:2,n4:1
for hosts in $two $uneven $four; do
	try "used, right: $hosts" job "$hosts" '' nodes used 3 30001
done
try "one rank a node: left to others" job n1:1,n2:1 '' nodes unused 3 30001
for hosts in $two $four; do
	options="$basic --map-by node --mca coll_pvas_segment 1000"
	try "data: $hosts" job "$hosts" "$options" move 2 1 blocking
	try "reductions: $hosts" job "$hosts" "$options" combine 2 1 blocking close
done
for what in bcast allreduce gather alltoall; do
	check "a rank killed in $what" dies $two $what 40000
done
! grep -q . /proc/pvas
verdict $? "no space is left"
sum_up
