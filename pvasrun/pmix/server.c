// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PMIx server's callbacks. All ranks are on this node, so the data that libpmix has
 * collected from its clients is complete.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

static int event_fd = -1;

/* At most PIPE_BUF bytes, so the write is atomic. An error means that pvasrun exits. */
static void send_event(enum rank_event_kind kind, const pmix_proc_t *proc, int status,
		       const char *text)
{
	struct rank_event event = { .kind = kind, .rank = proc->rank, .status = status };

	snprintf(event.text, sizeof(event.text), "%s", text ? text : "");
	if (write(event_fd, &event, sizeof(event)) < 0)
		return;
}

static pmix_status_t succeed(pmix_op_cbfunc_t done, void *data)
{
	if (done)
		done(PMIX_SUCCESS, data);
	return PMIX_SUCCESS;
}

static pmix_status_t connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
			       void *data)
{
	(void)object;
	send_event(RANK_INIT, proc, 0, NULL);
	return succeed(done, data);
}

static pmix_status_t finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
			       void *data)
{
	(void)object;
	send_event(RANK_FINALIZE, proc, 0, NULL);
	return succeed(done, data);
}

static pmix_status_t aborted(const pmix_proc_t *proc, void *object, int status,
			     const char message[], pmix_proc_t procs[], size_t nr,
			     pmix_op_cbfunc_t done, void *data)
{
	(void)object;
	(void)procs;
	(void)nr;
	send_event(RANK_ABORT, proc, status, message);
	return succeed(done, data);
}

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

/* Only for ranks of other nodes: libpmix has the data of its own clients. */
static pmix_status_t modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
			   pmix_modex_cbfunc_t done, void *data)
{
	(void)proc;
	(void)info;
	(void)ninfo;
	(void)done;
	(void)data;
	return PMIX_ERR_NOT_FOUND;
}

static pmix_status_t connect_procs(const pmix_proc_t procs[], size_t nr, const pmix_info_t info[],
				   size_t ninfo, pmix_op_cbfunc_t done, void *data)
{
	(void)procs;
	(void)nr;
	(void)info;
	(void)ninfo;
	return succeed(done, data);
}

static pmix_status_t spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
			   const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
			   void *data)
{
	(void)info;
	(void)ninfo;
	(void)done;
	(void)data;
	send_event(RANK_SPAWN, proc, 0, napps ? apps[0].cmd : NULL);
	return PMIX_ERR_NOT_SUPPORTED;
}

