// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale memory --model pvas: a rank of our BTL, after an exchange with all others. */
#include "command.h"

#include <inttypes.h>

#define DEFAULT_RANKS	225
#define DEFAULT_CAP	8

static void print_text(const struct options *o)
{
	unsigned int i;
	uint64_t n;

	printf("bytes a rank; at most %" PRIu64 " fast peers\n\n%20s %12s %20s\n", o->cap, "ranks",
	       "fast peers", "bytes a rank");
	for (i = 0; i < o->ranks.nr; i++) {
		n = o->ranks.value[i];
		printf("%20" PRIu64 " %12" PRIu64 " %20" PRIu64 "  %8s\n", n,
		       scale_pvas_fast_peers(n, o->cap), scale_pvas_bytes(n, o->cap),
		       human_bytes(scale_pvas_bytes(n, o->cap)).text);
	}
}

static void print_csv(const struct options *o)
{
	unsigned int i;
	uint64_t n;

	puts("ranks,cap,model,fast_peers,bytes");
	for (i = 0; i < o->ranks.nr; i++) {
		n = o->ranks.value[i];
		printf("%" PRIu64 ",%" PRIu64 ",pvas,%" PRIu64 ",%" PRIu64 "\n", n, o->cap,
		       scale_pvas_fast_peers(n, o->cap), scale_pvas_bytes(n, o->cap));
	}
}

static void print_json(const struct options *o)
{
	unsigned int i;
	uint64_t n;

	printf("{\"schema\":1,\"command\":\"memory\",\"model\":\"pvas\",\"cap\":%" PRIu64
	       ",\"jobs\":[", o->cap);
	for (i = 0; i < o->ranks.nr; i++) {
		n = o->ranks.value[i];
		printf("%s{\"ranks\":%" PRIu64 ",\"fast_peers\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
		       i ? "," : "", n, scale_pvas_fast_peers(n, o->cap),
		       scale_pvas_bytes(n, o->cap));
	}
	puts("]}");
}

static int set_defaults(struct options *o)
{
	static const char *const others[] = {
		"nodes", "ppn", "comms", "contexts", "original", "hops", "plot",
	};
	unsigned int i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (options_given(o, others[i]))
			return fail_usage("--%s does not go with --model pvas", others[i]);
	if (!o->ranks.nr)
		o->ranks = (struct list){ .nr = 1, .value = { DEFAULT_RANKS } };
	if (!o->cap)
		o->cap = DEFAULT_CAP;
	for (i = 0; i < o->ranks.nr; i++)
		if (scale_pvas_bytes(o->ranks.value[i], o->cap) == SCALE_TOO_LARGE)
			return fail_usage("%" PRIu64 " ranks: the bytes of one do not fit into 64 bits",
					  o->ranks.value[i]);
	return 0;
}

int pvas_command(const struct options *given)
{
	static void (*const print[])(const struct options *o) = {
		[TEXT] = print_text, [CSV] = print_csv, [JSON] = print_json,
	};
	struct options o = *given;
	int status = set_defaults(&o);

	if (!status)
		print[o.format](&o);
	return status;
}
