/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of pvas-scale neighbour: exchange.c, schedule_print.c */
#ifndef SCALE_EXCHANGE_H
#define SCALE_EXCHANGE_H

#include "command.h"

/* Of both algorithms, for one message size; rates are in bytes a microsecond */
struct exchange_times {
	double previous_us;
	double proposed_us;
	double previous_rate;
	double proposed_rate;
};

struct exchange_times exchange_times(const struct options *o, uint64_t bytes);

/* Replaces "all" by steps. Returns 0, or the exit status if there are not so many. */
int schedule_choose(struct options *o);
/* For the last of the message sizes */
void schedule_print_check(const struct options *o, const struct scale_schedule_check *check);
void schedule_print_json(const struct options *o, const struct scale_schedule_check *check);
void schedule_print_csv(const struct options *o);

#endif
