/* SPDX-License-Identifier: GPL-2.0-only */
/* Measured bytes a node, fitted to terms in n and m as those of the lean paper. */
#ifndef SCALE_FIT_H
#define SCALE_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define FIT_POINTS	2048

/**
 * struct fit_point - a measurement
 * @ranks:		n
 * @ranks_per_node:	m
 * @bytes:		a node
 */
struct fit_point {
	uint64_t ranks;
	uint64_t ranks_per_node;
	uint64_t bytes;
};

/**
 * struct fit_data - measurements
 * @nr:		how many
 * @point:	they
 * @error:	if they can't be used: why, one line
 */
struct fit_data {
	unsigned int nr;
	struct fit_point point[FIT_POINTS];
	char error[240];
};

/*
 * Reads lines "n m bytes" from @path, or standard input if it is "-". Returns 0 or -EINVAL, with
 * @data->error.
 */
int fit_read(struct fit_data *data, const char *path);

/* 1, n, mn, m^2, m and n/m, in this order */
enum fit_term { FIT_ONE, FIT_N, FIT_MN, FIT_M2, FIT_M, FIT_NODES, FIT_TERMS };

extern const char *const fit_term_names[FIT_TERMS + 1];

/**
 * struct fit_result - bytes(n, m) as a sum of terms
 * @nr_terms:	how many
 * @term:	which
 * @bytes:	the coefficient of each
 * @error:	its standard error
 * @covariance:	of two coefficients
 * @relative:	standard error of a measurement, as a part of it
 * @worst:	the largest difference between a measurement and the fit, as a part of it
 * @r2:		coefficient of determination
 * @freedom:	measurements that are more than terms
 */
struct fit_result {
	unsigned int nr_terms;
	enum fit_term term[FIT_TERMS];
	double bytes[FIT_TERMS];
	double error[FIT_TERMS];
	double covariance[FIT_TERMS][FIT_TERMS];
	double relative;
	double worst;
	double r2;
	unsigned int freedom;
};

/* As many terms as the measurements can tell apart: 1 and n, with several m also those in m */
void fit_choose_terms(const struct fit_data *data, struct fit_result *fit);

/*
 * Fits the terms that @fit has. Returns 0; -ERANGE: too few measurements; -EDOM: they can't tell
 * @fit->term[*at] from those before it.
 */
int fit_points(const struct fit_data *data, struct fit_result *fit, unsigned int *at);

/* Bytes a node of another job, and the half of the interval that has it in 95 of 100 cases */
double fit_predict(const struct fit_result *fit, uint64_t ranks, uint64_t ranks_per_node,
		   double *half);

/* Student's t for an interval of 95 % */
double fit_student_95(unsigned int freedom);

#endif
