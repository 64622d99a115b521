// SPDX-License-Identifier: GPL-2.0-only
/* pvas-memd: starts, and loops until it is told to end */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "key.h"
#include "memd.h"

/* Rounds of UCX's progress until other things get their turn */
#define ROUNDS	64

struct loop {
	struct memd *memd;
	int epoll, signals;
	bool ended;
};

/*
 * UCX obeys a file ucx.conf of the current directory, in which others may be able to create
 * files: such a file names programs to run and files to write. It looks for the file in a
 * constructor, before which only functions in .preinit_array run.
 */
static int start_directory = -1;

static void leave_directory(void)
{
	start_directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (chdir("/"))
		_exit(1);
}

__attribute__((section(".preinit_array"), used))
static void (*const before_libraries)(void) = leave_directory;

/* Back, for paths in options */
static void return_to_directory(void)
{
	if (start_directory < 0)
		return;		/* it could not be searched, either */
	if (fchdir(start_directory))
		fprintf(stderr, "pvas-memd: relative paths begin at /: %s\n", strerror(errno));
	close(start_directory);
}

/* Nobody may look into this process: it has all jobs' pages and keys. */
static void harden(void)
{
	struct rlimit none = { 0, 0 }, files;

	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max < MAX_FDS ? files.rlim_max : MAX_FDS;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static int watch(struct loop *loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Before UCX makes its thread, which must not get them. */
static int take_signals(struct loop *loop)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	loop->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->signals < 0 || loop->epoll < 0)
		return -errno;
	return watch(loop, loop->signals);
}

static void read_keys(struct memd *memd)
{
	jobs_read(memd);
	admission_update(memd);
}

static void handle_signals(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			report(loop->memd);
		else if (info.ssi_signo == SIGHUP)
			read_keys(loop->memd);
		else
			loop->ended = true;
	}
}

static void handle_input(struct loop *loop)
{
	char bytes[256];
	ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (!got || (got < 0 && errno != EINTR && errno != EAGAIN))
		loop->ended = true;
}

static bool progress(struct memd *memd)
{
	bool any = false;
	int i;

	for (i = 0; i < ROUNDS && ucp_worker_progress(memd->worker); i++)
		any = true;
	if (ucp_worker_progress(memd->entrance))
		any = true;
	return any;
}

/* New connections may wait. */
static bool work(struct memd *memd)
{
	bool any = progress(memd) || (memd->conn_count && far_spin(&memd->spin, memd->worker));

	conns_reap(memd);
	return released_free_some(memd) || any;
}

static void wait_for_events(struct loop *loop, int timeout_ms)
{
	struct epoll_event events[4];
	int i, n;

	n = epoll_wait(loop->epoll, events, 4, timeout_ms);
	for (i = 0; i < n; i++) {
		if (events[i].data.fd == loop->signals)
			handle_signals(loop);
		else if (events[i].data.fd == STDIN_FILENO)
			handle_input(loop);
	}
}

static void run(struct loop *loop)
{
	struct memd *memd = loop->memd;
	double tick = 0;

	while (!loop->ended) {
		bool busy = work(memd);

		if (far_now() > tick) {
			jobs_prune(memd);
			admission_report(memd);
			strangers_end(memd);
			wait_for_events(loop, 0);
			tick = far_now() + 1;
		}
		if (!busy && ucp_worker_arm(memd->worker) == UCS_OK &&
		    ucp_worker_arm(memd->entrance) == UCS_OK)
			wait_for_events(loop, 1000);
	}
}

static int start(struct loop *loop)
{
	struct memd *memd = loop->memd;
	char why[300] = "";
	ucs_status_t status;
	int err;

	err = jobs_read(memd);
	if (err)
		return err;
	err = entrance_resolve(memd, why, sizeof(why));
	if (err) {
		fprintf(stderr, "pvas-memd: %s\n", why);
		return err;
	}
	far_ucx_quiet_all();
	status = far_ucx_open(&memd->context, *memd->network ? memd->network : NULL);
	if (status == UCS_OK)
		status = far_ucx_worker(memd->context, 0, &memd->worker, &memd->worker_efd);
	if (status == UCS_OK)
		status = far_ucx_handler(memd->worker, conn_receive, memd);
	if (status != UCS_OK) {
		fprintf(stderr, "pvas-memd: UCX: %s\n", ucs_status_string(status));
		return -ENODEV;
	}
	err = entrance_open(memd, why, sizeof(why));
	if (err) {
		fprintf(stderr, "pvas-memd: %s\n", why);
		return err;
	}
	admission_update(memd);
	err = watch(loop, memd->worker_efd);
	if (!err)
		err = watch(loop, memd->entrance_efd);
	if (!err && memd->options.until_eof)
		err = watch(loop, STDIN_FILENO);
	if (err)
		fprintf(stderr, "pvas-memd: can't wait for events: %s\n", strerror(-err));
	return err;
}

/*
 * The kernel closes the connections and clears the memory. UCX 1.13 crashes when it is asked to
 * end after connections that were only begun.
 */
static _Noreturn void stop(struct memd *memd)
{
	struct job *job;

	report(memd);
	for (job = memd->jobs; job; job = job->next)
		far_wipe(job->key, sizeof(job->key));
	out_end();
	_exit(0);
}

int main(int argc, char **argv)
{
	static struct memd memd;
	struct loop loop = { .memd = &memd };
	int status;

	return_to_directory();
	status = options_parse(&memd.options, argc, argv);

	if (status >= 0)
		return status;
	harden();
	pages_limit(0);
	if (take_signals(&loop) < 0) {
		fprintf(stderr, "pvas-memd: %s\n", strerror(errno));
		return 1;
	}
	if (start(&loop) < 0)
		return 1;
	status = out_begin();
	if (status < 0) {
		fprintf(stderr, "pvas-memd: %s\n", strerror(-status));
		return 1;
	}
	run(&loop);
	stop(&memd);
}
