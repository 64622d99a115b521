// SPDX-License-Identifier: GPL-2.0
/* PMI-1: the connections, and the answers. */
#include "pmi1.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "listen.h"
#include "mpi.h"

/* As MPICH's own process manager has them */
#define NAME_MAX_LEN	256
#define KEY_MAX_LEN	64
#define VALUE_MAX_LEN	1024

/* ---- lines ---- */

/*
 * The value of @name in "cmd=put kvsname=a key=b value=c d": up to the next
 * space, or to the line's end if it is the last one. "" if it is not there.
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

static void hang_up(struct pmi1_rank *r)
{
	loop_forget(r->pmi->mpi->loop, &r->event);
	if (r->event.fd >= 0)
		close(r->event.fd);
	r->event.fd = -1;
}

/* Answers are short and asked for one by one: a socket that has no room is broken. */
__attribute__((format(printf, 2, 3)))
static void say(struct pmi1_rank *r, const char *format, ...)
{
	char line[VALUE_MAX_LEN + 256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (r->event.fd >= 0 && send(r->event.fd, line, len, MSG_NOSIGNAL) != len)
		hang_up(r);
}

/* ---- what they ask ---- */

static void put(struct pmi1_rank *r, const char *line)
{
	char key[PMI1_LINE], value[PMI1_LINE];
	bool ok;

	value_of(line, "key", false, key, sizeof(key));
	value_of(line, "value", true, value, sizeof(value));
	ok = *key && strlen(key) <= KEY_MAX_LEN && strlen(value) <= VALUE_MAX_LEN &&
	     pmi1_store(&r->pmi->pairs, key, value);
	say(r, ok ? "cmd=put_result rc=0 msg=success\n" : "cmd=put_result rc=-1 msg=refused\n");
}

static void get(struct pmi1_rank *r, const char *line)
{
	char key[PMI1_LINE];
	const char *value;

	value_of(line, "key", false, key, sizeof(key));
	value = pmi1_find(&r->pmi->pairs, key);
	if (value)
		say(r, "cmd=get_result rc=0 msg=success value=%s\n", value);
	else
		say(r, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

/* All ranks of the job; one that dies before it comes here ends the job. */
static void barrier(struct pmi1_rank *r)
{
	struct pmi1 *pmi = r->pmi;

	if (r->in_barrier)
		return;
	r->in_barrier = true;
	if (++pmi->waiting < pmi->mpi->opt->tasks)
		return;
	pmi->waiting = 0;
	for (r = pmi->ranks; r; r = r->next) {
		if (r->in_barrier)
			say(r, "cmd=barrier_out\n");
		r->in_barrier = false;
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
		say(r, "cmd=publish_result info=ok rc=0 msg=success\n");
	else
		say(r, "cmd=publish_result info=fail rc=-1 msg=%s\n",
		    old ? "duplicate_service" : "refused");
}

static void lookup(struct pmi1_rank *r, const char *line)
{
	char name[PMI1_LINE];
	const char *port = pmi1_find(&r->pmi->names,
				     value_of(line, "service", false, name, sizeof(name)));

	if (port)
		say(r, "cmd=lookup_result info=ok port=%s rc=0 msg=success\n", port);
	else
		say(r, "cmd=lookup_result info=fail rc=-1 msg=service_not_found\n");
}

static void unpublish(struct pmi1_rank *r, const char *line)
{
	char name[PMI1_LINE];

	value_of(line, "service", false, name, sizeof(name));
	if (pmi1_delete(&r->pmi->names, name))
		say(r, "cmd=unpublish_result info=ok rc=0 msg=success\n");
	else
		say(r, "cmd=unpublish_result info=fail rc=-1 msg=service_not_found\n");
}

/* A caller on our port shows by a number of the job's that it is a rank, and which. */
static void introduce(struct pmi1_rank *r, const char *line)
{
	uint32_t rank = (uint32_t)number_of(line, "pmiid") - r->pmi->first_id;

	if (rank >= r->pmi->mpi->opt->tasks) {
		hang_up(r);
		return;
	}
	r->rank = rank;
	say(r, "cmd=initack rc=0\ncmd=set size=%u\ncmd=set rank=%u\ncmd=set debug=0\n",
	    r->pmi->mpi->opt->tasks, rank);
}

static void begin(struct pmi1_rank *r)
{
	mpi_entered(r->pmi->mpi, r->rank);
	say(r, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static void finish(struct pmi1_rank *r)
{
	mpi_left(r->pmi->mpi, r->rank);
	say(r, "cmd=finalize_ack\n");
}

static void maxes(struct pmi1_rank *r)
{
	say(r, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", NAME_MAX_LEN, KEY_MAX_LEN,
	    VALUE_MAX_LEN);
}

static void my_kvsname(struct pmi1_rank *r)
{
	say(r, "cmd=my_kvsname kvsname=%s\n", r->pmi->mpi->name);
}

static void appnum(struct pmi1_rank *r)
{
	const struct mpi *mpi = r->pmi->mpi;

	say(r, "cmd=appnum appnum=%d\n", (int)(mpi->job->tasks[r->rank].app - mpi->opt->apps));
}

static void universe_size(struct pmi1_rank *r)
{
	say(r, "cmd=universe_size size=%u\n", r->pmi->mpi->opt->tasks);
}

static const struct {
	const char *name;
	void (*answer)(struct pmi1_rank *r);
	void (*answer_line)(struct pmi1_rank *r, const char *line);
} commands[] = {
	{ "init", begin, NULL },
	{ "get_maxes", maxes, NULL },
	{ "get_my_kvsname", my_kvsname, NULL },
	{ "get_appnum", appnum, NULL },
	{ "get_universe_size", universe_size, NULL },
	{ "barrier_in", barrier, NULL },
	{ "finalize", finish, NULL },
	{ "put", NULL, put },
	{ "get", NULL, get },
	{ "publish_name", NULL, publish },
	{ "lookup_name", NULL, lookup },
	{ "unpublish_name", NULL, unpublish },
};

/* "mcmd=spawn", then a line for each of its arguments, then "endcmd" */
static bool spawning(struct pmi1_rank *r, const char *line)
{
	char program[128];

	if (!strcmp(line, "mcmd=spawn"))
		r->in_spawn = true;
	if (!r->in_spawn)
		return false;
	if (!strncmp(line, "execname=", 9)) {
		value_of(line, "execname", true, program, sizeof(program));
		mpi_spawn_refused(r->pmi->mpi, r->rank, program);
	}
	if (!strcmp(line, "endcmd")) {
		r->in_spawn = false;
		say(r, "cmd=spawn_result rc=-1 msg=not_supported\n");
	}
	return true;
}

static void got_line(struct pmi1_rank *r, const char *line)
{
	char command[32];
	size_t i;

	value_of(line, "cmd", false, command, sizeof(command));
	if (r->rank < 0) {
		if (!strcmp(command, "initack"))
			introduce(r, line);
		else
			hang_up(r);
		return;
	}
	if (spawning(r, line))
		return;
	if (!strcmp(command, "abort")) {
		mpi_aborted(r->pmi->mpi, r->rank, number_of(line, "exitcode"), "");
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
	hang_up(r);	/* not our language: better than to let it wait */
}

/* ---- connections ---- */

static void take_lines(struct pmi1_rank *r)
{
	char *line = r->line, *end;

	while (r->event.fd >= 0 && (end = memchr(line, '\n', r->line + r->used - line))) {
		*end = '\0';
		got_line(r, line);
		line = end + 1;
	}
	r->used -= line - r->line;
	memmove(r->line, line, r->used);
	if (r->used == sizeof(r->line))
		hang_up(r);
}

static void rank_ready(struct event *event, uint32_t what)
{
	struct pmi1_rank *r = (struct pmi1_rank *)event;
	ssize_t n;

	(void)what;
	while (r->event.fd >= 0) {
		n = read(r->event.fd, r->line + r->used, sizeof(r->line) - r->used);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			hang_up(r);
			return;
		}
		r->used += n;
		take_lines(r);
	}
}

void pmi1_read(struct pmi1 *pmi)
{
	struct pmi1_rank *r;

	for (r = pmi->ranks; r; r = r->next)
		rank_ready(&r->event, EPOLLIN);
}

static void pmi1_ready(struct event *event, uint32_t what)
{
	struct pmi1 *pmi = (struct pmi1 *)event;
	struct pmi1_rank *r;
	int fd;

	(void)what;
	while ((fd = accept_here(event->fd)) >= 0) {
		r = calloc(1, sizeof(*r));
		if (!r) {
			close(fd);
			continue;
		}
		r->event = (struct event){ .fd = fd, .ready = rank_ready };
		r->pmi = pmi;
		r->rank = -1;
		r->next = pmi->ranks;
		pmi->ranks = r;
		if (loop_watch(pmi->mpi->loop, &r->event, EPOLLIN))
			hang_up(r);
	}
}

int pmi1_open(struct pmi1 *pmi, struct mpi *mpi)
{
	char mapping[64];

	*pmi = (struct pmi1){ .mpi = mpi, .event.ready = pmi1_ready };
	pmi->event.fd = listen_here(&pmi->port);
	if (pmi->event.fd < 0)
		return pmi->event.fd;
	/* MPICH reads it with atoi() */
	if (getrandom(&pmi->first_id, sizeof(pmi->first_id), 0) < 0)
		return -errno;
	pmi->first_id = (pmi->first_id & 0x3fffffff) + 1;
	/* all ranks on one node */
	snprintf(mapping, sizeof(mapping), "(vector,(0,1,%u))", mpi->opt->tasks);
	return pmi1_store(&pmi->pairs, "PMI_process_mapping", mapping) ? 0 : -ENOMEM;
}

int pmi1_serve(struct pmi1 *pmi)
{
	return loop_watch(pmi->mpi->loop, &pmi->event, EPOLLIN);
}

void pmi1_close(struct pmi1 *pmi)
{
	struct pmi1_rank *r;

	if (pmi->event.fd >= 0)
		close(pmi->event.fd);
	pmi->event.fd = -1;
	while ((r = pmi->ranks)) {
		pmi->ranks = r->next;
		hang_up(r);
		free(r);
	}
	pmi1_delete_all(&pmi->pairs);
	pmi1_delete_all(&pmi->names);
}
