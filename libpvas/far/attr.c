// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parameters of pvas_far_open(): attributes, else the environment, else defaults. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "far.h"
#include "store.h"

#define ATTR_SIZE_FIRST offsetof(struct pvas_far_attr, reserved)

/* With PVAS_FAR_PAGE_AUTO: bytes in a page, and the least number of them in the budget */
enum { AUTO_PAGE = 16 << 10, AUTO_PAGES = 256 };

/* A count of bytes such as 512M; -1 if it is none */
static int parse_size(const char *text, uint64_t *size)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;

	errno = 0;
	*size = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno)
		return -1;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		unsigned int shift = 10 * (unsigned int)(unit - units + 1);

		if (*size >> (64 - shift))
			return -1;
		*size <<= shift;
		end++;
	}
	return *end ? -1 : 0;
}

/* An attribute, or the environment's variable if it is 0 */
static int choose(uint64_t *value, uint64_t attr, const char *variable)
{
	const char *text = secure_getenv(variable);

	*value = attr;
	if (attr || !text || !*text)
		return 0;
	if (parse_size(text, value))
		return far_fail(-EINVAL, "%s=%s: not a number of bytes such as 512M", variable, text);
	return 0;
}

static uint64_t power_of_two_below(uint64_t n)
{
	uint64_t p = 1;

	while (p <= n / 2)
		p *= 2;
	return p;
}

/*
 * Small pages, for those who jump; who goes in order gets many at a time. The budget must have
 * room for enough of them, and the tables for all.
 */
static void choose_page(struct far_config *c)
{
	c->page = AUTO_PAGE;
	while (c->page > PVAS_FAR_PAGE_MIN && c->ram / c->page < AUTO_PAGES)
		c->page /= 2;
	while (c->page < PVAS_FAR_PAGE_MAX && c->size / c->page >= FAR_NONE / 2)
		c->page *= 2;
}

static int choose_page_size(struct far_config *c, uint64_t page)
{
	const char *text = secure_getenv("PVAS_FAR_PAGE");

	c->page = PVAS_FAR_PAGE_AUTO;
	if (page == PVAS_FAR_PAGE_AUTO || (!page && text && !strcmp(text, "auto")))
		return 0;
	return choose(&c->page, page, "PVAS_FAR_PAGE");
}

/* For all that was not set */
static void set_defaults(struct far_config *c)
{
	if (!c->ram)
		c->ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
	if (!c->size)
		c->size = 16 * c->ram;
	c->adapt = c->page == PVAS_FAR_PAGE_AUTO;
	if (c->adapt)
		choose_page(c);
	if (!c->page) {
		c->page = power_of_two_below(c->ram / 128);
		c->page = c->page > 1 << 20 ? 1 << 20 : c->page;
		c->page = c->page < PVAS_FAR_PAGE_MIN ? PVAS_FAR_PAGE_MIN : c->page;
	}
	if (!c->copies)
		c->copies = 1;
	if (!c->threads)
		c->threads = 4;
}

static int check(const struct far_config *c)
{
	if (c->page < PVAS_FAR_PAGE_MIN || c->page > PVAS_FAR_PAGE_MAX || c->page & (c->page - 1))
		return far_fail(-EINVAL, "a page of %" PRIu64 " bytes: not a power of two from 4K to 64M", c->page);
	if (c->ram / c->page < PVAS_FAR_RAM_MIN_PAGES)
		return far_fail(-EINVAL, "a budget of %" PRIu64 " bytes is too small: with pages of %" PRIu64 " it must be %" PRIu64 " at least",
				c->ram, c->page, c->page * PVAS_FAR_RAM_MIN_PAGES);
	/* Lists have 32 bits for a page; the kernel has 47 for an address. */
	if (c->size / c->page >= FAR_NONE - 1 || c->size >> 46 || c->ram >> 46)
		return far_fail(-EINVAL, "%" PRIu64 " bytes of far memory are too many for pages of %" PRIu64, c->size, c->page);
	if (c->copies > 2)
		return far_fail(-EINVAL, "%u copies: 1 or 2 are possible", c->copies);
	if (c->threads > FAR_THREADS_MAX)
		return far_fail(-EINVAL, "%u threads: at most %d", c->threads, FAR_THREADS_MAX);
	return 0;
}

/* Check the caller's struct, and make it one of ours. */
static int import(struct pvas_far_attr *to, const struct pvas_far_attr *attr)
{
	static const struct pvas_far_attr none;
	const unsigned char *bytes = (const void *)attr;
	size_t i;

	*to = none;
	if (!attr)
		return 0;
	if (attr->size < ATTR_SIZE_FIRST)
		return far_fail(-EINVAL, "attr.size is not the size of the struct");
	for (i = sizeof(*to); i < attr->size; i++)
		if (bytes[i])
			return far_fail(-E2BIG, "an attribute that this libpvasfar does not know");
	memcpy(to, attr, attr->size < sizeof(*to) ? attr->size : sizeof(*to));
	if (to->flags & ~PVAS_FAR_USER_FAULTS_ONLY || to->reserved)
		return far_fail(-EINVAL, "unknown flags 0x%x", to->flags);
	return 0;
}

static int choose_stores(struct far_config *c, const char *stores)
{
	if (!stores)
		stores = secure_getenv("PVAS_FAR");
	if (!stores || !*stores)
		stores = "zip";
	if (strlen(stores) >= sizeof(c->stores))
		return far_fail(-EINVAL, "the list of stores is too long");
	strcpy(c->stores, stores);
	return 0;
}

static int choose_protocol(struct far_config *c, const char *name)
{
	if (!name)
		name = secure_getenv("PVAS_FAR_PROTOCOL");
	if (!name || !*name)
		name = far_protocol_pvas.name;
	c->protocol = far_protocol_find(name);
	return c->protocol ? 0 :
	       far_fail(-EINVAL, "there is no protocol '%.40s' (pvas, r3, r58 or r77)", name);
}

int far_config_get(struct far_config *c, const struct pvas_far_attr *attr)
{
	struct pvas_far_attr a;
	uint64_t copies, threads;
	int err = import(&a, attr);

	c->rows = NULL;

	if (!err)
		err = choose_stores(c, a.stores);
	if (!err)
		err = choose_protocol(c, a.protocol);
	if (!err)
		err = choose(&c->ram, a.ram, "PVAS_FAR_RAM");
	if (!err)
		err = choose(&c->size, a.far, "PVAS_FAR_SIZE");
	if (!err)
		err = choose_page_size(c, a.page);
	if (!err)
		err = choose(&copies, a.copies, "PVAS_FAR_COPIES");
	if (!err)
		err = choose(&threads, a.threads, "PVAS_FAR_THREADS");
	if (err)
		return err;
	c->copies = copies > UINT32_MAX ? UINT32_MAX : (unsigned int)copies;
	c->threads = threads > UINT32_MAX ? UINT32_MAX : (unsigned int)threads;
	c->user_only = a.flags & PVAS_FAR_USER_FAULTS_ONLY;
	set_defaults(c);
	return check(c);
}
