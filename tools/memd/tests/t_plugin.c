// SPDX-License-Identifier: GPL-2.0-only
/* usage: t_plugin HOST:PORT KEYFILE: a store as libpvasfar opens it, by its plugin */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "../key.h"
#include "../store.h"

static char page[4096] __attribute__((aligned(4096))) = "page";

static void own(int sig)
{
	(void)sig;
}

/* To be called twice: all signals have the program's handlers still. */
static int keeps_signals(void)
{
	struct sigaction act;
	static int set;
	int sig, kept = 1;

	for (sig = 1; sig < SIGRTMIN; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		if (!set)
			signal(sig, own);
		sigaction(sig, NULL, &act);
		kept &= act.sa_handler == own;
	}
	set = 1;
	return kept;
}

int main(int argc, char **argv)
{
	uint8_t key[FAR_KEY_BYTES];
	struct far_store_config config = { argv[1], 4096, 16, key };
	struct far_store *store;
	char why[160];

	if (argc != 3 || far_key_read(argv[2], key, why, sizeof(why)))
		return 3;
	keeps_signals();
	if (far_store_open(&config, &store) || store->ops->put(store, 3, 1, page)) {
		puts(far_error());
		return 1;
	}
	memset(page, 0, sizeof(page));
	if (store->ops->get(store, 3, 1, page) || strcmp(page, "page"))
		return 2;
	store->ops->close(store);
	if (!keeps_signals()) {
		puts("a signal has another handler");
		return 4;
	}
	return 0;
}