/* libpmix itself delivers events among its own clients. */
static pmix_status_t register_events(pmix_status_t *codes, size_t nr, const pmix_info_t info[],
				     size_t ninfo, pmix_op_cbfunc_t done, void *data)
{
	(void)codes;
	(void)nr;
	(void)info;
	(void)ninfo;
	(void)done;
	(void)data;
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t deregister_events(pmix_status_t *codes, size_t nr, pmix_op_cbfunc_t done,
				       void *data)
{
	(void)codes;
	(void)nr;
	(void)done;
	(void)data;
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t notify(pmix_status_t code, const pmix_proc_t *source,
			    pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
			    pmix_op_cbfunc_t done, void *data)
{
	(void)code;
	(void)source;
	(void)range;
	(void)info;
	(void)ninfo;
	(void)done;
	(void)data;
	return PMIX_OPERATION_SUCCEEDED;
}

/* Events that libpmix itself generates */
static void handle_event(size_t handler, pmix_status_t what, const pmix_proc_t *source,
		     pmix_info_t info[], size_t ninfo, pmix_info_t *results, size_t nresults,
		     pmix_event_notification_cbfunc_fn_t done, void *data)
{
	(void)handler;
	(void)info;
	(void)ninfo;
	(void)results;
	(void)nresults;
	if (what == PMIX_ERR_LOST_CONNECTION)
		send_event(RANK_LOST, source, 0, NULL);
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static pmix_server_module_t callbacks = {
	.client_connected = connected,
	.client_finalized = finalized,
	.abort = aborted,
	.fence_nb = fence,
	.direct_modex = modex,
	.publish = pmix_publish,
	.lookup = pmix_lookup,
	.unpublish = pmix_unpublish,
	.spawn = spawn,
	.connect = connect_procs,
	.disconnect = connect_procs,
	.register_events = register_events,
	.deregister_events = deregister_events,
	.notify_event = notify,
	.log = pmix_log,
};

/* ---- start ---- */

/* libpmix allocates what the header of a message says before any of it has come. */
#define MESSAGE_MIB "64"

/* The transport is fixed, for a pipe replaces the listening socket: see handoff.c. */
static void drop_transport_settings(void)
{
	static const char prefix[] = "PMIX_MCA_ptl_";
	char **from, **to = environ;

	for (from = environ; *from; from++)
		if (strncmp(*from, prefix, sizeof(prefix) - 1))
			*to++ = *from;
	*to = NULL;
}

/*
 * Remove the variables of an outer job, if mpirun or srun started pvasrun. Data go
 * through sockets, not through files, which could be left behind.
 */
static void clean_environment(const struct pmix_job *job)
{
	static const char *const names[] = {
		"PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI", "PMIX_SERVER_URI2",
		"PMIX_SERVER_URI21", "PMIX_SERVER_URI3", "PMIX_SERVER_URI4", "PMIX_SERVER_URI41",
		"PMIX_GDS_MODULE", "PMIX_SECURITY_MODE", "PMIX_BFROP_BUFFER_TYPE",
		"PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR", "PMIX_KEEPALIVE_PIPE",
		"PMIX_LAUNCHER_RNDZ_URI",
	};
	char fd[16];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	drop_transport_settings();
	setenv("PMIX_MCA_ptl_base_max_msg_size", MESSAGE_MIB, 1);
	setenv("PMIX_MCA_gds", "hash", 1);
	/* Its one thread would wait for whoever reads standard error, and all ranks for it. */
	snprintf(fd, sizeof(fd), "%d", job->library_err);
	setenv("PMIX_OUTPUT_STDERR_FD", fd, 1);
	/*
	 * hwloc would connect to X servers and load drivers to find displays and accelerators. With
	 * the user backend what it loads, even unused, would be in the space.
	 */
	setenv("HWLOC_COMPONENTS", "-gl,-opencl,-cuda,-nvml,-rsmi,-levelzero", 0);
	setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
}

static pmix_status_t open_server(const struct pmix_job *job)
{
	pmix_info_t *info;
	pmix_status_t rc;

	PMIX_INFO_CREATE(info, 3);
	if (!info)
		return PMIX_ERR_NOMEM;
	PMIx_Info_load(&info[0], PMIX_SERVER_TMPDIR, job->tmpdir, PMIX_STRING);
	PMIx_Info_load(&info[1], PMIX_SYSTEM_TMPDIR, job->tmpdir, PMIX_STRING);
	PMIx_Info_load(&info[2], PMIX_TCP_IF_INCLUDE, "127.0.0.0/8", PMIX_STRING);
	rc = PMIx_server_init(&callbacks, info, 3);
	PMIX_INFO_FREE(info, 3);
	return rc;
}

static int start(const struct pmix_job *job, const struct pmix_topology *topology, char *why,
		 size_t len)
{
	pmix_status_t rc = open_server(job);

	if (rc != PMIX_SUCCESS) {
		snprintf(why, len, "the PMIx server does not start: %s", PMIx_Error_string(rc));
		return -1;
	}
	PMIx_Register_event_handler(NULL, 0, NULL, 0, handle_event, NULL, NULL);
	rc = pmix_register_job(job, topology);
	if (rc != PMIX_SUCCESS) {
		snprintf(why, len, "PMIx refuses the job: %s", PMIx_Error_string(rc));
		return -1;
	}
	return 0;
}

__attribute__((visibility("default")))
int pvasrun_pmix_start(const struct pmix_job *job, char *why, size_t len)
{
	struct pmix_topology topology;
	int err;

	event_fd = job->event_fd;
	pmix_log_to(job->out, job->err);
	pmix_wait_init();
	clean_environment(job);
	pmix_topology_read(&topology, job);
	err = start(job, &topology, why, len);
	pmix_topology_free(&topology, job);
	return err;
}
