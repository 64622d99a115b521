/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For compare.h, an operation that moves data: after struct operation, which has its way in
 * @how, its @request, and the data that it sends and receives in @s and @r.
 */
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
	memset(op->s.memory, 0xee, op->s.bytes);
}

static void release(void *arg)
{
	struct operation *op = arg;

	free(op->s.memory);
	free(op->r.memory);
}
