// SPDX-License-Identifier: GPL-2.0-only
/* Create the space that the tasks share. */
#include "space.h"

#include <errno.h>
#include <string.h>

#include <linux/pvas.h>

#include "diagnose.h"
#include "far.h"
#include "job.h"
#include "precheck.h"
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

static int report_create_error(int err, int backend)
{
	const char *why = pvas_error_get();
	char limit[128];

	if (far_failure()) {
		report_error("far memory: %s", far_failure());
		return STATUS_FAILED;
	}
	if ((err == -ENOMEM || err == -EAGAIN) && diagnose_memory_limit(limit, sizeof(limit))) {
		report_error("cannot make the address space: %s: %s (raise it: ulimit -d unlimited -v unlimited)",
			     strerror(-err), limit);
		return STATUS_FAILED;
	}
	if (err == -ENOSYS && diagnose_inside_job()) {
		report_error("cannot make the address space: this pvasrun runs inside a job of another one with the user backend, which can't hold a second space (start it outside, or all programs in one job with ':', or load the module)");
		return STATUS_FAILED;
	}
	report_error("cannot make the address space: %s (%s)", why[0] ? why : strerror(-err),
		     create_hint(err, backend));
	return STATUS_FAILED;
}

static int create(struct job_space *space, const struct options *opt, uint64_t partition_size,
		  unsigned int *places)
{
	struct pvas_create_attr attr = {
		.size = sizeof(attr),
		.backend = opt->backend,
		.partition_size = partition_size,
	};
	unsigned int last;
	int err;

	err = pvas_space_create(&space->space, &attr);
	if (err)
		return err;
	err = pvas_space_get_bounds(space->space, &space->first, &last, &space->partition_size);
	*places = last - space->first + 1;
	return err;
}

static void report_space(const struct job_space *space, unsigned int tasks, unsigned int places)
{
	char size[24];

	report_note("backend %s, space %u, partitions of %s (%u of %u used)",
		    pvas_space_get_backend(space->space) == PVAS_BACKEND_KERNEL ? "kernel" : "user",
		    pvas_space_get_id(space->space), size_text(space->partition_size, size), tasks,
		    places);
}

/* With partitions of a given size */
static int open_with_size(struct job_space *space, const struct options *opt, uint64_t size)
{
	unsigned int places;
	char text[24];
	int err;

	err = create(space, opt, size, &places);
	if (err)
		return report_create_error(err, opt->backend);
	if (places < opt->tasks) {
		report_error("%u partitions of %s are too few for %u tasks (choose a smaller --partition-size)",
			     places, size_text(size, text), opt->tasks);
		return STATUS_FAILED;
	}
	report_space(space, opt->tasks, places);
	return 0;
}

/*
 * The number of usable partitions is only known once the space exists. Halve the size
 * while there are too few, or while no free range of addresses is large enough.
 */
int space_open(struct job_space *space, const struct options *opt)
{
	const uint64_t usual = 1ULL << PVAS_SHIFT_DEFAULT, least = 1ULL << PVAS_SHIFT_MIN;
	uint64_t size = opt->partition_size;
	unsigned int places;
	int err;

	if (size)
		return open_with_size(space, opt, size);
	for (size = precheck_partition_size(opt->tasks); size > least; size /= 2) {
		err = create(space, opt, size, &places);
		if (err && (err != -ENOMEM || size <= usual))
			return report_create_error(err, opt->backend);
		if (!err && precheck_enough(size, places, opt->tasks)) {
			report_space(space, opt->tasks, places);
			return 0;
		}
		space_close(space);
	}
	return open_with_size(space, opt, least);
}

void space_close(struct job_space *space)
{
	pvas_space_destroy(space->space);
	space->space = NULL;
}
