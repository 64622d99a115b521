// SPDX-License-Identifier: LGPL-2.1-or-later
/* UCX as stores and memory servers use it */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>
#include "ucx.h"
#include "wire.h"

/* Seconds to look for events, and the most waits to go without after that was in vain */
#define SPIN_S		60e-6
#define SPIN_SKIP_MOST	255
/* Numbers of active messages that are set, a power of two */
#define HANDLERS	64

_Thread_local int far_ucx_quiet;
static bool quiet_all;

/*
 * A connection without traffic ends when the other side has been silent for a minute: a link
 * may be cut for a while. Shared memory works for processes of one user only, and a memory
 * server on the same node is of little use. UCX 1.13 may abort the process when a connection
 * is reset in the middle of a message that it sends without a copy in several pieces; and when
 * one breaks before the acknowledgement of a put has been read, so large messages go without puts.
 */
static const struct {
	const char *variable, *name, *value;
} settings[] = {
	{ "UCX_TLS", "TLS", "^sm" },
	{ "UCX_TCP_KEEPIDLE", "KEEPIDLE", "20s" },
	{ "UCX_TCP_KEEPINTVL", "KEEPINTVL", "10s" },
	{ "UCX_TCP_KEEPCNT", "KEEPCNT", "4" },
	{ "UCX_ZCOPY_THRESH", "ZCOPY_THRESH", "inf" },
	{ "UCX_TCP_PUT_ENABLE", "PUT_ENABLE", "n" },
	{ "UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", "64k" },
	{ "UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", "128k" },
	{ "UCX_TCP_CM_REUSEADDR", "CM_REUSEADDR", "y" },
};

static ucs_log_func_rc_t hush(const char *file, unsigned int line, const char *function,
			      ucs_log_level_t level, const ucs_log_component_config_t *config,
			      const char *message, va_list args)
{
	(void)file, (void)line, (void)function, (void)level;
	(void)config, (void)message, (void)args;
	return quiet_all || far_ucx_quiet ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

/* PVAS_DEBUG=1 shows UCX's messages, too. */
static bool debug(void)
{
	const char *value = getenv("PVAS_DEBUG");

	return value && *value && strcmp(value, "0");
}

/* UCX's library takes the signals of errors when it is loaded; the program's own way is better. */
static void load(void)
{
	ucs_debug_disable_signal(SIGSEGV);
	ucs_debug_disable_signal(SIGBUS);
	ucs_debug_disable_signal(SIGILL);
	ucs_debug_disable_signal(SIGFPE);
	if (!debug())
		ucs_log_push_handler(hush);
}

static void load_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
}

void far_ucx_quiet_all(void)
{
	load_once();
	quiet_all = true;
}

ucs_status_t far_ucx_open(ucp_context_h *context, const char *network)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
		/* Not RMA: with it, UCX writes where the other side says. */
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
		.name = "pvas-far",
	};
	ucp_config_t *config;
	ucs_status_t status;
	size_t i;

	load_once();
	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return status;
	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (!getenv(settings[i].variable))
			ucp_config_modify(config, settings[i].name, settings[i].value);
	if (network)
		ucp_config_modify(config, "NET_DEVICES", network);
	status = ucp_init(&params, config, context);
	ucp_config_release(config);
	return status;
}

ucs_status_t far_ucx_worker(ucp_context_h context, uint64_t token, ucp_worker_h *worker, int *efd)
{
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
		.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK,
		.client_id = token,
	};
	ucs_status_t status;

	if (token)
		params.field_mask |= UCP_WORKER_PARAM_FIELD_CLIENT_ID;
	status = ucp_worker_create(context, &params, worker);
	if (status != UCS_OK)
		return status;
	status = ucp_worker_get_efd(*worker, efd);
	if (status != UCS_OK)
		ucp_worker_destroy(*worker);
	return status;
}

/*
 * UCX 1.13 leaves the other entries of its table uninitialised when it grows, and calls what
 * they have there if a message has that number. It doubles: a power of two fills it.
 */
ucs_status_t far_ucx_handler(ucp_worker_h worker, ucp_am_recv_callback_t cb, void *arg)
{
	ucp_am_handler_param_t param = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.arg = arg,
	};
	ucs_status_t status = UCS_OK;
	unsigned int id;

	for (id = 0; id < HANDLERS && status == UCS_OK; id++) {
		param.id = id;
		param.cb = id == FAR_AM ? cb : NULL;
		status = ucp_worker_set_am_recv_handler(worker, &param);
	}
	return status;
}

ucs_status_ptr_t far_ucx_fetch(ucp_worker_h worker, void *announced, void *to, size_t bytes,
			       ucp_am_recv_data_nbx_callback_t done, void *arg)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.cb.recv_am = done,
		.user_data = arg,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};

	return ucp_am_recv_data_nbx(worker, announced, to, bytes, &param);
}

/*
 * An idle processor takes longer to wake up than an answer to come; but where the other side
 * waits for this processor, every moment here is lost.
 */
bool far_spin(struct far_spin *spin, ucp_worker_h worker)
{
	double until;

	if (spin->skipped < spin->skip) {
		spin->skipped++;
		return false;
	}
	until = far_now() + SPIN_S;
	do {
		if (ucp_worker_progress(worker)) {
			spin->skip = 0;
			return true;
		}
		sched_yield();
	} while (far_now() < until);
	spin->skipped = 0;
	spin->skip = spin->skip < SPIN_SKIP_MOST ? 2 * spin->skip + 1 : SPIN_SKIP_MOST;
	return false;
}

double far_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}
