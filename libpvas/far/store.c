// SPDX-License-Identifier: LGPL-2.1-or-later
/* Open a store by its name, and the text of errors. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

static __thread char text[512];

int far_fail(int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return err;
}

const char *far_error(void)
{
	return text;
}

static const struct far_store_ops *const schemes[] = { &far_store_file, &far_store_zip };

int far_store_open(const struct far_store_config *config, struct far_store **store)
{
	struct far_store_config rest = *config;
	unsigned int i;
	size_t len;

	for (i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		len = strlen(schemes[i]->scheme);
		if (strncmp(config->spec, schemes[i]->scheme, len))
			continue;
		rest.spec += len;
		if (*rest.spec && *rest.spec++ != ':')
			continue;
		return schemes[i]->open(&rest, store);
	}
#ifdef FAR_WITH_UCX
	return far_store_host.open(config, store);
#else
	return far_fail(-EINVAL, "store %s: not known (file:PATH or zip)", config->spec);
#endif
}

int far_store_together(struct far_store *store, const struct far_io *ios, unsigned int count)
{
	const struct far_io *io;
	int err = 0;

	if (count > 1 && store->ops->together)
		return store->ops->together(store, ios, count);
	for (io = ios; io < ios + count && !err; io++)
		err = io->put ? store->ops->put(store, io->first, io->count, io->buf) :
				store->ops->get(store, io->first, io->count, io->buf);
	return err;
}
