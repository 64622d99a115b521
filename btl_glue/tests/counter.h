/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A performance variable of the component, through MPI_T. */
#ifndef PVAS_TEST_COUNTER_H
#define PVAS_TEST_COUNTER_H

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static MPI_T_pvar_session counter_session;

struct counter {
	MPI_T_pvar_handle handle;
	int found;
};

/* Call it after MPI_Init(), before the first look-up. */
static inline void counters_begin(void)
{
	int provided;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_T_pvar_session_create(&counter_session);
}

#ifndef COUNTER_PREFIX
#define COUNTER_PREFIX "btl_pvas_"
#endif

/* The component's variable of this name, which counts from now on */
static inline void counter_find(struct counter *c, const char *wanted)
{
	int verbosity, class, bind, ro, cont, atomic, len, textlen, count, n, i;
	char full[128], name[128], text[256];
	MPI_Datatype type;
	MPI_T_enum e;

	snprintf(full, sizeof(full), COUNTER_PREFIX "%s", wanted);
	c->found = 0;
	MPI_T_pvar_get_num(&n);
	for (i = 0; i < n && !c->found; i++) {
		len = sizeof(name);
		textlen = sizeof(text);
		if (!MPI_T_pvar_get_info(i, name, &len, &verbosity, &class, &type, &e, text,
					 &textlen, &bind, &ro, &cont, &atomic) &&
		    !strcmp(name, full))
			c->found = !MPI_T_pvar_handle_alloc(counter_session, i, NULL, &c->handle,
							    &count);
	}
}

/* -1: there is no such variable */
static inline long long counter_read(const struct counter *c)
{
	unsigned long long value = 0;

	if (!c->found)
		return -1;
	MPI_T_pvar_read(counter_session, c->handle, &value);
	return (long long)value;
}

#endif /* PVAS_TEST_COUNTER_H */
