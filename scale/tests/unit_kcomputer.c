// SPDX-License-Identifier: GPL-2.0-only
/* The K paper: figure 10, its extrapolation, and the sizes that the text names. */
#include <string.h>

#include "../command.h"
#include "unit.h"

static void check_figure10(void)
{
	STRING(human_bytes(scale_k_bytes(SCALE_K_FAST, 9216, 1024)).text, "12.9 GB");
	STRING(human_bytes(scale_k_bytes(SCALE_K_CAPPED, 9216, 1024)).text, "1.52 GB");
	STRING(human_bytes(scale_k_bytes(SCALE_K_LEAN, 9216, 1024)).text, "140 MB");
	STRING(human_bytes(scale_k_base_bytes()).text, "80.0 MB");
	NUMBER(scale_k_bytes(SCALE_K_FAST, 9216, 1024), 12900000000);
	NUMBER(scale_k_bytes(SCALE_K_CAPPED, 9216, 1024), 1520000000);
	NUMBER(scale_k_bytes(SCALE_K_LEAN, 9216, 1024), 140000000);
	NUMBER(scale_k_base_bytes(), 80000000);
	/* The machine has 82,944 nodes. */
	STRING(human_bytes(scale_k_bytes(SCALE_K_FAST, 82944, 1024)).text, "115 GB");
	STRING(human_bytes(scale_k_bytes(SCALE_K_CAPPED, 82944, 1024)).text, "2.00 GB");
	STRING(human_bytes(scale_k_bytes(SCALE_K_LEAN, 82944, 1024)).text, "620 MB");
	/* Parts of the memory of a node, 16 GB */
	PRINTED(scale_k_bytes(SCALE_K_FAST, 9216, 1024) / 16e9 * 10, "8");
	PRINTED(scale_k_bytes(SCALE_K_CAPPED, 9216, 1024) / 16e9 * 10, "1");
}

static void check_coefficients(void)
{
	struct scale_notes notes = { 0 };

	PRINTED(scale_k_lean_peer_bytes() / 1e3, "6.5");
	PRINTED(scale_k_fast_peer_bytes(SCALE_K_CAPPED) / 1e6, "1.35");
	PRINTED(scale_k_fast_buffers_bytes() / 1e6, "1.08");
	NUMBER(scale_k_fast_peer_bytes(SCALE_K_LEAN), 0);
	/* With the b of one mode, the other's value is not that of the figure. */
	PRINTED(scale_k_fast_peer_bytes(SCALE_K_FAST) / 1e6, "1.38");
	PRINTED((140e6 + 9216. * scale_k_fast_peer_bytes(SCALE_K_CAPPED)) / 1e9, "12.6");
	PRINTED((140e6 + 1024. * scale_k_fast_peer_bytes(SCALE_K_FAST)) / 1e9, "1.56");
	scale_k_notes(&notes);
	EXPECT(strstr(notes.text[0], "1.35 MB") && strstr(notes.text[0], "1.38 MB"));
	EXPECT(strstr(notes.text[1], "1.08 MB"));
	EXPECT(strstr(notes.text[2], "5.0 times") && strstr(notes.text[2], "is 5.07 times"));
}

static void check_peers(void)
{
	NUMBER(scale_k_fast_peers(SCALE_K_CAPPED, 100, 1024), 100);
	NUMBER(scale_k_fast_peers(SCALE_K_CAPPED, 9216, 1024), 1024);
	NUMBER(scale_k_fast_peers(SCALE_K_FAST, 9216, 1024), 9216);
	NUMBER(scale_k_fast_peers(SCALE_K_LEAN, 9216, 1024), 0);
	NUMBER(scale_k_bytes(SCALE_K_FAST, 1UL << 60, 1), SCALE_TOO_LARGE);
}

static void check_buffers(void)
{
	STRING(human_bytes(scale_k_all_eager_bytes(100000)).text, "25.6 GB");
	NUMBER(scale_k_all_eager_bytes(100000), 25600000000);
	NUMBER(scale_k_eager_rdma_bytes(), 32 << 10);
	NUMBER(scale_k_eager_limit_bytes(1), 18 << 10);
	NUMBER(scale_k_eager_limit_bytes(40), 60 << 10);
	NUMBER(scale_k_eager_limit_bytes(14), 32 << 10);
	NUMBER(scale_k_latency_ns(1), 1270);
	NUMBER(scale_k_latency_ns(2) - scale_k_latency_ns(1), 100);
	NUMBER(scale_k_eager_limit_bytes(UINT64_MAX), SCALE_TOO_LARGE);
	NUMBER(scale_k_latency_ns(UINT64_MAX), SCALE_TOO_LARGE);
}

void test_kcomputer(void)
{
	check_figure10();
	check_coefficients();
	check_peers();
	check_buffers();
}
