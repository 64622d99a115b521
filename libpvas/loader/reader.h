/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * User backend: messages between the launcher and its readers (../user/reader.c), on a
 * SOCK_SEQPACKET connection. Each request has one answer.
 */
#ifndef PVAS_LOADER_READER_H
#define PVAS_LOADER_READER_H

#include <linux/types.h>

#define PVAS_READER_PAGE	4096	/* so much is copied at most */

/* A new reader, for the connection that comes with the message */
#define PVAS_READER_NEW		1
/* Copy from or to the memory that came before */
#define PVAS_READER_READ	2
#define PVAS_READER_WRITE	3
/* With these: of another caller, a /proc/PID/mem, which comes with the message */
#define PVAS_READER_OTHER	4
/* The file system, as statfs.f_type, of what is found by two paths: see user_reader_type() */
#define PVAS_READER_TYPE	8
/*
 * Open the path, with these flags or else, if they are not 0, with those in @at. The descriptor
 * comes with the answer, and the reader ends, because to close it can take for ever.
 */
#define PVAS_READER_OPEN	16

/**
 * struct pvas_reader_request
 * @op:		PVAS_READER_*
 * @len:	bytes to copy; or flags
 * @at:		address there; where the second path begins, 0 if there is none; or flags
 * @data:	to write; or the paths
 */
struct pvas_reader_request {
	__u32 op;
	__u32 len;
	__u64 at;
	char data[PVAS_READER_PAGE];
};

/**
 * struct pvas_reader_answer
 * @result:	number of bytes, the type, or 0; or -errno
 * @used:	processor time in ns that the reader has used so far
 * @data:	that were read
 */
struct pvas_reader_answer {
	__s64 result;
	__u64 used;
	char data[PVAS_READER_PAGE];
};

#endif /* PVAS_LOADER_READER_H */
