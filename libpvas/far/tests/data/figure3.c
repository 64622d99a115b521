// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Figure 3 of the paper on DLM's page exchange, as printed, but for its size, which may be
 * given, and its declarations, which it leaves out. It writes an array larger than memory,
 * and reads one element of each MiB.
 */
#include <dlm.h>

#ifndef ENUM
#define ENUM ((unsigned long ) (1L<<28))  //256M Elements
#endif
static int argc;
static char **argv;
static unsigned long *array, i;

int main()
{
    dlm_startup(&argc, &argv);
    // 2GiB array allocation
    array = (unsigned long *) dlm_alloc(sizeof(unsigned long) * ENUM);
    // Initialization, array parallel write
#pragma omp parallel for
    for ( i = 0; i < ENUM; i++ ) array[i] = i;
    // Array parallel read per 1MB DLM page
#pragma omp parallel for
    for ( i = 0; i < ENUM; i+=(1L<<17) ) // data read per 1MB
        if (array[i] != i ) return 1;
        dlm_shutdown();
}
