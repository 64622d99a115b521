// SPDX-License-Identifier: GPL-2.0
/*
 * usage: memory space|processes TIMES
 *
 * What messages cost in memory, after so many all-to-alls of 4 KiB. One line, in
 * KiB: ranks, page tables of all, what lies in /dev/shm, what the component pvas
 * holds, all and of the rank that has most. In a space there is one set of page
 * tables, which each rank reports.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BYTES 4096

/* A line of /proc/self/status, in KiB */
static long status(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name) + 1);
	if (f)
		fclose(f);
	return kib;
}

/* The files in /dev/shm that this rank maps: those of all on this node */
static long segments(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096], last[4096] = "", *path;
	struct stat st;
	long kib = 0;

	while (f && fgets(line, sizeof(line), f)) {
		path = strstr(line, "/dev/shm/");
		if (!path)
			continue;
		path[strcspn(path, "\n")] = 0;
		if (!strcmp(path, last) || stat(path, &st))
			continue;
		strcpy(last, path);
		kib += st.st_blocks / 2;
	}
	if (f)
		fclose(f);
	return kib;
}

static long read_counter(int var)
{
	MPI_T_pvar_session session;
	MPI_T_pvar_handle handle;
	unsigned long long value = 0;
	int count;

	MPI_T_pvar_session_create(&session);
	if (!MPI_T_pvar_handle_alloc(session, var, NULL, &handle, &count))
		MPI_T_pvar_read(session, handle, &value);
	MPI_T_pvar_session_free(&session);
	return value / 1024;
}

static long held(void)
{
	int provided, var;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	if (MPI_T_pvar_get_index("btl_pvas_bytes_held", MPI_T_PVAR_CLASS_LEVEL, &var))
		return 0;
	return read_counter(var);
}

static void talk(int size)
{
	char *out = calloc(size, BYTES), *in = calloc(size, BYTES);

	MPI_Alltoall(out, BYTES, MPI_CHAR, in, BYTES, MPI_CHAR, MPI_COMM_WORLD);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	long mine[2], sum[2], most;
	int rank, size, space, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	space = argc > 1 && !strcmp(argv[1], "space");
	for (i = 0; argc > 2 && i < atoi(argv[2]); i++)
		talk(size);
	MPI_Barrier(MPI_COMM_WORLD);
	mine[0] = status("VmPTE");
	mine[1] = held();
	MPI_Reduce(mine, sum, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine[1], &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d %ld %ld %ld %ld\n", size, space ? mine[0] : sum[0], segments(), sum[1],
		       most);
	MPI_Finalize();
	return 0;
}
