// SPDX-License-Identifier: GPL-2.0-only
/* Fits of known functions: the coefficients come back, and noise stays within the error. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../command.h"
#include "unit.h"

static struct fit_data data;

static void add(uint64_t ranks, uint64_t ranks_per_node, double bytes)
{
	data.point[data.nr++] = (struct fit_point){ ranks, ranks_per_node, llrint(bytes) };
}

/* Repeatable, between -1 and 1 */
static double noise(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / (1UL << 52) - 1;
}

static double truth(double n, double m)
{
	return 3e6 + 40 * n + 16 * m * n + 9000 * m * m;
}

static void make(double relative_noise, unsigned int most_ranks_per_node)
{
	uint64_t n, m;

	data.nr = 0;
	for (m = 1; m <= most_ranks_per_node; m *= 4)
		for (n = 1024; n <= 65536; n *= 2)
			add(n, m, truth(n, m) * (1 + relative_noise * noise()));
}

static bool near(double got, double wanted, double part)
{
	return fabs(got - wanted) <= part * fabs(wanted);
}

static void check_exact(void)
{
	struct fit_result fit = { .nr_terms = 4, .term = { FIT_ONE, FIT_N, FIT_MN, FIT_M2 } };
	unsigned int at;
	double half;

	make(0, 16);
	NUMBER(fit_points(&data, &fit, &at), 0);
	EXPECT(near(fit.bytes[0], 3e6, 1e-9));
	EXPECT(near(fit.bytes[1], 40, 1e-9));
	EXPECT(near(fit.bytes[2], 16, 1e-9));
	EXPECT(near(fit.bytes[3], 9000, 1e-9));
	EXPECT(near(fit_predict(&fit, 1 << 22, 4, &half), truth(1 << 22, 4), 1e-9));
	EXPECT(half < 1e-6 * truth(1 << 22, 4));
	EXPECT(fit.r2 > 0.999999);
}

/* The paper's own equation (3), from its values: (672 + 31152(n - m) + 8n + 16) m */
static void check_equation3(void)
{
	struct fit_result fit = { .nr_terms = 0 };
	struct scale_job job = { .communicators = 10, .contexts = 1024 };
	unsigned int at;

	data.nr = 0;
	for (job.ranks_per_node = 1; job.ranks_per_node <= 16; job.ranks_per_node *= 4)
		for (job.ranks = 1024; job.ranks <= 1 << 20; job.ranks *= 4)
			add(job.ranks, job.ranks_per_node, scale_eq3_low_level_bytes(&job));
	fit_choose_terms(&data, &fit);
	NUMBER(fit.nr_terms, 5);
	NUMBER(fit_points(&data, &fit, &at), 0);
	EXPECT(fabs(fit.bytes[FIT_ONE]) < 1e-3);
	EXPECT(near(fit.bytes[FIT_MN], 31160, 1e-9));
	EXPECT(near(fit.bytes[FIT_M2], -31152, 1e-6));
	EXPECT(near(fit.bytes[FIT_M], 688, 1e-4));
}

/* In 95 of 100 fits the truth is within the error; fewer than 85 would be wrong. */
static void check_noise(void)
{
	const double wanted = truth(1 << 22, 16);
	struct fit_result fit;
	unsigned int i, at, within = 0, term_within = 0;
	double bytes, half;

	for (i = 0; i < 200; i++) {
		make(0.01, 16);
		fit.nr_terms = 4;
		memcpy(fit.term, (enum fit_term[]){ FIT_ONE, FIT_N, FIT_MN, FIT_M2 },
		       4 * sizeof(fit.term[0]));
		if (fit_points(&data, &fit, &at))
			break;
		bytes = fit_predict(&fit, 1 << 22, 16, &half);
		within += fabs(bytes - wanted) <= half;
		term_within += fabs(fit.bytes[2] - 16) <=
			       fit_student_95(fit.freedom) * fit.error[2];
	}
	NUMBER(i, 200);
	EXPECT(within >= 180);
	EXPECT(term_within >= 170 && term_within < 200);
	EXPECT(half < 0.05 * wanted);
	EXPECT(fit.r2 > 0.99);
	EXPECT(fit.relative > 0.003 && fit.relative < 0.01 && fit.worst < 0.02);
}

