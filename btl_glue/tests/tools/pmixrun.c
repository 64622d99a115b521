// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * pmixrun: start MPI programs for tests and benchmarks, with no mpirun, as
 * tasks of one space or, to compare, as plain processes:
 *
 *	pmixrun user|kernel|plain N program [argument]...
 *
 * As much of a PMIx server as Open MPI needs to start and to end.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix.h>
#include <pmix_server.h>

#include "../../../libpvas/pvas.h"

#define MAX_RANKS 1024

static pmix_nspace_t nspace;
static int nr_ranks;
static pid_t pids[MAX_RANKS];
static struct pvas_space *space;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "pmixrun: %s: %s\n", what, why);
	exit(1);
}

static void must(const char *what, pmix_status_t rc)
{
	if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED)
		die(what, PMIx_Error_string(rc));
}

/* ---- what clients ask of the server ---- */

static pmix_status_t connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
			       void *data)
{
	(void)proc;
	(void)object;
	if (done)
		done(PMIX_SUCCESS, data);
	return PMIX_SUCCESS;
}

static void kill_all(void)
{
	int i;

	for (i = 0; i < nr_ranks; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
}

static pmix_status_t aborted(const pmix_proc_t *proc, void *object, int status,
			     const char message[], pmix_proc_t procs[], size_t nr,
			     pmix_op_cbfunc_t done, void *data)
{
	(void)object;
	(void)procs;
	(void)nr;
	fprintf(stderr, "pmixrun: rank %u aborts with %d: %s\n", proc->rank, status,
		message ? message : "");
	kill_all();
	if (done)
		done(PMIX_SUCCESS, data);
	return PMIX_SUCCESS;
}

/* All ranks are here: what the library collected is all there is. */
static pmix_status_t fence(const pmix_proc_t procs[], size_t nr, const pmix_info_t info[],
			   size_t ninfo, char *bytes, size_t len, pmix_modex_cbfunc_t done,
			   void *data)
{
	(void)procs;
	(void)nr;
	(void)info;
	(void)ninfo;
	if (done)
		done(PMIX_SUCCESS, bytes, len, data, NULL, NULL);
	return PMIX_SUCCESS;
}

static pmix_status_t modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
			   pmix_modex_cbfunc_t done, void *data)
{
	(void)proc;
	(void)info;
	(void)ninfo;
	if (done)
		done(PMIX_ERR_NOT_FOUND, NULL, 0, data, NULL, NULL);
	return PMIX_SUCCESS;
}

static pmix_server_module_t callbacks = {
	.client_connected = connected,
	.client_finalized = connected,
	.abort = aborted,
	.fence_nb = fence,
	.direct_modex = modex,
};

/* ---- what the server tells clients ---- */

static volatile int waiting;

static void op_done(pmix_status_t status, void *data)
{
	(void)data;
	must("a registration", status);
	waiting = 0;
}

static void wait_op(const char *what, pmix_status_t rc)
{
	if (rc == PMIX_OPERATION_SUCCEEDED)
		return;
	must(what, rc);
	while (waiting)
		usleep(100);
}

/* Filled one after the other */
struct infos {
	pmix_info_t *info;
	size_t nr;
};

static void add(struct infos *to, const char *key, const void *value, pmix_data_type_t type)
{
	PMIX_INFO_LOAD(&to->info[to->nr], key, value, type);
	to->nr++;
}

static void add_u32(struct infos *to, const char *key, uint32_t value)
{
	add(to, key, &value, PMIX_UINT32);
}

static void add_proc(struct infos *to, int rank)
{
	struct infos of;
	pmix_data_array_t *array;
	pmix_rank_t r = rank;
	uint16_t local = rank;

	PMIX_DATA_ARRAY_CREATE(array, 6, PMIX_INFO);
	of.info = array->array;
	of.nr = 0;
	add(&of, PMIX_RANK, &r, PMIX_PROC_RANK);
	add(&of, PMIX_LOCAL_RANK, &local, PMIX_UINT16);
	add(&of, PMIX_NODE_RANK, &local, PMIX_UINT16);
	add(&of, PMIX_GLOBAL_RANK, &r, PMIX_PROC_RANK);
	add_u32(&of, PMIX_NODEID, 0);
	add_u32(&of, PMIX_APPNUM, 0);
	add(to, PMIX_PROC_DATA, array, PMIX_DATA_ARRAY);
}

