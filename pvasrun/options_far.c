// SPDX-License-Identifier: GPL-2.0-only
/* The options of far memory. */
#include <string.h>

#include "../libpvas/far/pvas_far.h"
#include "../libpvas/pvas.h"
#include "far_hosts.h"
#include "options.h"
#include "parse.h"

/* Many arrays are larger, and few other things */
#define THRESHOLD	(1ULL << 20)

static int take_size(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	return parse_size(text, value) || *value < least || *value > most;
}

static const char *take_hosts(struct far_options *far, const char *text)
{
	static struct far_host hosts[FAR_HOSTS_MAX];
	static char why[160] = "--far-start is a list of hosts: ";
	const size_t said = strlen("--far-start is a list of hosts: ");
	int count = far_hosts_parse(text, hosts, why + said, sizeof(why) - said);

	if (count < 0)
		return why;
	far->start = hosts;
	far->nr_start = (unsigned int)count;
	return NULL;
}

static const char *take_page(const char *text, uint64_t *page)
{
	if (!strcmp(text, "auto")) {
		*page = PVAS_FAR_PAGE_AUTO;
		return NULL;
	}
	return take_size(text, PVAS_FAR_PAGE_MIN, PVAS_FAR_PAGE_MAX, page) ||
		       (*page & (*page - 1)) ?
	       "--far-page is auto or a power of two from 4K to 64M" : NULL;
}

static int is_protocol(const char *text)
{
	static const char *const names[] = { "pvas", "r3", "r58", "r77" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i]))
			return 1;
	return 0;
}

const char *options_take_far(struct far_options *far, int key, const char *text)
{
	const uint64_t page = PVAS_FAR_PAGE_MIN, most = 1ULL << 45;

	switch (key) {
	case KEY_RAM:
		return take_size(text, page, most, &far->ram) ? "--ram is a size, as 2G" : NULL;
	case KEY_FAR_SIZE:
		return take_size(text, page, most, &far->size) ? "--far-size is a size, as 64G" : NULL;
	case KEY_FAR_PAGE:
		return take_page(text, &far->page);
	case KEY_FAR_THRESHOLD:
		return take_size(text, page, most, &far->threshold) ?
			       "--far-threshold is a size from 4K on" : NULL;
	case KEY_FAR_COPIES:
		return parse_count(text, 1, 2, &far->copies) ? "--far-copies is 1 or 2" : NULL;
	case KEY_FAR_KEY:
		far->key = text;
		return *text ? NULL : "--far-key is a file's name";
	case KEY_FAR_START:
		return take_hosts(far, text);
	case KEY_FAR_PROTOCOL:
		far->protocol = text;
		return is_protocol(text) ? NULL : "--far-protocol is pvas, r3, r58 or r77";
	default:
		far->stores = text;
		return *text ? NULL : "--far is a list of stores (zip, file:PATH or HOST:PORT)";
	}
}

const char *options_check_far(struct options *opt)
{
	const struct far_options *far = &opt->far;

	if (!far->ram && (far->stores || far->size || far->page || far->threshold || far->copies ||
			  far->key || far->start || far->protocol))
		return "--far and its options need --ram";
	if (!far->ram)
		return NULL;
	if (opt->backend == PVAS_BACKEND_KERNEL && far->start)
		return "--far-start needs the user backend (leave --backend kernel out)";
	if (opt->backend != PVAS_BACKEND_KERNEL)
		opt->backend = PVAS_BACKEND_USER;
	if (!far->threshold)
		opt->far.threshold = THRESHOLD;
	return NULL;
}
