// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reductions, with random operators, datatypes, counts, roots and MPI_IN_PLACE: are results
 * equal to coll/basic's, bit by bit? Numbers are such that each order of floating-point
 * operations gives another result. Operators of our own commute or do not, and work on
 * datatypes with gaps, too.
 *
 *	combine [ROUNDS [SEED [WAY [shuffled] [close]]]]
 */
#include "compare.h"

#include <math.h>

#define GUARD 64
#define MOST_RANKS 64

enum { REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, NR_OPS };
static const char *const names[] = {
	"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
};

/* ---- operators of our own ---- */

/* On a pair of doubles with a gap between them; rounding makes the order matter. */
static void add_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
	double *a = in, *b = inout;
	int i;

	(void)type;
	for (i = 0; i < *n; i++, a += 4, b += 4) {
		b[0] = a[0] + b[0];
		b[2] = a[2] * b[2] + 1e-3 * a[0];
	}
}

/* Of 2 x 2 matrices, which does not commute */
static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
	double *a = in, *b = inout, c[4];
	int i;

	(void)type;
	for (i = 0; i < *n; i++, a += 4, b += 4) {
		c[0] = a[0] * b[0] + a[1] * b[2];
		c[1] = a[0] * b[1] + a[1] * b[3];
		c[2] = a[2] * b[0] + a[3] * b[2];
		c[3] = a[2] * b[1] + a[3] * b[3];
		memcpy(b, c, sizeof(c));
	}
}

/* "The left one": with it, results are contributions as they are. */
static void left(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	memcpy(inout, in, *n * sizeof(short));
}

/* ---- what is combined ---- */

enum { OF_INTS, OF_DOUBLES, OF_FLOATS, OF_PAIRS };

struct kind {
	MPI_Datatype type;
	MPI_Op op;
	int numbers;
};

#define MOST_KINDS 24
static struct kind kinds[MOST_KINDS];
static int nr_kinds;

static void add_kind(MPI_Datatype type, MPI_Op op, int numbers)
{
	kinds[nr_kinds++] = (struct kind) { type, op, numbers };
}

static void make_kinds(void)
{
	MPI_Datatype gaps, matrix, inner;
	MPI_Op pairs, pairs_ordered, product, first;

	MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &inner);
	MPI_Type_create_resized(inner, 0, 32, &gaps);
	MPI_Type_commit(&gaps);
	MPI_Type_free(&inner);
	MPI_Type_contiguous(4, MPI_DOUBLE, &matrix);
	MPI_Type_commit(&matrix);
	MPI_Op_create(add_pairs, 1, &pairs);
	MPI_Op_create(add_pairs, 0, &pairs_ordered);
	MPI_Op_create(multiply, 0, &product);
	MPI_Op_create(left, 0, &first);
	add_kind(MPI_INT, MPI_SUM, OF_INTS);
	add_kind(MPI_INT, MPI_MAX, OF_INTS);
	add_kind(MPI_UNSIGNED, MPI_BXOR, OF_INTS);
	add_kind(MPI_LONG, MPI_PROD, OF_INTS);
	add_kind(MPI_SHORT, MPI_MIN, OF_INTS);
	add_kind(MPI_UNSIGNED_CHAR, MPI_BOR, OF_INTS);
	add_kind(MPI_INT, MPI_LAND, OF_INTS);
	add_kind(MPI_DOUBLE, MPI_SUM, OF_DOUBLES);
	add_kind(MPI_DOUBLE, MPI_PROD, OF_DOUBLES);
	add_kind(MPI_DOUBLE, MPI_MIN, OF_DOUBLES);
	add_kind(MPI_FLOAT, MPI_SUM, OF_FLOATS);
	add_kind(MPI_FLOAT, MPI_MAX, OF_FLOATS);
	add_kind(MPI_C_DOUBLE_COMPLEX, MPI_PROD, OF_DOUBLES);
	add_kind(MPI_DOUBLE_INT, MPI_MAXLOC, OF_PAIRS);
	add_kind(MPI_DOUBLE_INT, MPI_MINLOC, OF_PAIRS);
	add_kind(MPI_2INT, MPI_MINLOC, OF_INTS);
	add_kind(gaps, pairs, OF_DOUBLES);
	add_kind(gaps, pairs_ordered, OF_DOUBLES);
	add_kind(matrix, product, OF_DOUBLES);
	add_kind(MPI_SHORT, first, OF_INTS);
}

struct operation {
	int what, root, in_place, count, first, counts[MOST_RANKS];
	enum way how;
	MPI_Request request;
	const struct kind *kind;
	MPI_Aint bytes;
	char *s, *r;
};

static void fill(char *p, size_t bytes, int numbers, uint64_t *own)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		p[i] = mix(own);
	if (numbers == OF_DOUBLES)
		for (i = 0; i + 8 <= bytes; i += 8)
			*(double *)(p + i) = 0.5 + below(own, 1 << 30) * 0x1p-30;
	if (numbers == OF_FLOATS)
		for (i = 0; i + 4 <= bytes; i += 4)
			*(float *)(p + i) = 0.5f + below(own, 1 << 23) * 0x1p-23f;
	/* Equal values, so that the places decide */
	for (i = 0; numbers == OF_PAIRS && i + 16 <= bytes; i += 16) {
		*(double *)(p + i) = below(own, 3);
		*(int *)(p + i + 8) = below(own, 100);
	}
}

static int choose_count(uint64_t *common)
{
	static const int few[] = { 0, 1, 2, 3, 6, 40, 300 };

	if (below(common, 3))
		return few[below(common, 7)];
	return below(common, 12000);
}

