/* SPDX-License-Identifier: GPL-2.0-only */
/* --check-run: how large a partition a program needs. */
#ifndef PVASRUN_MEASURE_H
#define PVASRUN_MEASURE_H

#include <stdint.h>

/* The least partition with room for a reservation of @peak bytes; 0: none is sure to have it */
uint64_t measure_partition(uint64_t peak);

/* For how many tasks pvasrun chooses partitions of at least @size */
unsigned int measure_tasks(uint64_t size);

/*
 * Run @argv as an ordinary process, and print what its largest address space means for a
 * task. Returns pvasrun's exit status.
 */
int measure_run(char **argv);

#endif
