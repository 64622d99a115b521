// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * View(index, address): the memory that a record of task @index describes. It holds the
 * record for as long as it lives: the owner keeps the memory.
 */
#include "record.h"

#include "guard.h"
#include "task.h"

struct view_object {
	PyObject_HEAD
	struct record *record;		/* a copy, in this task */
	struct task_id owner;
	struct task_block *block;	/* the owner's; NULL: not known, or this process */
	uint64_t *slot;
	PyObject *whole;		/* the view of which this is the span */
};

static int end_error(unsigned int index)
{
	PyErr_Format(peer_ended, "rank %d has ended, and its memory with it", task_rank_of(index));
	return -1;
}

/* Its owner may end, or write to it, at any time: only the copy is used. */
static int copy_record(struct view_object *self, const struct record *from)
{
	struct record head;

	if (guard_copy(&head, from, sizeof(head)))
		return end_error(self->owner.index);
	if (head.magic != RECORD_MAGIC || head.size < sizeof(head) ||
	    head.size > sizeof(head) + 4 * RECORD_TEXT) {
		PyErr_SetString(PyExc_ValueError, "there is no record at this address");
		return -1;
	}
	self->record = PyMem_RawMalloc(head.size);
	if (!self->record) {
		PyErr_NoMemory();
		return -1;
	}
	if (guard_copy(self->record, from, head.size))
		return end_error(self->owner.index);
	if (record_valid(self->record, head.size))
		return 0;
	PyErr_SetString(PyExc_ValueError, "the record at this address is malformed");
	return -1;
}

/* Under a name: it must be there still once the record is held, or it may have been freed. */
static int hold(struct view_object *self, uint64_t address, const char *name)
{
	void *now;

	if (task_hold(address, &self->slot)) {
		PyErr_NoMemory();
		return -1;
	}
	if (!*name || (pvas_name_import(self->owner.index, name, &now) >= 0 &&
		       (uintptr_t)now == address))
		return 0;
	PyErr_SetString(PyExc_KeyError, "the name was withdrawn");
	return -1;
}

static int find_owner(struct view_object *self, int index)
{
	self->block = &task_block;
	if (index < 0 || (unsigned int)index == task_self().index)
		return 0;
	self->block = task_block_of((unsigned int)index, &self->owner);
	if (self->block)
		return 0;
	self->owner.index = (unsigned int)index;
	return end_error((unsigned int)index);
}

static PyObject *view_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *keywords[] = { "index", "address", "name", NULL };
	struct view_object *self;
	unsigned long long address;
	const char *name = "";
	int index;

	if (!PyArg_ParseTupleAndKeywords(args, names, "iK|s", keywords, &index, &address, &name))
		return NULL;
	self = (struct view_object *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->owner = task_self();
	if (!find_owner(self, index) && !hold(self, address, name) &&
	    !copy_record(self, (const struct record *)(uintptr_t)address))
		return (PyObject *)self;
	Py_DECREF(self);
	return NULL;
}

static void view_dealloc(PyObject *object)
{
	struct view_object *self = (struct view_object *)object;

	if (self->slot)
		task_release(self->slot, self->block, self->owner);
	Py_XDECREF(self->whole);
	PyMem_RawFree(self->record);
	Py_TYPE(object)->tp_free(object);
}

/* ---- the buffer protocol ---- */

static Py_ssize_t bytes_of(const struct record *r)
{
	Py_ssize_t len = r->itemsize;
	unsigned int i;

	for (i = 0; i < r->ndim; i++)
		len *= r->numbers[i];
	return len;
}

static void fill(const struct record *r, Py_buffer *b)
{
	b->buf = (void *)(uintptr_t)r->data;
	b->len = bytes_of(r);
	b->itemsize = r->itemsize;
	b->readonly = r->readonly;
	b->ndim = r->ndim;
	b->format = (char *)record_format(r);
	b->shape = (Py_ssize_t *)r->numbers;
	b->strides = (Py_ssize_t *)r->numbers + r->ndim;
}

/* All that the consumer's flags don't ask for must be NULL. */
static int trim(Py_buffer *b, int flags)
{
	if ((flags & PyBUF_WRITABLE) && b->readonly)
		return -1;
	if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !PyBuffer_IsContiguous(b, 'C'))
		return -1;
	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !PyBuffer_IsContiguous(b, 'F'))
		return -1;
	if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS &&
	    !PyBuffer_IsContiguous(b, 'A'))
		return -1;
	if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
		if (!PyBuffer_IsContiguous(b, 'C'))
			return -1;
		b->strides = NULL;
	}
	if ((flags & PyBUF_ND) != PyBUF_ND)
		b->shape = NULL;
	if ((flags & PyBUF_FORMAT) != PyBUF_FORMAT)
		b->format = NULL;
	return 0;
}

