// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words(view): atomic 64-bit integers in memory that tasks share, and sleeping until one
 * changes. Locks, barriers, counters and mailboxes are made of them, in Python.
 */
#include "record.h"

#include <limits.h>

#include "guard.h"
#include "task.h"

struct words_object {
	PyObject_HEAD
	Py_buffer buffer;
};

static PyObject *words_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *keywords[] = { "buffer", NULL };
	struct words_object *self;
	PyObject *from;

	if (!PyArg_ParseTupleAndKeywords(args, names, "O", keywords, &from))
		return NULL;
	self = (struct words_object *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	if (PyObject_GetBuffer(from, &self->buffer, PyBUF_WRITABLE)) {
		Py_DECREF(self);
		return NULL;
	}
	if (!((uintptr_t)self->buffer.buf % sizeof(int64_t)))
		return (PyObject *)self;
	Py_DECREF(self);
	PyErr_SetString(PyExc_ValueError, "words must begin at a multiple of 8 bytes");
	return NULL;
}

static void words_dealloc(PyObject *object)
{
	PyBuffer_Release(&((struct words_object *)object)->buffer);
	Py_TYPE(object)->tp_free(object);
}

static int64_t *word(PyObject *object, Py_ssize_t i)
{
	const Py_buffer *b = &((struct words_object *)object)->buffer;

	if (i >= 0 && i < b->len / (Py_ssize_t)sizeof(int64_t))
		return (int64_t *)b->buf + i;
	PyErr_SetString(PyExc_IndexError, "no such word");
	return NULL;
}

static PyObject *gone(void)
{
	PyErr_SetString(peer_ended, "the task that had this memory has ended");
	return NULL;
}

/* "n" and up to two integers: the word of that number, or NULL after an error */
static int64_t *parse(PyObject *object, PyObject *args, const char *format, long long *a,
		      long long *b)
{
	Py_ssize_t i;

	return PyArg_ParseTuple(args, format, &i, a, b) ? word(object, i) : NULL;
}

static PyObject *words_load(PyObject *object, PyObject *args)
{
	int64_t *at = parse(object, args, "n", NULL, NULL), value = 0;
	int failed;

	if (!at)
		return NULL;
	GUARDED(failed, value = __atomic_load_n(at, __ATOMIC_SEQ_CST));
	return failed ? gone() : PyLong_FromLongLong(value);
}

static PyObject *words_store(PyObject *object, PyObject *args)
{
	long long value;
	int64_t *at = parse(object, args, "nL", &value, NULL);
	int failed;

	if (!at)
		return NULL;
	GUARDED(failed, __atomic_store_n(at, value, __ATOMIC_SEQ_CST));
	if (failed)
		return gone();
	Py_RETURN_NONE;
}

static PyObject *words_add(PyObject *object, PyObject *args)
{
	long long value;
	int64_t *at = parse(object, args, "nL", &value, NULL), old = 0;
	int failed;

	if (!at)
		return NULL;
	GUARDED(failed, old = __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST));
	return failed ? gone() : PyLong_FromLongLong(old);
}

static PyObject *words_cas(PyObject *object, PyObject *args)
{
	long long from, to;
	int64_t *at = parse(object, args, "nLL", &from, &to), old;
	int failed, done = 0;

	if (!at)
		return NULL;
	old = from;
	GUARDED(failed, done = __atomic_compare_exchange_n(at, &old, to, 0, __ATOMIC_SEQ_CST,
							   __ATOMIC_SEQ_CST));
	return failed ? gone() : PyBool_FromLong(done);
}

/* Only the lower half is compared: it is a futex. EFAULT: the next load finds that out. */
static PyObject *words_wait(PyObject *object, PyObject *args)
{
	long long value, ms;
	int64_t *at = parse(object, args, "nLL", &value, &ms);

	if (!at)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	task_wait((uint32_t *)at, (uint32_t)value, (int)ms);
	Py_END_ALLOW_THREADS
	if (PyErr_CheckSignals())
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *words_wake(PyObject *object, PyObject *args)
{
	long long count = INT_MAX;
	int64_t *at = parse(object, args, "n|L", &count, NULL);

	if (!at)
		return NULL;
	task_wake((uint32_t *)at, (int)count);
	Py_RETURN_NONE;
}

static PyMethodDef words_methods[] = {
	{ "load", words_load, METH_VARARGS, "load(i)" },
	{ "store", words_store, METH_VARARGS, "store(i, value)" },
	{ "add", words_add, METH_VARARGS, "add(i, value): the value before" },
	{ "cas", words_cas, METH_VARARGS, "cas(i, old, new): was it old, and is it new?" },
	{ "wait", words_wait, METH_VARARGS, "wait(i, value, ms): while its lower half is value" },
	{ "wake", words_wake, METH_VARARGS, "wake(i, count=all): who waits for it" },
	{ 0 },
};

PyTypeObject words_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "pvas._pvas.Words",
	.tp_doc = "Words(buffer): atomic 64-bit integers that tasks share",
	.tp_basicsize = sizeof(struct words_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = words_new,
	.tp_dealloc = words_dealloc,
	.tp_methods = words_methods,
};
