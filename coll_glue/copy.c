// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies between any two datatypes, of which one can be a peer's, read where it is. Data
 * move once: contiguous to contiguous by memcpy(); a layout to the same layout, maybe at
 * another place (what is sent of an array with a halo, and what is received there), to or from
 * contiguous memory by one of Open MPI's functions; otherwise the source's contiguous pieces
 * are enumerated, and each is unpacked into the destination. Short pieces are not worth a call
 * each: they are packed into a buffer that stays in the cache, and unpacked from there.
 *
 * Nothing in a datatype is private to its process: its descriptions are arrays of numbers,
 * and a convertor, which does have pointers to functions, is always this process's own.
 */
#include "post.h"

#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"

/* Pieces of the source that are enumerated at a time */
#define PIECES 32

/* Pieces that are short, in the mean, go through a buffer of so many bytes. */
#define SHORT_PIECE 256
#define CHUNK (8 << 10)

static bool is_contiguous(const struct ompi_datatype_t *type, size_t count)
{
	return type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS &&
	       (count == 1 || type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS);
}

bool mca_coll_pvas_same_layout(const struct ompi_datatype_t *a, const struct ompi_datatype_t *b)
{
	const opal_datatype_t *x = &a->super, *y = &b->super;

	if (a == b)
		return true;
	if (x->size != y->size || x->lb != y->lb || x->ub != y->ub || x->true_lb != y->true_lb ||
	    x->true_ub != y->true_ub)
		return false;
	/* Without gaps there is only one layout. */
	if (mca_coll_pvas_is_plain(a) && mca_coll_pvas_is_plain(b))
		return true;
	return x->desc.used == y->desc.used &&
	       !memcmp(x->desc.desc, y->desc.desc, x->desc.used * sizeof(*x->desc.desc));
}

/* Are elements the same, but for a distance of both sides, which is the same for all of them? */
static bool same_element(const dt_elem_desc_t *x, const dt_elem_desc_t *y, ptrdiff_t shift)
{
	dt_elem_desc_t moved = *y;

	if (x->elem.common.type == OPAL_DATATYPE_LOOP)
		return !memcmp(&x->loop, &y->loop, sizeof(x->loop));
	if (x->elem.common.type == OPAL_DATATYPE_END_LOOP) {
		moved.end_loop.first_elem_disp += shift;
		return y->elem.common.type == OPAL_DATATYPE_END_LOOP &&
		       x->end_loop.items == y->end_loop.items &&
		       x->end_loop.first_elem_disp == moved.end_loop.first_elem_disp;
	}
	moved.elem.disp += shift;
	return !memcmp(&x->elem, &moved.elem, sizeof(x->elem));
}

/* Is @a the layout @b, but *@shift bytes farther on? */
static bool is_shifted(const struct ompi_datatype_t *a, const struct ompi_datatype_t *b,
		       ptrdiff_t *shift)
{
	const opal_datatype_t *x = &a->super, *y = &b->super;
	size_t i;

	*shift = x->true_lb - y->true_lb;
	if (x->size != y->size || x->ub - x->lb != y->ub - y->lb || x->desc.used != y->desc.used ||
	    x->true_ub - y->true_ub != *shift)
		return false;
	for (i = 0; i < x->desc.used; i++)
		if (!same_element(&x->desc.desc[i], &y->desc.desc[i], *shift))
			return false;
	return true;
}

static int copy_same_layout(const struct ompi_datatype_t *type, size_t count, char *to,
			    const char *from)
{
	int rc = ompi_datatype_copy_content_same_ddt(type, count, to, (char *)from);

	return rc < 0 ? OMPI_ERROR : OMPI_SUCCESS;
}

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

/* One of both sides is @contiguous, of @bytes; the other is @buf. */
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

/* Copy through a buffer. */
static void copy_by_chunks(opal_convertor_t *source, opal_convertor_t *target, size_t bytes)
{
	char chunk[CHUNK];
	struct iovec iov;
	size_t done = 0, length;
	uint32_t nr;

	while (done < bytes) {
		iov.iov_base = chunk;
		iov.iov_len = length = bytes - done < CHUNK ? bytes - done : CHUNK;
		nr = 1;
		opal_convertor_pack(source, &iov, &nr, &length);
		if (!length)
			return;
		done += length;
		iov.iov_base = chunk;
		iov.iov_len = length;
		nr = 1;
		opal_convertor_unpack(target, &iov, &nr, &length);
	}
}

/* By the first pieces */
static bool has_short_pieces(const void *from, size_t count, const struct ompi_datatype_t *type)
{
	opal_convertor_t source;
	struct iovec pieces[PIECES];
	size_t length = count * type->super.size;
	uint32_t nr = PIECES;

	prepare(&source, true, from, count, type);
	opal_convertor_raw(&source, pieces, &nr, &length);
	OBJ_DESTRUCT(&source);
	return nr && length / nr < SHORT_PIECE;
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
	if (has_short_pieces(from, from_count, from_type)) {
		copy_by_chunks(&source, &target, bytes);
		done = bytes;
	}
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

/* As for a message, what the destination has no room for is left out, and an error. */
int mca_coll_pvas_copy_data(void *to, size_t to_count, const struct ompi_datatype_t *to_type,
			    const void *from, size_t from_count,
			    const struct ompi_datatype_t *from_type)
{
	const bool to_contiguous = is_contiguous(to_type, to_count);
	const bool from_contiguous = is_contiguous(from_type, from_count);
	const size_t room = to_count * to_type->super.size;
	size_t bytes = from_count * from_type->super.size;
	const int rc = bytes > room ? MPI_ERR_TRUNCATE : OMPI_SUCCESS;
	ptrdiff_t shift;

	if (rc)
		bytes = room;
	if (!bytes)
		return rc;
	if (to_contiguous && from_contiguous)
		mca_btl_pvas_memcpy((char *)to + to_type->super.true_lb,
				    (const char *)from + from_type->super.true_lb, bytes);
	else if (to_contiguous)
		convert(true, (char *)to + to_type->super.true_lb, bytes, from, from_count,
			from_type);
	else if (from_contiguous)
		convert(false, (char *)from + from_type->super.true_lb, bytes, to, to_count,
			to_type);
	else if (to_count == from_count && mca_coll_pvas_same_layout(to_type, from_type))
		return copy_same_layout(to_type, to_count, to, from);
	else if (to_count == from_count && is_shifted(from_type, to_type, &shift))
		return copy_same_layout(to_type, to_count, to, (const char *)from + shift);
	else
		copy_by_pieces(to, to_count, to_type, from, from_count, from_type, bytes);
	return rc;
}
