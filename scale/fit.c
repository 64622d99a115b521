// SPDX-License-Identifier: GPL-2.0-only
/*
 * Least squares by orthogonal columns (modified Gram-Schmidt). Each measurement counts by its
 * relative error: those of small jobs are a million times smaller, and as exact.
 */
#include "fit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A column of which less is left has nothing that others have not. */
#define DEPENDENT	1e-9L

const char *const fit_term_names[FIT_TERMS + 1] = { "1", "n", "mn", "m2", "m", "n/m", NULL };

/**
 * struct columns - the equations, one a measurement
 * @q:		orthogonal columns, those of the terms at first
 * @r:		how the terms' columns are made of them
 * @y:		the right side: 1, because all is divided by the measured bytes
 * @projected:	the right side along each column
 */
struct columns {
	long double q[FIT_TERMS][FIT_POINTS];
	long double r[FIT_TERMS][FIT_TERMS];
	long double y[FIT_POINTS];
	long double projected[FIT_TERMS];
};

static long double term_value(enum fit_term term, uint64_t ranks, uint64_t ranks_per_node)
{
	const long double n = ranks, m = ranks_per_node;

	switch (term) {
	case FIT_N:
		return n;
	case FIT_MN:
		return m * n;
	case FIT_M2:
		return m * m;
	case FIT_M:
		return m;
	case FIT_NODES:
		return n / m;
	default:
		return 1;
	}
}

static unsigned int count_ranks_per_node(const struct fit_data *data)
{
	unsigned int i, j, nr = 0;

	for (i = 0; i < data->nr && nr < 3; i++) {
		for (j = 0; j < i; j++)
			if (data->point[j].ranks_per_node == data->point[i].ranks_per_node)
				break;
		nr += j == i;
	}
	return nr;
}

void fit_choose_terms(const struct fit_data *data, struct fit_result *fit)
{
	static const unsigned int terms_of[] = { 0, 2, 4, 5 };
	unsigned int i;

	fit->nr_terms = terms_of[count_ranks_per_node(data)];
	for (i = 0; i < fit->nr_terms; i++)
		fit->term[i] = i;
}

static long double dot(const long double *a, const long double *b, unsigned int nr)
{
	long double sum = 0;

	while (nr--)
		sum += a[nr] * b[nr];
	return sum;
}

static void fill(struct columns *c, const struct fit_data *data, const struct fit_result *fit)
{
	const struct fit_point *p;
	unsigned int i, k;

	for (i = 0; i < data->nr; i++) {
		p = &data->point[i];
		c->y[i] = 1;
		for (k = 0; k < fit->nr_terms; k++)
			c->q[k][i] = term_value(fit->term[k], p->ranks, p->ranks_per_node) /
				     p->bytes;
	}
}

static void subtract(long double *from, const long double *column, long double factor,
		     unsigned int nr)
{
	while (nr--)
		from[nr] -= factor * column[nr];
}

/* Returns the number of columns made orthogonal: less than all if the next one is dependent. */
static unsigned int orthogonalize(struct columns *c, unsigned int terms, unsigned int nr)
{
	long double before;
	unsigned int i, k;

	for (k = 0; k < terms; k++) {
		before = sqrtl(dot(c->q[k], c->q[k], nr));
		for (i = 0; i < k; i++) {
			c->r[i][k] = dot(c->q[i], c->q[k], nr);
			subtract(c->q[k], c->q[i], c->r[i][k], nr);
		}
		c->r[k][k] = sqrtl(dot(c->q[k], c->q[k], nr));
		if (c->r[k][k] <= DEPENDENT * before)
			return k;
		for (i = 0; i < nr; i++)
			c->q[k][i] /= c->r[k][k];
		c->projected[k] = dot(c->q[k], c->y, nr);
		subtract(c->y, c->q[k], c->projected[k], nr);
	}
	return terms;
}

