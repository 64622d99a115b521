// SPDX-License-Identifier: GPL-2.0-only
/* PMI-1: connections and answers. */
#include "pmi1.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* Scripts choose lower numbers for their own files: exec 9>lock */
#define MIN_CHILD_FD	20
/* Bytes that may be stored per rank on average; MPICH 4 needs less than 4 KiB. */
#define ROOM_PER_RANK	(64 << 10)
#define ROOM_MIN	(1 << 20)

/* The limits of MPICH's own process manager */
#define NAME_MAX_LEN	256
#define KEY_MAX_LEN	64
#define VALUE_MAX_LEN	1024

/* ---- lines ---- */

/*
 * The value of @name in "cmd=put kvsname=a key=b value=c d": up to the next
 * space, or with @last to the end of the line. "" if there is none.
 */
static const char *value_of(const char *line, const char *name, bool last, char *buf, size_t len)
{
	size_t n = strlen(name);
	const char *at;

	for (at = line; at; at = strchr(at, ' ')) {
		at += strspn(at, " ");
		if (!strncmp(at, name, n) && at[n] == '=') {
			at += n + 1;
			snprintf(buf, len, "%.*s",
				 (int)(last ? strlen(at) : strcspn(at, " ")), at);
			return buf;
		}
	}
	buf[0] = '\0';
	return buf;
}

static int number_of(const char *line, const char *name)
{
	char text[32];

	return atoi(value_of(line, name, false, text, sizeof(text)));
}

static unsigned int rank_of(const struct pmi1_rank *r)
{
	return r - r->pmi->ranks;
}

static const struct mpi_callbacks *callbacks(const struct pmi1_rank *r)
{
	return &r->pmi->job->callbacks;
}

static void rank_close(struct pmi1_rank *r)
{
	loop_forget(&r->pmi->loop, &r->event);
	if (r->event.fd >= 0) {
		/* The rank is to see it: this close isn't the last one. */
		shutdown(r->event.fd, SHUT_RDWR);
		close(r->event.fd);
	}
	r->event.fd = -1;
}

