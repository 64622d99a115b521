// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory that N processes need to reach each other's buffers of 2 MiB, without MPI:
 * tasks, or plain processes with XPMEM.
 *
 * usage: peers SYSTEM N alone|task|xpmem
 *
 * SYSTEM as worker_group.h has it; the last word as peer.c has it. Prints what N took, in KiB:
 * MemAvailable and PageTables.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "worker_group.h"

int main(int argc, char **argv)
{
	long available, tables;
	struct worker_group c;

	if (argc != 4)
		bench_die("usage: peers SYSTEM N alone|task|xpmem", -EINVAL);
	available = bench_meminfo("MemAvailable");
	tables = bench_meminfo("PageTables");
	group_start(&c, argv[1], atoi(argv[2]), "peer", argv[3]);
	group_begin(&c);
	group_await(&c);
	printf("%ld %ld\n", available - bench_meminfo("MemAvailable"),
	       bench_meminfo("PageTables") - tables);
	group_begin(&c);
	group_end(&c);
	return 0;
}
