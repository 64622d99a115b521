#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runtimes of languages: C++ exceptions, thread_local, OpenMP, 64 threads, huge pages, stacks.
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"

same "C++ exceptions and thread_local" "$progs/cxx"
export OMP_NUM_THREADS=4
same "OpenMP" "$progs/omp"
export OMP_NUM_THREADS=64
same "OpenMP with 64 threads" "$progs/omp"
unset OMP_NUM_THREADS

ulimit -S -s 1048576 2>/dev/null
if [ "$(ulimit -s)" = 1048576 ]; then
	same "1 GiB stack" "$progs/cxx"
	same "1 GiB stack, bash" bash -c 'ulimit -s; echo $(seq 10)'
fi
if [ "$(ulimit -H -s)" = unlimited ]; then
	ulimit -S -s unlimited
	same "unlimited stack" "$progs/cxx"
	same "unlimited stack, bash" bash -c "seq 100 | sort -rn"
fi
ulimit -S -s 8192

export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
same "malloc in transparent huge pages" "$progs/omp"
# This is for a virtual machine: on the host, no setting is changed.
if [ "$backend" = kernel ] && [ -w /proc/sys/vm/nr_hugepages ] && echo 32 >/proc/sys/vm/nr_hugepages; then
	export GLIBC_TUNABLES=glibc.malloc.hugetlb=2
	same "malloc in hugetlbfs pages" "$progs/omp"
	echo 0 >/proc/sys/vm/nr_hugepages
fi
unset GLIBC_TUNABLES

same "clock" sh -c 'date +%Y; test $(date +%s) -gt 1000000000'
sum_up