/* A rank sends one request at a time and answers are short: the socket has room. */
__attribute__((format(printf, 2, 3)))
static void reply(struct pmi1_rank *r, const char *format, ...)
{
	char line[VALUE_MAX_LEN + 256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (r->event.fd >= 0 && send(r->event.fd, line, len, MSG_NOSIGNAL) != len)
		rank_close(r);
}

/* ---- requests ---- */

static void put(struct pmi1_rank *r, const char *line)
{
	char key[PMI1_LINE], value[PMI1_LINE];
	bool ok;

	value_of(line, "key", false, key, sizeof(key));
	value_of(line, "value", true, value, sizeof(value));
	ok = *key && strlen(key) <= KEY_MAX_LEN && strlen(value) <= VALUE_MAX_LEN &&
	     pmi1_store(&r->pmi->pairs, key, value);
	reply(r, ok ? "cmd=put_result rc=0 msg=success\n" : "cmd=put_result rc=-1 msg=refused\n");
}

/*
 * MPICH's address of a rank that does not exist (--pretend): that of the rank with its place
 * on this node. Keys are "-allgather-shm-1-RANK", and the same with "-seg-1/2" behind it.
 */
static const char *find_stand_in(const struct pmi1 *pmi, const char *key)
{
	char other[PMI1_LINE + 16];
	unsigned int round, rank;
	int len = 0;

	if (!pmi->job->opt->pretend.nodes ||
	    sscanf(key, "-allgather-shm-%u-%u%n", &round, &rank, &len) != 2)
		return NULL;
	snprintf(other, sizeof(other), "-allgather-shm-%u-%u%s", round,
		 rank % pmi->job->opt->tasks, key + len);
	return pmi1_find(&pmi->pairs, other);
}

static void get(struct pmi1_rank *r, const char *line)
{
	char key[PMI1_LINE];
	const char *value;

	value_of(line, "key", false, key, sizeof(key));
	value = pmi1_find(&r->pmi->pairs, key);
	if (!value)
		value = find_stand_in(r->pmi, key);
	if (value)
		reply(r, "cmd=get_result rc=0 msg=success value=%s\n", value);
	else
		reply(r, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

/*
 * Of all ranks; one that dies before it gets here ends the job. A rank counts once,
 * even if a child that inherited its descriptor sends the request, too.
 */
static void barrier_in(struct pmi1_rank *r)
{
	struct pmi1 *pmi = r->pmi;
	unsigned int i;

	if (r->in_barrier)
		return;
	r->in_barrier = true;
	if (++pmi->in_barrier < pmi->job->opt->tasks)
		return;
	pmi->in_barrier = 0;
	for (i = 0; i < pmi->job->opt->tasks; i++) {
		pmi->ranks[i].in_barrier = false;
		reply(&pmi->ranks[i], "cmd=barrier_out\n");
	}
}

static void publish(struct pmi1_rank *r, const char *line)
{
	char name[PMI1_LINE], port[PMI1_LINE];
	const char *old;

	value_of(line, "service", false, name, sizeof(name));
	value_of(line, "port", true, port, sizeof(port));
	old = pmi1_find(&r->pmi->names, name);
	if (!old && *name && strlen(port) <= VALUE_MAX_LEN &&
	    pmi1_store(&r->pmi->names, name, port))
		reply(r, "cmd=publish_result info=ok rc=0 msg=success\n");
	else
		reply(r, "cmd=publish_result info=fail rc=-1 msg=%s\n",
		    old ? "duplicate_service" : "refused");
}

static void lookup(struct pmi1_rank *r, const char *line)
{
	char name[PMI1_LINE];
	const char *port = pmi1_find(&r->pmi->names,
				     value_of(line, "service", false, name, sizeof(name)));

	if (port)
		reply(r, "cmd=lookup_result info=ok port=%s rc=0 msg=success\n", port);
	else
		reply(r, "cmd=lookup_result info=fail rc=-1 msg=service_not_found\n");
}

static void unpublish(struct pmi1_rank *r, const char *line)
{
	char name[PMI1_LINE];

	value_of(line, "service", false, name, sizeof(name));
	if (pmi1_delete(&r->pmi->names, name))
		reply(r, "cmd=unpublish_result info=ok rc=0 msg=success\n");
	else
		reply(r, "cmd=unpublish_result info=fail rc=-1 msg=service_not_found\n");
}

static void init(struct pmi1_rank *r)
{
	callbacks(r)->initialized(callbacks(r)->arg, rank_of(r));
	reply(r, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static void finalize(struct pmi1_rank *r)
{
	callbacks(r)->finalized(callbacks(r)->arg, rank_of(r));
	reply(r, "cmd=finalize_ack\n");
}

static void get_maxes(struct pmi1_rank *r)
{
	reply(r, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", NAME_MAX_LEN, KEY_MAX_LEN,
	    VALUE_MAX_LEN);
}

static void get_my_kvsname(struct pmi1_rank *r)
{
	reply(r, "cmd=my_kvsname kvsname=%s\n", r->pmi->name);
}

static void get_appnum(struct pmi1_rank *r)
{
	reply(r, "cmd=appnum appnum=%u\n", mpi_job_app(r->pmi->job, rank_of(r)));
}

static void get_universe_size(struct pmi1_rank *r)
{
	reply(r, "cmd=universe_size size=%u\n", options_world_size(r->pmi->job->opt));
}

static const struct {
	const char *name;
	void (*answer)(struct pmi1_rank *r);
	void (*answer_line)(struct pmi1_rank *r, const char *line);
} commands[] = {
	{ "init", init, NULL },
	{ "get_maxes", get_maxes, NULL },
	{ "get_my_kvsname", get_my_kvsname, NULL },
	{ "get_appnum", get_appnum, NULL },
	{ "get_universe_size", get_universe_size, NULL },
	{ "barrier_in", barrier_in, NULL },
	{ "finalize", finalize, NULL },
	{ "put", NULL, put },
	{ "get", NULL, get },
	{ "publish_name", NULL, publish },
	{ "lookup_name", NULL, lookup },
	{ "unpublish_name", NULL, unpublish },
};

/* "mcmd=spawn", one line for each argument, then "endcmd": true for all these lines */
static bool is_spawn(struct pmi1_rank *r, const char *line)
{
	char program[128];

	if (!strcmp(line, "mcmd=spawn"))
		r->in_spawn = true;
	if (!r->in_spawn)
		return false;
	if (!strncmp(line, "execname=", 9) && !r->spawn_told) {
		r->spawn_told = true;
		value_of(line, "execname", true, program, sizeof(program));
		callbacks(r)->spawn_refused(callbacks(r)->arg, rank_of(r), program);
	}
	if (!strcmp(line, "endcmd")) {
		r->in_spawn = false;
		reply(r, "cmd=spawn_result rc=-1 msg=not_supported\n");
	}
	return true;
}

static void handle_line(struct pmi1_rank *r, const char *line)
{
	char command[32];
	size_t i;

	value_of(line, "cmd", false, command, sizeof(command));
	if (is_spawn(r, line))
		return;
	if (!strcmp(command, "abort")) {
		callbacks(r)->aborted(callbacks(r)->arg, rank_of(r),
				      number_of(line, "exitcode"), "");
		return;
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(command, commands[i].name))
			continue;
		if (commands[i].answer)
			commands[i].answer(r);
		else
			commands[i].answer_line(r, line);
		return;
	}
	rank_close(r);	/* an unknown request: the rank would wait for an answer */
}

/* ---- connections ---- */

static void handle_lines(struct pmi1_rank *r)
{
	char *line = r->line, *end;

	r->handling = true;
	while (r->event.fd >= 0 && (end = memchr(line, '\n', r->line + r->used - line))) {
		*end = '\0';
		handle_line(r, line);
		line = end + 1;
	}
	r->handling = false;
	r->used -= line - r->line;
	memmove(r->line, line, r->used);
	if (r->used == sizeof(r->line))
		rank_close(r);
}

/*
 * True if there was input. While a line is handled, later input is left for afterwards. All
 * programs that a rank starts inherit its end, other users' programs too: those say nothing. With
 * files in the queue, which only their closing can end, the connection is over.
 */
static bool read_once(struct pmi1_rank *r)
{
	bool own;
	ssize_t n;

	if (r->event.fd < 0 || r->handling)
		return false;
	n = receive_bytes(r->event.fd, r->line + r->used, sizeof(r->line) - r->used, &own);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0 && !own)
		return true;
	if (n <= 0) {
		rank_close(r);
		return false;
	}
	r->used += n;
	handle_lines(r);
	return true;
}

/* At most one buffer at a time: other ranks and signals have to be served, too. */
static void rank_ready(struct event *event, uint32_t what)
{
	struct pmi1_rank *r = (struct pmi1_rank *)event;

	(void)what;
	read_once(r);
	/* the rank has exited: the rest can only be from its children */
	if (r->pmi->job->tasks->tasks[rank_of(r)].ended)
		rank_close(r);
}

/* More than a socket can hold: then a child of the rank still writes. */
#define MAX_READS 256

void pmi1_read(struct pmi1 *pmi, unsigned int rank)
{
	struct pmi1_rank *r;
	int i;

	if (!pmi->ranks)
		return;
	r = &pmi->ranks[rank];
	for (i = 0; i < MAX_READS && read_once(r); i++)
		;
	rank_close(r);
	for (i = 0; i < MAX_READS && loop_turn(&pmi->loop, 0) > 0; i++)
		;
}

/* ---- open and close ---- */

/* A number that is free in pvasrun is not used by a file that tasks inherit. */
static int reserve_child_fd(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, MIN_CHILD_FD);
	int err = -errno;

	if (null >= 0)
		close(null);
	return fd < 0 ? err : fd;
}

static int store_mapping(struct pmi1 *pmi)
{
	const struct options *opt = pmi->job->opt;
	char mapping[64];

	/* nodes from 0, how many, and ranks of each: one, but for --pretend */
	snprintf(mapping, sizeof(mapping), "(vector,(0,%u,%u))",
		 opt->pretend.nodes ? opt->pretend.nodes : 1, opt->tasks);
	return pmi1_store(&pmi->pairs, "PMI_process_mapping", mapping) ? 0 : -ENOMEM;
}

void pmi1_init(struct pmi1 *pmi, const struct mpi_job *job)
{
	const size_t room = ROOM_MIN + (size_t)job->opt->tasks * ROOM_PER_RANK;

	*pmi = (struct pmi1){ .job = job, .pairs.room = room, .names.room = room };
	pmi->child_fd = pmi->child_fd_number = pmi->loop.self.fd = pmi->late.to = -1;
}

int pmi1_open(struct pmi1 *pmi)
{
	const unsigned int tasks = pmi->job->opt->tasks;
	uint64_t random;
	unsigned int i;
	int err;

	err = late_close_begin(&pmi->late);
	if (!err)
		err = loop_open(&pmi->loop);
	if (err)
		return err;
	pmi->ranks = calloc(tasks, sizeof(*pmi->ranks));
	if (!pmi->ranks)
		return -ENOMEM;
	for (i = 0; i < tasks; i++) {
		pmi->ranks[i].event = (struct event){ .fd = -1, .ready = rank_ready };
		pmi->ranks[i].pmi = pmi;
	}
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(pmi->name, sizeof(pmi->name), "kvs-%016" PRIx64, random);
	pmi->child_fd_number = reserve_child_fd();
	return pmi->child_fd_number < 0 ? pmi->child_fd_number : store_mapping(pmi);
}

int pmi1_prepare_rank(struct pmi1 *pmi, unsigned int rank)
{
	struct event *event = &pmi->ranks[rank].event;
	const int on = 1;
	int ends[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	/* Else an urgent byte, which only MSG_OOB reads, keeps the socket readable for ever. */
	setsockopt(ends[0], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	event->fd = ends[0];
	pmi->child_fd = ends[1];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	err = late_close_add(&pmi->late, ends[0]);
	if (!err)
		err = loop_watch(&pmi->loop, event, EPOLLIN);
	if (err)
		pmi1_rank_started(pmi);
	return err;
}

int pmi1_setup_child(const struct pmi1 *pmi)
{
	return dup2(pmi->child_fd, pmi->child_fd_number) < 0 ? -errno : 0;
}

void pmi1_rank_started(struct pmi1 *pmi)
{
	if (pmi->child_fd >= 0)
		close(pmi->child_fd);
	pmi->child_fd = -1;
}

int pmi1_serve(struct pmi1 *pmi)
{
	close(pmi->child_fd_number);
	pmi->child_fd_number = -1;
	return loop_watch(pmi->job->loop, &pmi->loop.self, EPOLLIN);
}

void pmi1_close(struct pmi1 *pmi)
{
	unsigned int i;

	for (i = 0; pmi->ranks && i < pmi->job->opt->tasks; i++)
		rank_close(&pmi->ranks[i]);
	late_close_end(&pmi->late);
	loop_forget(pmi->job->loop, &pmi->loop.self);
	loop_close(&pmi->loop);
	if (pmi->child_fd_number >= 0)
		close(pmi->child_fd_number);
	pmi->child_fd_number = -1;
	free(pmi->ranks);
	pmi->ranks = NULL;
	pmi1_delete_all(&pmi->pairs);
	pmi1_delete_all(&pmi->names);
}
