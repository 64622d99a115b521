// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Packing and unpacking, and copies between any two datatypes in one pass over the data.
 *
 * Nothing in a datatype is private to its process: its descriptions are arrays of numbers, so
 * the sender's can be read where it is. A convertor, which does have pointers to functions, is
 * always this process's own.
 */
#include "pml_pvas.h"

#include <string.h>
#include <sys/uio.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"

/* Pieces of the source that are enumerated at a time */
#define PIECES 32

static void prepare(opal_convertor_t *convertor, bool source, const void *buf, size_t count,
		    const struct ompi_datatype_t *type)
{
	OBJ_CONSTRUCT(convertor, opal_convertor_t);
	if (source)
		opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super,
							 count, buf, 0, convertor);
	else
		opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super,
							 count, buf, 0, convertor);
}

/* Between @bytes of @contiguous memory and a buffer */
static void convert(bool pack, char *contiguous, size_t bytes, const void *buf, size_t count,
		    const struct ompi_datatype_t *type)
{
	opal_convertor_t convertor;
	struct iovec iov;
	uint32_t nr;
	size_t done = 0, length;
	int ended = 0;

	prepare(&convertor, pack, buf, count, type);
	while (done < bytes && !ended) {
		iov.iov_base = contiguous + done;
		iov.iov_len = length = bytes - done;
		nr = 1;
		if (pack)
			ended = opal_convertor_pack(&convertor, &iov, &nr, &length);
		else
			ended = opal_convertor_unpack(&convertor, &iov, &nr, &length);
		if (!length)
			break;
		done += length;
	}
	OBJ_DESTRUCT(&convertor);
}

void mca_pml_pvas_pack(void *to, size_t bytes, const void *buf, size_t count,
		       const struct ompi_datatype_t *type)
{
	if (mca_pml_pvas_contiguous(type, count))
		memcpy(to, (const char *)buf + type->super.true_lb, bytes);
	else
		convert(true, to, bytes, buf, count, type);
}

void mca_pml_pvas_unpack(const void *from, size_t bytes, void *buf, size_t count,
			 const struct ompi_datatype_t *type)
{
	if (mca_pml_pvas_contiguous(type, count))
		memcpy((char *)buf + type->super.true_lb, from, bytes);
	else
		convert(false, (char *)from, bytes, buf, count, type);
}

/* ---- between two buffers ---- */

static bool same_layout(const struct ompi_datatype_t *a, const struct ompi_datatype_t *b)
{
	const opal_datatype_t *x = &a->super, *y = &b->super;

	if (a == b)
		return true;
	if (x->size != y->size || x->lb != y->lb || x->ub != y->ub || x->true_lb != y->true_lb ||
	    x->true_ub != y->true_ub)
		return false;
	return x->desc.used == y->desc.used &&
	       !memcmp(x->desc.desc, y->desc.desc, x->desc.used * sizeof(*x->desc.desc));
}

/* Unpack some pieces, at most @room bytes. */
static size_t unpack_pieces(opal_convertor_t *to, struct iovec *pieces, uint32_t nr, size_t room)
{
	size_t done = 0, length;
	struct iovec iov;
	uint32_t i, one;

	for (i = 0; i < nr && done < room; i++) {
		iov = pieces[i];
		if (iov.iov_len > room - done)
			iov.iov_len = room - done;
		length = iov.iov_len;
		one = 1;
		opal_convertor_unpack(to, &iov, &one, &length);
		done += length;
	}
	return done;
}

static void copy_by_pieces(void *to, size_t to_count, const struct ompi_datatype_t *to_type,
			   const void *from, size_t from_count,
			   const struct ompi_datatype_t *from_type, size_t bytes)
{
	opal_convertor_t source, target;
	struct iovec pieces[PIECES];
	size_t done = 0, length;
	uint32_t nr;
	int ended = 0;

	prepare(&source, true, from, from_count, from_type);
	prepare(&target, false, to, to_count, to_type);
	while (done < bytes && !ended) {
		nr = PIECES;
		length = bytes;
		ended = opal_convertor_raw(&source, pieces, &nr, &length);
		if (!nr)
			break;
		done += unpack_pieces(&target, pieces, nr, bytes - done);
	}
	OBJ_DESTRUCT(&target);
	OBJ_DESTRUCT(&source);
}

/* At least one side is not contiguous. @bytes are copied, which both sides have. */
void mca_pml_pvas_copy(void *to, size_t to_count, const struct ompi_datatype_t *to_type,
		       const void *from, size_t from_count,
		       const struct ompi_datatype_t *from_type, size_t bytes)
{
	if (mca_pml_pvas_contiguous(to_type, to_count))
		convert(true, (char *)to + to_type->super.true_lb, bytes, from, from_count,
			from_type);
	else if (mca_pml_pvas_contiguous(from_type, from_count))
		convert(false, (char *)from + from_type->super.true_lb, bytes, to, to_count,
			to_type);
	else if (to_count == from_count && same_layout(to_type, from_type))
		ompi_datatype_copy_content_same_ddt(to_type, to_count, to, (char *)from);
	else
		copy_by_pieces(to, to_count, to_type, from, from_count, from_type, bytes);
}