/* A fit computed by another program, from the normal equations */
static void check_known(void)
{
	struct fit_result fit = { .nr_terms = 2, .term = { FIT_ONE, FIT_N } };
	unsigned int at;
	double half;

	data.nr = 0;
	add(1000, 2, 5200);
	add(2000, 2, 8300);
	add(4000, 2, 13800);
	add(8000, 2, 26100);
	add(16000, 2, 49500);
	NUMBER(fit_points(&data, &fit, &at), 0);
	NUMBER(fit.freedom, 3);
	PRINTED(fit.bytes[0], "2270.23592418");
	PRINTED(fit.bytes[1], "2.95062397111");
	PRINTED(fit.error[0], "90.6189850566");
	PRINTED(fit.error[1], "0.03571149054");
	PRINTED(fit.covariance[0][1], "-2.29047635579");
	PRINTED(fit.covariance[1][0], "-2.29047635579");
	PRINTED(fit.relative, "0.01550001360");
	PRINTED(fit.worst, "0.01976317454");
	PRINTED(fit.r2, "0.99989059089");
	PRINTED(fit_predict(&fit, 100000, 2, &half), "297332.633035");
	PRINTED(half, "18428.96383");
}

/* As many terms as there are values of m to tell them apart, in whatever order */
static void check_terms(void)
{
	struct fit_result fit;

	data.nr = 0;
	add(1000, 7, 1);
	add(1000, 4, 1);
	add(2000, 4, 1);
	fit_choose_terms(&data, &fit);
	NUMBER(fit.nr_terms, 4);
	NUMBER(fit.term[0], FIT_ONE);
	NUMBER(fit.term[3], FIT_M2);
	add(3000, 7, 1);
	add(2000, 5, 1);
	add(2000, 3, 1);
	add(2000, 2, 1);
	fit_choose_terms(&data, &fit);
	NUMBER(fit.nr_terms, 5);
}

static void check_refused(void)
{
	struct fit_result fit = { .nr_terms = 3, .term = { FIT_ONE, FIT_N, FIT_MN } };
	unsigned int at;

	/* With one m only, mn is a multiple of n. */
	make(0.01, 1);
	NUMBER(fit_points(&data, &fit, &at), (uint64_t)-EDOM);
	NUMBER(at, 2);
	fit_choose_terms(&data, &fit);
	NUMBER(fit.nr_terms, 2);
	NUMBER(fit_points(&data, &fit, &at), 0);
	make(0.01, 4);
	fit_choose_terms(&data, &fit);
	NUMBER(fit.nr_terms, 4);
	data.nr = 4;
	NUMBER(fit_points(&data, &fit, &at), (uint64_t)-ERANGE);
}

/* Student's density, integrated by Simpson's rule from -t to t */
static double within(double t, unsigned int freedom)
{
	const double f = freedom, h = t / 2000;
	const double factor = exp(lgamma((f + 1) / 2) - lgamma(f / 2)) / sqrt(f * M_PI);
	double sum = 0;
	unsigned int i;

	for (i = 0; i <= 2000; i++)
		sum += (!i || i == 2000 ? 1 : i % 2 ? 4 : 2) *
		       pow(1 + i * h * i * h / f, -(f + 1) / 2);
	return 2 * factor * sum * h / 3;
}

static void check_student(void)
{
	unsigned int freedom;

	for (freedom = 1; freedom < 200; freedom++)
		EXPECT(fabs(within(fit_student_95(freedom), freedom) - 0.95) < 0.0001);
	PRINTED(fit_student_95(100000), "1.960");
}

void test_fit(void)
{
	check_exact();
	check_equation3();
	check_known();
	check_noise();
	check_terms();
	check_refused();
	check_student();
}
