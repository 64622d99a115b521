/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A record describes memory of its owner for readers in other tasks: where it is, and
 * its type, as PEP 3118 has them. Only memory is shared, never a Python object: those
 * belong to the interpreter that made them.
 */
#ifndef PVAS_PYTHON_RECORD_H
#define PVAS_PYTHON_RECORD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#define RECORD_MAGIC	0x3130434552415650ULL
#define RECORD_TEXT	65535	/* of @format and of @dtype, at most */

/**
 * struct record - one block of memory, in the partition of its owner
 * @size:	bytes of this record: numbers and texts included
 * @data:	the first element
 * @begin:	the lowest address; less than @data if a stride is negative
 * @length:	bytes from @begin to the end of the highest element
 * @format:	length of the format, without its NUL; it is a struct module's text
 * @dtype:	length of NumPy's description, 0: none
 * @numbers:	shape[ndim], strides[ndim], then format and dtype, each with a NUL
 */
struct record {
	uint64_t magic;
	uint64_t size;
	uint64_t data;
	uint64_t begin;
	uint64_t length;
	uint64_t itemsize;
	uint32_t ndim;
	uint32_t readonly;
	uint32_t format;
	uint32_t dtype;
	int64_t numbers[];
};

static inline const char *record_format(const struct record *r)
{
	return (const char *)(r->numbers + 2 * r->ndim);
}

static inline const char *record_dtype(const struct record *r)
{
	return record_format(r) + r->format + 1;
}

/* Is what a peer has written a record? @room: bytes that were copied. */
int record_valid(const struct record *r, uint64_t room);

extern PyTypeObject record_type, view_type, words_type;

/* Raised where a peer has ended: pvas.PeerEnded */
extern PyObject *peer_ended;

#endif