static void register_job(void)
{
	static char peers[MAX_RANKS * 6];
	char host[256], *nodes, *procs;
	struct infos to;
	size_t len = 0;
	int i;

	gethostname(host, sizeof(host));
	for (i = 0; i < nr_ranks; i++)
		len += sprintf(peers + len, "%s%d", i ? "," : "", i);
	must("the node map", PMIx_generate_regex(host, &nodes));
	must("the process map", PMIx_generate_ppn(peers, &procs));
	PMIX_INFO_CREATE(to.info, nr_ranks + 10);
	to.nr = 0;
	add(&to, PMIX_NODE_MAP, nodes, PMIX_REGEX);
	add(&to, PMIX_PROC_MAP, procs, PMIX_REGEX);
	add_u32(&to, PMIX_UNIV_SIZE, nr_ranks);
	add_u32(&to, PMIX_JOB_SIZE, nr_ranks);
	add_u32(&to, PMIX_MAX_PROCS, nr_ranks);
	add_u32(&to, PMIX_LOCAL_SIZE, nr_ranks);
	add_u32(&to, PMIX_NODE_SIZE, nr_ranks);
	add_u32(&to, PMIX_NUM_NODES, 1);
	add(&to, PMIX_LOCAL_PEERS, peers, PMIX_STRING);
	add(&to, PMIX_JOBID, nspace, PMIX_STRING);
	for (i = 0; i < nr_ranks; i++)
		add_proc(&to, i);
	waiting = 1;
	wait_op("the job", PMIx_server_register_nspace(nspace, nr_ranks, to.info, to.nr, op_done,
						       NULL));
}

/* ---- the ranks ---- */

extern char **environ;

static pid_t start(int rank, const char *path, char **argv, bool plain)
{
	pmix_proc_t proc;
	char **env = NULL;
	pid_t pid = -1;
	int i, n;

	PMIX_LOAD_PROCID(&proc, nspace, rank);
	waiting = 1;
	wait_op("a client", PMIx_server_register_client(&proc, getuid(), getgid(), NULL, op_done,
							NULL));
	for (n = 0; environ[n]; n++)
		;
	env = calloc(n + 1, sizeof(*env));
	for (i = 0; i < n; i++)
		env[i] = strdup(environ[i]);
	must("a client's environment", PMIx_server_setup_fork(&proc, &env));
	if (plain) {
		pid = fork();
		if (!pid) {
			execve(path, argv, env);
			_exit(127);
		}
	} else {
		int err = pvas_spawn(space, PVAS_ANY, path, argv, env, NULL, &pid);

		if (err < 0)
			die(pvas_last_error(), strerror(-err));
	}
	return pid;
}

static int reap(void)
{
	int status, worst = 0, left = nr_ranks, i;
	pid_t pid;

	while (left) {
		pid = wait(&status);
		for (i = 0; i < nr_ranks && pids[i] != pid; i++)
			;
		if (i == nr_ranks)
			continue;
		pids[i] = 0;
		left--;
		status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (!status || worst)
			continue;
		worst = status;
		fprintf(stderr, "pmixrun: rank %d ended with status %d\n", i, status);
		/* The others may tell what they saw. */
		sleep(2);
		kill_all();
	}
	return worst;
}

int main(int argc, char **argv)
{
	struct pvas_create_attr attr = { .size = sizeof(attr) };
	bool plain;
	char path[PATH_MAX];
	int i, err;

	if (argc < 4)
		die("usage", "pmixrun user|kernel|plain N program [argument]...");
	plain = !strcmp(argv[1], "plain");
	attr.backend = !strcmp(argv[1], "kernel") ? PVAS_BACKEND_KERNEL : PVAS_BACKEND_USER;
	nr_ranks = atoi(argv[2]);
	if (nr_ranks < 1 || nr_ranks > MAX_RANKS)
		die(argv[2], "not a number of ranks");
	if (pvas_find_program(argv[3], NULL, path, sizeof(path)))
		die(argv[3], "not found");
	err = plain ? 0 : pvas_create(&space, &attr);
	if (err)
		die(pvas_last_error(), strerror(-err));
	snprintf(nspace, sizeof(nspace), "pmixrun-%d", getpid());
	/* Open MPI 4.1 takes a process for a singleton if it knows of no daemon of its own. */
	setenv("OMPI_MCA_orte_local_daemon_uri", "0.0;tcp://127.0.0.1:1", 1);
	/* Ranks that wait must let others run, where there are more of them than processors. */
	if (nr_ranks > sysconf(_SC_NPROCESSORS_ONLN))
		setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
	must("the PMIx server", PMIx_server_init(&callbacks, NULL, 0));
	register_job();
	for (i = 0; i < nr_ranks; i++)
		pids[i] = start(i, path, argv + 3, plain);
	err = reap();
	pvas_destroy(space);
	PMIx_server_finalize();
	return err;
}
