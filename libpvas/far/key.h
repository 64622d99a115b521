/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files with the key of a job: FAR_KEY_BYTES bytes, written as hexadecimal digits */
#ifndef PVAS_FAR_KEY_H
#define PVAS_FAR_KEY_H

#include <stdint.h>
#include <stddef.h>

#include "store.h"

/**
 * far_key_read - read a job's key
 * @name:	a file; "-": standard input; "fd:N": an open descriptor, which is closed
 * @key:	receives FAR_KEY_BYTES bytes
 * @why:	receives the reason, a part of a line, if it fails
 *
 * A file that others may read or change is refused, and a symbolic link.
 *
 * Return: 0 or a negative errno value.
 */
int far_key_read(const char *name, uint8_t *key, char *why, size_t len);

/* The digits, a newline and a NUL */
#define FAR_KEY_TEXT	(2 * FAR_KEY_BYTES + 2)

/** far_key_text - the line that far_key_read() reads; @text has FAR_KEY_TEXT bytes */
void far_key_text(const uint8_t *key, char *text);

/** far_random - random bytes, at most 256. Return: 0 or a negative errno value */
int far_random(void *to, size_t bytes);

/** far_wipe - overwrites a secret, even if nobody reads that memory again */
void far_wipe(void *secret, size_t bytes);

/** far_key_make - write a new random key to a new file that only its owner may read */
int far_key_make(const char *name, char *why, size_t len);

#endif
