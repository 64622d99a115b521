// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which pages go first. The lock is held while it is looked at: no worker changes anything. */
#include <string.h>

#include "far.h"
#include "far_test.h"

enum { NEEDED = 16, SLOTS = 64 };

#define PAGE ((size_t)65536)
#define RAM (64 * PAGE)
#define SIZE (128 * PAGE)

FIXTURE(evict)
{
	char *p;
	uint64_t first;
	uint32_t slot[SLOTS];
	unsigned int slots;
};

/* Have the workers made as much room as they want to? Then nothing goes by itself. */
static bool is_quiet(void)
{
	bool quiet;

	pthread_mutex_lock(&far.lock);
	quiet = !far.free_low && far.mapped + far_reserve_low() <= far.frames;
	pthread_mutex_unlock(&far.lock);
	return quiet;
}

/* All is written, so that the pages brought in are the only clean ones. */
FIXTURE_SETUP(evict)
{
	const struct how how = { "zip", PAGE };

	ASSERT_EQ(0, open_far(&how, RAM, SIZE));
	ASSERT_EQ(0, pvas_far_alloc((void **)&self->p, SIZE));
	memset(self->p, 1, SIZE);
	ASSERT_EQ(0, pvas_far_advise(self->p, NEEDED * PAGE, PVAS_FAR_WILL_NEED));
	while (!is_quiet())
		usleep(1000);
	self->first = far_page_at((uintptr_t)self->p);
}

FIXTURE_TEARDOWN(evict)
{
	pvas_far_close();
}

/* Lock, with no slot free for a page on its way out, and after one round of the clock's hand */
static void begin(FIXTURE_DATA(evict) *self)
{
	uint32_t n;

	pthread_mutex_lock(&far.lock);
	while (self->slots < SLOTS && (n = far_slot_for_out()) != FAR_NO_SLOT)
		self->slot[self->slots++] = n;
	for (n = far.resident.head; n != FAR_NONE; n = far.page_link[n].next)
		far.page[n].flags &= (uint8_t)~FAR_REFERENCED;
}

static void end(FIXTURE_DATA(evict) *self)
{
	while (self->slots)
		far_slot_free(self->slot[--self->slots]);
	pthread_mutex_unlock(&far.lock);
}

TEST_F(evict, pages_just_brought_in_stay)
{
	begin(self);
	EXPECT_EQ(false, far_evict());
	end(self);
}

TEST_F(evict, a_clean_page_goes_without_a_slot)
{
	ASSERT_EQ(0, pvas_far_advise(self->p, PAGE, PVAS_FAR_COLD));
	begin(self);
	EXPECT_EQ(true, far_evict());
	EXPECT_EQ(FAR_STORED, far.page[self->first].state);
	end(self);
}

TEST_F(evict, a_page_that_is_there_is_as_one_brought_in)
{
	const struct far_page *page = &far.page[self->first];

	ASSERT_EQ(0, pvas_far_advise(self->p, PAGE, PVAS_FAR_COLD));
	begin(self);
	EXPECT_EQ(self->first, far.resident.head);
	end(self);
	ASSERT_EQ(0, pvas_far_advise(self->p, PAGE, PVAS_FAR_WILL_NEED));
	EXPECT_EQ(FAR_REFERENCED, page->flags & (FAR_COLD | FAR_REFERENCED));
	pthread_mutex_lock(&far.lock);
	EXPECT_EQ(self->first, far.resident.tail);
	pthread_mutex_unlock(&far.lock);
}

TEST_HARNESS_MAIN