/* Solves R x = b, with R upper triangular. */
static void solve(long double r[FIT_TERMS][FIT_TERMS], const long double *b, long double *x,
		  unsigned int terms)
{
	unsigned int i, k;

	for (k = terms; k--; ) {
		x[k] = b[k];
		for (i = k + 1; i < terms; i++)
			x[k] -= r[k][i] * x[i];
		x[k] /= r[k][k];
	}
}

/* The covariance is that of a measurement times inverse(R) times its transpose. */
static void set_covariance(struct fit_result *fit, struct columns *c)
{
	long double unit[FIT_TERMS], inverse[FIT_TERMS][FIT_TERMS];
	const double variance = fit->relative * fit->relative;
	unsigned int i, j, k;

	for (k = 0; k < fit->nr_terms; k++) {
		memset(unit, 0, sizeof(unit));
		unit[k] = 1;
		solve(c->r, unit, inverse[k], fit->nr_terms);
	}
	for (i = 0; i < fit->nr_terms; i++) {
		for (j = 0; j < fit->nr_terms; j++) {
			fit->covariance[i][j] = 0;
			for (k = 0; k < fit->nr_terms; k++)
				fit->covariance[i][j] += inverse[k][i] * inverse[k][j] * variance;
		}
		fit->error[i] = sqrt(fit->covariance[i][i]);
	}
}

/* How well it fits: @c->y has what the terms leave of each measurement. */
static void set_quality(struct fit_result *fit, const struct fit_data *data,
			const struct columns *c)
{
	long double mean = 0, spread = 0, left = 0, bytes;
	unsigned int i;

	for (i = 0; i < data->nr; i++)
		mean += (long double)data->point[i].bytes / data->nr;
	fit->worst = 0;
	for (i = 0; i < data->nr; i++) {
		bytes = data->point[i].bytes;
		spread += (bytes - mean) * (bytes - mean);
		left += bytes * c->y[i] * bytes * c->y[i];
		fit->worst = fmax(fit->worst, fabsl(c->y[i]));
	}
	fit->r2 = spread > 0 ? 1 - left / spread : 1;
	fit->relative = sqrtl(dot(c->y, c->y, data->nr) / fit->freedom);
}

int fit_points(const struct fit_data *data, struct fit_result *fit, unsigned int *at)
{
	static struct columns c;
	long double x[FIT_TERMS];
	unsigned int i;

	if (data->nr <= fit->nr_terms)
		return -ERANGE;
	fit->freedom = data->nr - fit->nr_terms;
	fill(&c, data, fit);
	*at = orthogonalize(&c, fit->nr_terms, data->nr);
	if (*at < fit->nr_terms)
		return -EDOM;
	solve(c.r, c.projected, x, fit->nr_terms);
	for (i = 0; i < fit->nr_terms; i++)
		fit->bytes[i] = x[i];
	set_quality(fit, data, &c);
	set_covariance(fit, &c);
	return 0;
}

double fit_student_95(unsigned int freedom)
{
	static const double t[] = {
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
		2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
	};

	if (freedom <= sizeof(t) / sizeof(t[0]))
		return t[freedom - 1];
	return 1.960 + 2.46 / freedom;
}

double fit_predict(const struct fit_result *fit, uint64_t ranks, uint64_t ranks_per_node,
		   double *half)
{
	long double value[FIT_TERMS], bytes = 0, variance = 0;
	unsigned int i, k;

	for (i = 0; i < fit->nr_terms; i++) {
		value[i] = term_value(fit->term[i], ranks, ranks_per_node);
		bytes += value[i] * fit->bytes[i];
	}
	for (i = 0; i < fit->nr_terms; i++)
		for (k = 0; k < fit->nr_terms; k++)
			variance += value[i] * value[k] * fit->covariance[i][k];
	/* The coefficients may be wrong, and a measurement there would not be exact either. */
	variance += bytes * bytes * fit->relative * fit->relative;
	*half = fit_student_95(fit->freedom) * sqrtl(variance);
	return bytes;
}