static void choose(struct operation *op, uint64_t seed)
{
	uint64_t common = seed, own = seed * 1000 + rank;
	MPI_Aint lb, extent;
	int i;

	op->what = below(&common, NR_OPS);
	op->root = below(&common, size);
	op->in_place = below(&common, 4) == 0;
	op->kind = &kinds[below(&common, nr_kinds)];
	op->count = choose_count(&common);
	op->first = op->count;
	for (i = 0; i < size; i++)
		op->counts[i] = below(&common, 4) ? op->count / size + below(&common, 5) : 0;
	if (op->what == REDUCE_SCATTER)
		for (i = op->count = 0; i < size; i++)
			op->count += op->counts[i];
	if (op->what == REDUCE_SCATTER_BLOCK)
		op->count = op->first / size * size;
	MPI_Type_get_extent(op->kind->type, &lb, &extent);
	op->bytes = op->count * extent + 2 * GUARD;
	op->s = malloc(op->bytes);
	op->r = malloc(op->bytes);
	fill(op->s + GUARD, op->bytes - GUARD, op->kind->numbers, &own);
	fill(op->r + GUARD, op->bytes - GUARD, op->kind->numbers, &own);
	memset(op->r, 0x55, GUARD);
}

static MPI_Comm comms[2];

static void start(void *arg, uint64_t seed, int which)
{
	struct operation *op = arg;
	MPI_Comm comm = comms[which];
	MPI_Datatype type;
	void *s, *r;
	MPI_Op by;

	choose(op, seed);
	op->how = choose_way(seed, which);
	op->request = MPI_REQUEST_NULL;
	type = op->kind->type;
	by = op->kind->op;
	s = op->in_place && (op->what != REDUCE || rank == op->root) ? MPI_IN_PLACE : op->s + GUARD;
	r = op->r + GUARD;
	switch (op->what) {
	case REDUCE:
		START(op, Reduce, reduce, s, r, op->count, type, by, op->root, comm);
		break;
	case ALLREDUCE:
		START(op, Allreduce, allreduce, s, r, op->count, type, by, comm);
		break;
	case REDUCE_SCATTER:
		START(op, Reduce_scatter, reduce_scatter, s, r, op->counts, type, by, comm);
		break;
	case REDUCE_SCATTER_BLOCK:
		START(op, Reduce_scatter_block, reduce_scatter_block, s, r, op->count / size, type,
		      by, comm);
		break;
	case SCAN:
		START(op, Scan, scan, s, r, op->count, type, by, comm);
		break;
	default:
		START(op, Exscan, exscan, s, r, op->count, type, by, comm);
	}
}

static void begin(void *arg)
{
	struct operation *op = arg;

	if (op->how == PERSISTENT)
		MPI_Start(&op->request);
}

static void complete(void *arg)
{
	struct operation *op = arg;

	wait_for(op->how, &op->request);
	memset(op->s, 0xee, op->bytes);
}

static void release(void *arg)
{
	struct operation *op = arg;

	free(op->s);
	free(op->r);
}

/* Elements of the result that are defined: others may hold intermediate results. */
static int defined(const struct operation *op)
{
	if (op->what == REDUCE && rank != op->root)
		return 0;
	if (op->what == REDUCE_SCATTER)
		return op->counts[rank];
	return op->what == REDUCE_SCATTER_BLOCK ? op->count / size : op->count;
}

/* Are results of an operator that rounds as near to each other as they must be? */
static int is_close(const struct kind *kind, const char *x, const char *y, int bytes)
{
	/* add_pairs() isn't associative. */
	const double most = kind->type == MPI_DOUBLE || kind->type == MPI_C_DOUBLE_COMPLEX ?
			    1e-9 : 0.05;
	int i, near = 1, commutes;

	MPI_Op_commutative(kind->op, &commutes);
	if (!close_is_equal || !commutes)
		return 0;
	for (i = 0; kind->numbers == OF_DOUBLES && i + 8 <= bytes; i += 8)
		near &= fabs(*(double *)(x + i) - *(double *)(y + i)) < most;
	for (i = 0; kind->numbers == OF_FLOATS && i + 4 <= bytes; i += 4)
		near &= fabsf(*(float *)(x + i) - *(float *)(y + i)) < 1e-4f;
	return near && (kind->numbers == OF_DOUBLES || kind->numbers == OF_FLOATS);
}

/* Gaps are not compared, but what is around the buffer is. */
static int differs(const void *ours, const void *basic, uint64_t seed)
{
	const struct operation *a = ours, *b = basic;
	char *x = malloc(a->bytes + 1), *y = malloc(a->bytes + 1);
	int at_x = 0, at_y = 0, bad;

	MPI_Pack(a->r + GUARD, defined(a), a->kind->type, x, a->bytes, &at_x, MPI_COMM_SELF);
	MPI_Pack(b->r + GUARD, defined(b), b->kind->type, y, b->bytes, &at_y, MPI_COMM_SELF);
	bad = (memcmp(x, y, at_x) && !is_close(a->kind, x, y, at_x)) || memcmp(a->r, b->r, GUARD) ||
	      memcmp(a->r + a->bytes - GUARD, b->r + b->bytes - GUARD, GUARD);
	free(x);
	free(y);
	if (bad)
		printf("rank %d of %d: %s, seed %llu, way %d, root %d%s, kind %d, %d elements\n",
		       rank, size, names[a->what], (unsigned long long)seed, a->how, a->root,
		       a->in_place ? ", in place" : "", (int)(a->kind - kinds), a->count);
	return bad;
}

static void prepare(void)
{
	make_kinds();
	comms[OURS] = everybody;
	comms[BASIC] = basic_comm(everybody);
}

int main(int argc, char **argv)
{
	static const struct comparison test = {
		sizeof(struct operation), prepare, start, begin, complete, differs, release,
	};

	return compare(argc, argv, &test);
}
