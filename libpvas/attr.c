// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copy a caller's attributes, which may be of an older or newer libpvas, and check them. */
#include <errno.h>
#include <string.h>

#include "backend.h"

/* The first published size: all up to @partition_size. */
#define CREATE_SIZE_1 sizeof(struct pvas_create_attr)

static int all_zero(const char *p, size_t n)
{
	while (n--)
		if (*p++)
			return 0;
	return 1;
}

int pvas_copy_attr(void *to, size_t size, size_t first, const void *from)
{
	size_t theirs;

	memset(to, 0, size);
	if (!from)
		return 0;
	memcpy(&theirs, from, sizeof(theirs));
	if (!theirs)
		theirs = first;
	if (theirs < first)
		return pvas_fail(-EINVAL, "the size member of the attributes is %zu: too small",
				 theirs);
	if (theirs > size && !all_zero((const char *)from + size, theirs - size))
		return pvas_fail(-E2BIG, "the attributes ask for what this libpvas does not know");
	memcpy(to, from, theirs < size ? theirs : size);
	return 0;
}

static int check_create_attr(const struct pvas_create_attr *a)
{
	uint64_t size = a->partition_size;

	if (a->backend < PVAS_BACKEND_AUTO || a->backend > PVAS_BACKEND_USER)
		return pvas_fail(-EINVAL, "no backend has the number %d", a->backend);
	if (a->flags & ~PVAS_KEEP_ON_CLOSE)
		return pvas_fail(-EINVAL, "unknown flags %#x", a->flags & ~PVAS_KEEP_ON_CLOSE);
	if (size & (size - 1))
		return pvas_fail(-EINVAL, "partition size %llu is not a power of two",
				 (unsigned long long)size);
	if (size && (size < 1ULL << PVAS_SHIFT_MIN || size > 1ULL << PVAS_SHIFT_MAX))
		return pvas_fail(-EINVAL, "partition size %llu is not from 4 GiB to 8 TiB",
				 (unsigned long long)size);
	return 0;
}

int pvas_get_create_attr(struct pvas_create_attr *to, const struct pvas_create_attr *from)
{
	int err = pvas_copy_attr(to, sizeof(*to), CREATE_SIZE_1, from);

	return err ? err : check_create_attr(to);
}
