// SPDX-License-Identifier: LGPL-2.1-or-later
/* Record(object, dtype, readonly): keeps an object's buffer, and describes it for peers. */
#include "record.h"


struct record_object {
	PyObject_HEAD
	Py_buffer buffer;
	struct record *record;
};

int record_valid(const struct record *r, uint64_t room)
{
	uint64_t need;

	if (room < sizeof(*r) || r->magic != RECORD_MAGIC || r->ndim > PyBUF_MAX_NDIM ||
	    r->format > RECORD_TEXT || r->dtype > RECORD_TEXT || r->size > room)
		return 0;
	need = sizeof(*r) + 2 * r->ndim * sizeof(int64_t) + r->format + 1 + r->dtype + 1;
	return r->size == need && !record_format(r)[r->format] && !record_dtype(r)[r->dtype];
}

/* 'O' stands for an object, but not in the name of a field: ":Of:" */
static int has_objects(const char *format)
{
	int in_name = 0;

	for (; *format; format++) {
		if (*format == ':')
			in_name = !in_name;
		else if (*format == 'O' && !in_name)
			return 1;
	}
	return 0;
}

static int check_buffer(const Py_buffer *b, size_t format, Py_ssize_t dtype)
{
	const char *why = NULL;

	if (b->format && has_objects(b->format))
		why = "it holds Python objects, which belong to one interpreter";
	else if (b->suboffsets)
		why = "it is a table of pointers (it has suboffsets)";
	else if (format > RECORD_TEXT || dtype > RECORD_TEXT)
		why = "its type has too long a description";
	if (!why)
		return 0;
	PyErr_Format(PyExc_TypeError, "cannot share %.100s: %s",
		     b->obj ? Py_TYPE(b->obj)->tp_name : "this", why);
	return -1;
}

/* The range from the lowest to the highest byte */
static void set_range(struct record *r, const Py_buffer *b)
{
	uint64_t low = r->data, high = r->data + r->itemsize;
	int i;

	for (i = 0; i < b->ndim; i++) {
		int64_t way = r->numbers[r->ndim + i] * (r->numbers[i] - 1);

		if (!r->numbers[i])
			high = low = r->data;
		if (!r->numbers[i])
			break;
		if (way < 0)
			low += way;
		else
			high += way;
	}
	r->begin = low;
	r->length = high - low;
}

/* Some exporters (ctypes) have none even if asked: then elements lie in the order of C. */
static void set_strides(struct record *r, const Py_buffer *b)
{
	int64_t stride = b->itemsize;
	int i;

	for (i = b->ndim - 1; i >= 0; i--) {
		r->numbers[b->ndim + i] = b->strides ? b->strides[i] : stride;
		stride *= b->shape[i];
	}
}

static struct record *describe(const Py_buffer *b, const char *dtype, Py_ssize_t dtype_len)
{
	const char *format = b->format ? b->format : "B";
	size_t format_len = strlen(format), size;
	struct record *r;
	char *text;
	int i;

	if (check_buffer(b, format_len, dtype_len))
		return NULL;
	size = sizeof(*r) + 2 * b->ndim * sizeof(int64_t) + format_len + dtype_len + 2;
	r = PyMem_RawCalloc(1, size);
	if (!r)
		return (struct record *)PyErr_NoMemory();
	*r = (struct record){
		.magic = RECORD_MAGIC, .size = size, .data = (uintptr_t)b->buf,
		.itemsize = b->itemsize, .ndim = b->ndim, .readonly = b->readonly,
		.format = format_len, .dtype = dtype_len,
	};
	for (i = 0; i < b->ndim; i++)
		r->numbers[i] = b->shape[i];
	set_strides(r, b);
	text = (char *)(r->numbers + 2 * b->ndim);
	memcpy(text, format, format_len + 1);
	memcpy(text + format_len + 1, dtype, dtype_len + 1);
	set_range(r, b);
	return r;
}

static PyObject *record_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *keywords[] = { "object", "dtype", "readonly", NULL };
	struct record_object *self;
	Py_ssize_t dtype_len = 0;
	const char *dtype = "";
	PyObject *object;
	int readonly = 0;

	if (!PyArg_ParseTupleAndKeywords(args, names, "O|s#p", keywords, &object, &dtype,
					 &dtype_len, &readonly))
		return NULL;
	self = (struct record_object *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	if (PyObject_GetBuffer(object, &self->buffer, PyBUF_FULL_RO))
		goto err_object;
	self->record = describe(&self->buffer, dtype, dtype_len);
	if (!self->record)
		goto err_object;
	if (readonly)
		self->record->readonly = 1;
	return (PyObject *)self;

err_object:
	Py_DECREF(self);	/* releases the buffer too, if there is one */
	return NULL;
}

static void record_dealloc(PyObject *object)
{
	struct record_object *self = (struct record_object *)object;

	if (self->record)
		self->record->magic = 0;
	PyMem_RawFree(self->record);
	PyBuffer_Release(&self->buffer);
	Py_TYPE(object)->tp_free(object);
}

static PyObject *record_address(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromVoidPtr(((struct record_object *)object)->record);
}

static PyObject *record_nbytes(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromSsize_t(((struct record_object *)object)->buffer.len);
}

static PyGetSetDef record_attributes[] = {
	{ "address", record_address, NULL, "where peers find it", NULL },
	{ "nbytes", record_nbytes, NULL, "bytes of the object's elements", NULL },
	{ 0 },
};

PyTypeObject record_type = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "pvas._pvas.Record",
	.tp_doc = "Record(object, dtype='', readonly=False): keeps the object's buffer",
	.tp_basicsize = sizeof(struct record_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = record_new,
	.tp_dealloc = record_dealloc,
	.tp_getset = record_attributes,
};
