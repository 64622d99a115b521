// SPDX-License-Identifier: GPL-2.0-only
/* Limits, exit statuses, and printed sizes */
#include <errno.h>

#include "../measure.h"
#include "../precheck.h"
#include "../report.h"
#include "unit.h"

static void test_maps(void)
{
	check(precheck_maps(4, 65530) == MAPS_FINE);
	check(precheck_maps(163, 65530) == MAPS_FINE);
	check(precheck_maps(164, 65530) == MAPS_FEW_FOR_MPI);
	check(precheck_maps(240, 65530) == MAPS_FEW_FOR_MPI);
	check(precheck_maps(1638, 65530) == MAPS_FEW_FOR_MPI);
	check(precheck_maps(1639, 65530) == MAPS_FEW);
	check(precheck_maps(4095, 65530) == MAPS_FEW);
	check(precheck_maps(4096, 65530) == MAPS_TOO_FEW);
	check(precheck_maps(4096, 4096 * 400) == MAPS_FINE);
	check(precheck_maps(1, 0) == MAPS_TOO_FEW);
}

static void test_partition_size(void)
{
	check(precheck_partition_size(1) == 8ULL << 40);
	check(precheck_partition_size(4) == 8ULL << 40);
	check(precheck_partition_size(5) == 4ULL << 40);
	check(precheck_partition_size(10) == 4ULL << 40);
	check(precheck_partition_size(11) == 2ULL << 40);
	check(precheck_partition_size(240) == 128ULL << 30);
	check(precheck_partition_size(340) == 128ULL << 30);
	check(precheck_partition_size(341) == 64ULL << 30);
	check(precheck_partition_size(2046) == 64ULL << 30);
	check(precheck_partition_size(2047) == 32ULL << 30);
	check(precheck_partition_size(4094) == 32ULL << 30);
	check(precheck_partition_size(4095) == 16ULL << 30);
	check(precheck_partition_size(4096) == 16ULL << 30);
}

/* Twice as many partitions as tasks, unless they have the default size or less */
static void test_enough(void)
{
	check(precheck_enough(8ULL << 40, 8, 4));
	check(!precheck_enough(8ULL << 40, 7, 4));
	check(precheck_enough(64ULL << 30, 4, 4));
	check(!precheck_enough(64ULL << 30, 3, 4));
}

static void test_statuses(void)
{
	check(precheck_status(-ENOENT) == 127);
	check(precheck_status(-ENOTDIR) == 127);
	check(precheck_status(-EACCES) == 126);
	check(precheck_status(-ENOEXEC) == 126);
	check(precheck_status(-ELIBBAD) == 126);
	check(precheck_status(-EPERM) == 126);
	check(precheck_status(-EAGAIN) == 1);
	check(precheck_status(-ENOMEM) == 1);
}

static void test_size_text(void)
{
	char buf[24];

	check_text(size_text(64ULL << 30, buf), "64G", "64 GiB");
	check_text(size_text(8ULL << 40, buf), "8T", "8 TiB");
	check_text(size_text(4096ULL << 40, buf), "4096T", "no unit above");
	check_text(size_text(1500, buf), "1500", "bytes");
	check_text(size_text(3ULL << 20, buf), "3M", "3 MiB");
	check_text(size_text(0, buf), "0", "nothing");
}

/* --check-run: for so many tasks pvasrun's choice has room, and for one more not */
static void test_measure(void)
{
	uint64_t sizes[] = { 8ULL << 40, 1ULL << 40, 128ULL << 30, 64ULL << 30 };
	unsigned int i, n;

	check(measure_partition(1) == 4ULL << 30);
	check(measure_partition(2ULL << 30) == 4ULL << 30);
	check(measure_partition((2ULL << 30) + 1) == 8ULL << 30);
	check(measure_partition(4ULL << 40) == 8ULL << 40);
	check(measure_partition((4ULL << 40) + 1) == 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n = measure_tasks(sizes[i]);
		check(n && precheck_partition_size(n) >= sizes[i]);
		check(precheck_partition_size(n + 1) < sizes[i]);
	}
}

void test_precheck(void)
{
	test_measure();
	test_maps();
	test_partition_size();
	test_enough();
	test_statuses();
	test_size_text();
}
