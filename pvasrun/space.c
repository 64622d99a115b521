// SPDX-License-Identifier: GPL-2.0-only
/* Making the space that the tasks will share. */
#include <errno.h>
#include <string.h>

#include <linux/pvas.h>

#include "launch.h"
#include "precheck.h"
#include "diagnose.h"
#include "report.h"

static const char *create_hint(int err, int backend)
{
	switch (err) {
	case -ENOSYS:
		if (backend == PVAS_BACKEND_USER)
			return "load the module and use --backend kernel";
		/* fallthrough */
	case -ENODEV:
	case -ENOENT:
		return "load it: modprobe pvas, or insmod pvas.ko from where it was built";
	case -EACCES:
		return "let this user open /dev/pvas: see pvas(4)";
	case -EPROTO:
		return "install module and library of one release";
	case -ENOMEM:
	case -EAGAIN:
		return "memory or processes have run out: see ulimit -a";
	case -EMFILE:
		return "raise the limit of open files: ulimit -n";
	case -ENOSPC:
		return "too many spaces: see /proc/pvas";
	default:
		return "see the kernel log: dmesg";
	}
}

static int complain_create(int err, int backend)
{
	const char *why = pvas_error_get();
	char limit[128];

	if ((err == -ENOMEM || err == -EAGAIN) && diagnose_memory_limit(limit, sizeof(limit))) {
		complain("cannot make the address space: %s: %s (raise it: ulimit -d unlimited -v unlimited)",
			 strerror(-err), limit);
		return STATUS_FAILED;
	}
	if (err == -ENOSYS && diagnose_inside_job()) {
		complain("cannot make the address space: this pvasrun runs inside a job of another one with the user backend, which can't hold a second space (start it outside, or all programs in one job with ':', or load the module)");
		return STATUS_FAILED;
	}
	complain("cannot make the address space: %s (%s)", why[0] ? why : strerror(-err),
		 create_hint(err, backend));
	return STATUS_FAILED;
}

static int create(struct run *run, uint64_t partition_size, unsigned int *places)
{
	struct pvas_create_attr attr = {
		.size = sizeof(attr),
		.backend = run->opt->backend,
		.partition_size = partition_size,
	};
	unsigned int last;
	int err;

	err = pvas_space_create(&run->space, &attr);
	if (err)
		return err;
	err = pvas_space_get_bounds(run->space, &run->first, &last, &run->partition_size);
	*places = last - run->first + 1;
	return err;
}

static void note_space(const struct run *run, unsigned int places)
{
	char size[24];

	note("backend %s, space %u, partitions of %s (%u of %u used)",
	     pvas_space_get_backend(run->space) == PVAS_BACKEND_KERNEL ? "kernel" : "user",
	     pvas_space_get_id(run->space), size_text(run->partition_size, size), run->opt->tasks,
	     places);
}

/* Partitions of the size that was asked for */
static int open_as_told(struct run *run, uint64_t size)
{
	unsigned int places;
	char text[24];
	int err;

	err = create(run, size, &places);
	if (err)
		return complain_create(err, run->opt->backend);
	if (places < run->opt->tasks) {
		complain("%u partitions of %s are too few for %u tasks (choose a smaller --partition-size)",
			 places, size_text(size, text), run->opt->tasks);
		return STATUS_FAILED;
	}
	note_space(run, places);
	return 0;
}

/*
 * How many partitions are reserved is known only when the space is there: while
 * too few are left, or no free range of addresses has room for one, halve the size.
 */
int space_open(struct run *run)
{
	const uint64_t usual = 1ULL << PVAS_SHIFT_DEFAULT, least = 1ULL << PVAS_SHIFT_MIN;
	uint64_t size = run->opt->partition_size;
	unsigned int places;
	int err;

	if (size)
		return open_as_told(run, size);
	for (size = precheck_partition_size(run->opt->tasks); size > least; size /= 2) {
		err = create(run, size, &places);
		if (err && (err != -ENOMEM || size <= usual))
			return complain_create(err, run->opt->backend);
		if (!err && precheck_enough(size, places, run->opt->tasks)) {
			note_space(run, places);
			return 0;
		}
		pvas_space_destroy(run->space);
		run->space = NULL;
	}
	return open_as_told(run, least);
}
