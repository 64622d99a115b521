// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copy a caller's attribute struct, be it older or newer than we are. */
#include <errno.h>
#include <string.h>

#include "private.h"

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