static int view_getbuffer(PyObject *object, Py_buffer *b, int flags)
{
	struct view_object *self = (struct view_object *)object;

	memset(b, 0, sizeof(*b));
	fill(self->record, b);
	if (trim(b, flags)) {
		PyErr_SetString(PyExc_BufferError,
				"this view is read-only, or not in that order in memory");
		return -1;
	}
	b->obj = object;
	Py_INCREF(object);
	return 0;
}

/* ---- methods ---- */

/* All the memory in one row of bytes, holes included: NumPy adds the strides itself. */
static PyObject *view_span(PyObject *object, PyObject *none)
{
	struct view_object *self = (struct view_object *)object, *span;
	const struct record *r = self->record;
	size_t size = sizeof(*r) + 2 * sizeof(int64_t) + 3;

	(void)none;
	span = (struct view_object *)view_type.tp_alloc(&view_type, 0);
	if (!span)
		return NULL;
	span->record = PyMem_RawCalloc(1, size);
	if (!span->record) {
		Py_DECREF(span);
		return PyErr_NoMemory();
	}
	*span->record = (struct record){
		.magic = RECORD_MAGIC, .size = size, .data = r->begin, .begin = r->begin,
		.length = r->length, .itemsize = 1, .ndim = 1, .readonly = r->readonly,
		.format = 1,
	};
	span->record->numbers[0] = r->length;
	span->record->numbers[1] = 1;
	((char *)(span->record->numbers + 2))[0] = 'B';
	span->owner = self->owner;
	span->whole = object;
	Py_INCREF(object);
	return (PyObject *)span;
}

/* A copy of it as bytes, which a peer's end does not take away; holes are copied, too. */
static PyObject *view_copy(PyObject *object, PyObject *none)
{
	const struct view_object *self = (struct view_object *)object;
	const void *from = (const void *)(uintptr_t)self->record->begin;
	Py_ssize_t length = (Py_ssize_t)self->record->length;
	PyObject *copy = PyBytes_FromStringAndSize(NULL, length);

	(void)none;
	if (!copy || !guard_copy(PyBytes_AS_STRING(copy), from, (size_t)length))
		return copy;
	Py_DECREF(copy);
	end_error(self->owner.index);
	return NULL;
}

static PyObject *tuple_of(const int64_t *numbers, unsigned int nr)
{
	PyObject *tuple = PyTuple_New(nr), *item;
	unsigned int i;

	for (i = 0; tuple && i < nr; i++) {
		item = PyLong_FromLongLong(numbers[i]);
		if (!item) {
			Py_DECREF(tuple);
			return NULL;
		}
		PyTuple_SET_ITEM(tuple, i, item);
	}
	return tuple;
}

/* The arguments of numpy.ndarray(): (shape, dtype's description, offset, strides) */
static PyObject *view_layout(PyObject *object, PyObject *none)
{
	const struct record *r = ((struct view_object *)object)->record;

	(void)none;
	return Py_BuildValue("NsKN", tuple_of(r->numbers, r->ndim), record_dtype(r),
			     (unsigned long long)(r->data - r->begin),
			     tuple_of(r->numbers + r->ndim, r->ndim));
}

static PyObject *view_index(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLong(((struct view_object *)object)->owner.index);
}

static PyObject *view_ended(PyObject *object, void *closure)
{
	const struct view_object *self = (struct view_object *)object;

	(void)closure;
	return PyBool_FromLong(self->block != &task_block && task_ended(self->owner));
}

static PyMethodDef view_methods[] = {
	{ "span", view_span, METH_NOARGS, "all the memory as bytes, holes included" },
	{ "copy", view_copy, METH_NOARGS, "a copy of all the memory, as bytes" },
	{ "layout", view_layout, METH_NOARGS, "(shape, dtype, offset into the span, strides)" },
	{ 0 },
};

static PyGetSetDef view_attributes[] = {
	{ "index", view_index, NULL, "the partition of its owner", NULL },
	{ "ended", view_ended, NULL, "has its owner ended?", NULL },
	{ 0 },
};

static PyBufferProcs view_buffer = { .bf_getbuffer = view_getbuffer };

PyTypeObject view_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "pvas._pvas.View",
	.tp_doc = "View(index, address, name=''): the memory of a record of that task",
	.tp_basicsize = sizeof(struct view_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = view_new,
	.tp_dealloc = view_dealloc,
	.tp_as_buffer = &view_buffer,
	.tp_methods = view_methods,
	.tp_getset = view_attributes,
};
