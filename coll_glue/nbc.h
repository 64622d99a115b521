/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Non-blocking operations. */
#ifndef COLL_PVAS_NBC_H
#define COLL_PVAS_NBC_H

#include "fold.h"

#include "ompi/mca/coll/base/coll_base_util.h"

/* Instead of readers or sources */
#define MCA_COLL_PVAS_NONE (-3)

/**
 * struct mca_coll_pvas_call - a non-blocking operation and its arguments
 * @from:	our data, in @nr_blocks blocks; likewise @to, what is fetched
 * @readers:	those that fetch ours: a rank, MCA_COLL_PVAS_ALL, _NEIGHBORS or _NONE
 * @sources:	those from which we fetch
 * @block:	which of their blocks, unless they are neighbors
 * @own:	copy our own block, too
 * @swap:	MPI_IN_PLACE: first copy @to to @from, which is memory of our own
 * @described:	our data are not posted as they are, even if they are short
 * @combine:	in reductions: called when all have posted
 * @kept:	memory that is freed with the request
 * @in_place:	where a result that was kept is stored, once nobody reads there any more
 */
struct mca_coll_pvas_call {
	struct mca_coll_pvas_buffers from;
	struct mca_coll_pvas_buffers to;
	enum mca_coll_pvas_kind from_kind;
	enum mca_coll_pvas_kind to_kind;
	int nr_blocks;
	int readers;
	int sources;
	int block;
	bool own;
	bool swap;
	bool described;
	mca_coll_pvas_combine_fn *combine;
	struct mca_coll_pvas_reduction reduction;
	char *kept;
	char *in_place;
};

enum mca_coll_pvas_request_state {
	MCA_COLL_PVAS_STARTED,
	MCA_COLL_PVAS_POSTED,
	MCA_COLL_PVAS_FINISHED,
};

/**
 * struct mca_coll_pvas_request - a non-blocking operation in progress
 * @nbc:	those that it belongs to
 * @line:	its number among the communicator's operations of that kind
 * @op:		the same, or that of a persistent operation's starts
 * @copied:	our data were posted as they are
 * @at:		in reductions: the next rank that has to post
 * @nr_left:	sources that have not been fetched from
 * @fetched:	which have
 */
struct mca_coll_pvas_request {
	ompi_coll_base_nbc_request_t super;
	struct mca_coll_pvas_module *m;
	struct mca_coll_pvas_nbc *nbc;
	struct mca_coll_pvas_call call;
	enum mca_coll_pvas_request_state state;
	uint64_t line;
	uint64_t op;
	bool copied;
	int rc;
	int at;
	int nr_left;
	bool fetched[];
};

/* nbc.c */
int mca_coll_pvas_start(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_call *call,
			ompi_request_t **request);
struct mca_coll_pvas_request *mca_coll_pvas_new_request(struct mca_coll_pvas_module *m,
							const struct mca_coll_pvas_call *call);
void mca_coll_pvas_free_request(struct mca_coll_pvas_request *r);
bool mca_coll_pvas_begin_request(struct mca_coll_pvas_request *r);
void mca_coll_pvas_progress_begin(void);
void mca_coll_pvas_progress_end(void);

/* nbc_block.c */
void mca_coll_pvas_nbc_begin_next(struct mca_coll_pvas_module *m);

#define mca_coll_pvas_nbc_begin(m, name)					\
	do {									\
		++*mca_coll_pvas_calls(name);					\
		mca_coll_pvas_nbc_begin_next(m);				\
	} while (0)

size_t mca_coll_pvas_nbc_most_copied(const struct mca_coll_pvas_nbc *nbc);
bool mca_coll_pvas_nbc_attached(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc);
struct ompi_communicator_t *mca_coll_pvas_nbc_attach_one(void);
struct mca_coll_pvas_record mca_coll_pvas_nbc_annex(const struct mca_coll_pvas_request *r);

/* nbc_step.c */
int mca_coll_pvas_nr_sources(const struct mca_coll_pvas_module *m, int sources);
bool mca_coll_pvas_step(struct mca_coll_pvas_request *r);

/* Those that an operation belongs to which is started or initialized now */
/* persistent.c */
int mca_coll_pvas_init(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_call *call,
		       ompi_request_t **request);

static inline struct mca_coll_pvas_nbc *mca_coll_pvas_nbc(struct mca_coll_pvas_module *m)
{
	return m->initializing ? m->persistent : &m->nbc;
}

/* The lines of operation @op; persistent ones have a line, and number their starts. */
static inline struct mca_coll_pvas_posts
mca_coll_pvas_nbc_posts(const struct mca_coll_pvas_nbc *nbc, uint64_t op)
{
	return (struct mca_coll_pvas_posts) {
		&nbc->lines[op & (nbc->nr_lines - 1)], nbc->nr_lines,
	};
}

#define mca_coll_pvas_pass_on_nbc(m, name, request, ...) \
	((m)->previous.name(__VA_ARGS__, (m)->comm, (request), (m)->previous.name##_module))

#endif /* COLL_PVAS_NBC_H */
