// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * HMAC-SHA-256 over both sides' messages, with a label for each purpose: a MAC made for one
 * purpose, or for one connection, is of no use in another.
 */
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include "../key.h"
#include "../store.h"
#include "auth.h"

_Static_assert(FAR_MAC_BYTES == SHA256_DIGEST_SIZE, "auth");

static void begin(struct hmac_sha256_ctx *ctx, const uint8_t *key, const char *label)
{
	hmac_sha256_set_key(ctx, FAR_KEY_BYTES, key);
	hmac_sha256_update(ctx, strlen(label) + 1, (const uint8_t *)label);
}

static void add(struct hmac_sha256_ctx *ctx, const void *data, size_t bytes)
{
	hmac_sha256_update(ctx, bytes, data);
}

static void end(struct hmac_sha256_ctx *ctx, uint8_t *mac, size_t bytes)
{
	hmac_sha256_digest(ctx, bytes, mac);
	far_wipe(ctx, sizeof(*ctx));
}

uint64_t far_token(const uint8_t *key)
{
	struct hmac_sha256_ctx ctx;
	uint64_t token;

	begin(&ctx, key, "pvas-memd token");
	end(&ctx, (uint8_t *)&token, sizeof(token));
	return token;
}

void far_prove_store(const uint8_t *key, const struct far_hello *hello,
		     const struct far_challenge *challenge, uint8_t *mac)
{
	struct hmac_sha256_ctx ctx;

	begin(&ctx, key, "pvas-memd store");
	add(&ctx, hello, sizeof(*hello));
	add(&ctx, challenge, sizeof(*challenge));
	end(&ctx, mac, FAR_MAC_BYTES);
}

void far_prove_server(const uint8_t *key, const struct far_hello *hello,
		      const struct far_challenge *challenge, const struct far_welcome *welcome,
		      uint8_t *mac)
{
	struct hmac_sha256_ctx ctx;

	begin(&ctx, key, "pvas-memd server");
	add(&ctx, hello, sizeof(*hello));
	add(&ctx, challenge, sizeof(*challenge));
	add(&ctx, welcome, offsetof(struct far_welcome, mac));
	end(&ctx, mac, FAR_MAC_BYTES);
}

bool far_mac_equal(const uint8_t *a, const uint8_t *b)
{
	return memeql_sec(a, b, FAR_MAC_BYTES);
}
