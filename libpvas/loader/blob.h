/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loader as a blob in the library: see blob.S and start.S. */
#ifndef PVAS_LOADER_BLOB_H
#define PVAS_LOADER_BLOB_H

extern const char pvas_blob[], pvas_blob_end[];

/* Offsets of its entries */
#define PVAS_BLOB_TASK		0	/* a task starts here */
#define PVAS_BLOB_CONVERT	16	/* a process becomes a space here */
#define PVAS_BLOB_RESTORE	32	/* a signal handler returns to here (user backend) */
#define PVAS_BLOB_READER	48	/* a reader of others' memory (user backend) */

#endif /* PVAS_LOADER_BLOB_H */
