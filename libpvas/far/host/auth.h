/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a store and a memory server prove to each other that they know the job's key */
#ifndef PVAS_FAR_AUTH_H
#define PVAS_FAR_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire.h"

/** far_token - the number that a store with this key sends when it connects */
uint64_t far_token(const uint8_t *key);

/** far_prove_store - the MAC of a store's proof */
void far_prove_store(const uint8_t *key, const struct far_hello *hello,
		     const struct far_challenge *challenge, uint8_t *mac);

/** far_prove_server - the MAC of a server's welcome, which has its other members set */
void far_prove_server(const uint8_t *key, const struct far_hello *hello,
		      const struct far_challenge *challenge, const struct far_welcome *welcome,
		      uint8_t *mac);

/** far_mac_equal - compares two MACs in a time that doesn't depend on them */
bool far_mac_equal(const uint8_t *a, const uint8_t *b);

#endif
