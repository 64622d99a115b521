/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Doubly linked lists of numbers: of pages or of slots, whose links are in an array. */
#ifndef PVAS_FAR_LIST_H
#define PVAS_FAR_LIST_H

#include <stdint.h>

#define FAR_NONE UINT32_MAX

struct far_link {
	uint32_t next, prev;
};

struct far_list {
	uint32_t head, tail;
	uint32_t count;
};

#define FAR_LIST_EMPTY ((struct far_list){ FAR_NONE, FAR_NONE, 0 })

static inline void far_list_add_tail(struct far_list *list, struct far_link *links, uint32_t n)
{
	links[n] = (struct far_link){ FAR_NONE, list->tail };
	if (list->tail == FAR_NONE)
		list->head = n;
	else
		links[list->tail].next = n;
	list->tail = n;
	list->count++;
}

static inline void far_list_add_head(struct far_list *list, struct far_link *links, uint32_t n)
{
	links[n] = (struct far_link){ list->head, FAR_NONE };
	if (list->head == FAR_NONE)
		list->tail = n;
	else
		links[list->head].prev = n;
	list->head = n;
	list->count++;
}

static inline void far_list_remove(struct far_list *list, struct far_link *links, uint32_t n)
{
	struct far_link *l = &links[n];

	if (l->prev == FAR_NONE)
		list->head = l->next;
	else
		links[l->prev].next = l->next;
	if (l->next == FAR_NONE)
		list->tail = l->prev;
	else
		links[l->next].prev = l->prev;
	list->count--;
}

#endif
