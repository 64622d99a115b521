/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The key that pvasrun has chosen for all memory servers of a job */
#ifndef PVAS_FAR_JOB_KEY_H
#define PVAS_FAR_JOB_KEY_H

#include <stdint.h>

/* NULL: none was chosen */
const uint8_t *far_key_of_job(void);

#endif
