// SPDX-License-Identifier: GPL-2.0-only
/* PMI-1: the connections, and the answers. */
#include "pmi1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi.h"

/* Below are those that scripts name themselves: exec 9>lock */
#define FIRST_NUMBER	20
/* Of what one rank puts, or publishes, on average; MPICH 4 needs less than 4 KiB. */
#define ROOM_A_RANK	(64 << 10)
#define ROOM_AT_LEAST	(1 << 20)

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

static unsigned int rank_of(const struct pmi1_rank *r)
{
	return r - r->pmi->ranks;
}

static void hang_up(struct pmi1_rank *r)
{
	loop_forget(&r->pmi->loop, &r->event);
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

/*
 * All ranks of the job; one that dies before it comes here ends the job. It
 * counts once, even if a child that has inherited the descriptor comes, too.
 */
static void barrier(struct pmi1_rank *r)
{
	struct pmi1 *pmi = r->pmi;
	unsigned int i;

	if (r->in_barrier)
		return;
	r->in_barrier = true;
	if (++pmi->waiting < pmi->mpi->opt->tasks)
		return;
	pmi->waiting = 0;
	for (i = 0; i < pmi->mpi->opt->tasks; i++) {
		pmi->ranks[i].in_barrier = false;
		say(&pmi->ranks[i], "cmd=barrier_out\n");
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

static void begin(struct pmi1_rank *r)
{
	mpi_entered(r->pmi->mpi, rank_of(r));
	say(r, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static void finish(struct pmi1_rank *r)
{
	mpi_left(r->pmi->mpi, rank_of(r));
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

	say(r, "cmd=appnum appnum=%d\n", (int)(mpi->job->tasks[rank_of(r)].app - mpi->opt->apps));
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
		mpi_spawn_refused(r->pmi->mpi, rank_of(r), program);
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
	if (spawning(r, line))
		return;
	if (!strcmp(command, "abort")) {
		mpi_aborted(r->pmi->mpi, rank_of(r), number_of(line, "exitcode"), "");
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

/* Returns whether there was something. */
static bool read_once(struct pmi1_rank *r)
{
	ssize_t n;

	if (r->event.fd < 0)
		return false;
	n = read(r->event.fd, r->line + r->used, sizeof(r->line) - r->used);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		hang_up(r);
		return false;
	}
	r->used += n;
	take_lines(r);
	return true;
}

/* As much as a line at a time: others have their turn, and signals. */
static void rank_ready(struct event *event, uint32_t what)
{
	struct pmi1_rank *r = (struct pmi1_rank *)event;

	(void)what;
	read_once(r);
	/* It was the last: what its children go on to say is not the rank's word. */
	if (r->pmi->mpi->job->tasks[rank_of(r)].ended)
		hang_up(r);
}

/* More than a socket holds is from somebody who writes while we read. */
#define READS_AT_MOST 256

void pmi1_read(struct pmi1 *pmi, unsigned int rank)
{
	struct pmi1_rank *r;
	int i;

	if (!pmi->ranks)
		return;
	r = &pmi->ranks[rank];
	for (i = 0; i < READS_AT_MOST && read_once(r); i++)
		;
	hang_up(r);
	for (i = 0; i < READS_AT_MOST && loop_turn(&pmi->loop, 0) > 0; i++)
		;
}

/* ---- begin and end ---- */

/* A number that is free here is one that no task inherits from our caller. */
static int reserve_number(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, FIRST_NUMBER);
	int err = -errno;

	if (null >= 0)
		close(null);
	return fd < 0 ? err : fd;
}

static int store_mapping(struct pmi1 *pmi)
{
	char mapping[64];

	/* all ranks on one node */
	snprintf(mapping, sizeof(mapping), "(vector,(0,1,%u))", pmi->mpi->opt->tasks);
	return pmi1_store(&pmi->pairs, "PMI_process_mapping", mapping) ? 0 : -ENOMEM;
}

int pmi1_open(struct pmi1 *pmi, struct mpi *mpi)
{
	const unsigned int tasks = mpi->opt->tasks;
	const size_t room = ROOM_AT_LEAST + (size_t)tasks * ROOM_A_RANK;
	unsigned int i;
	int err;

	*pmi = (struct pmi1){ .mpi = mpi, .theirs = -1, .pairs.room = room, .names.room = room };
	pmi->number = -1;
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
	pmi->number = reserve_number();
	return pmi->number < 0 ? pmi->number : store_mapping(pmi);
}

int pmi1_give(struct pmi1 *pmi, unsigned int rank)
{
	struct event *event = &pmi->ranks[rank].event;
	int ends[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	event->fd = ends[0];
	pmi->theirs = ends[1];
	err = loop_watch(&pmi->loop, event, EPOLLIN);
	if (err)
		pmi1_given(pmi);
	return err;
}

int pmi1_inherit(const struct pmi1 *pmi)
{
	return dup2(pmi->theirs, pmi->number) < 0 ? -errno : 0;
}

void pmi1_given(struct pmi1 *pmi)
{
	if (pmi->theirs >= 0)
		close(pmi->theirs);
	pmi->theirs = -1;
}

int pmi1_serve(struct pmi1 *pmi)
{
	close(pmi->number);
	pmi->number = -1;
	return loop_watch(pmi->mpi->loop, &pmi->loop.self, EPOLLIN);
}

void pmi1_close(struct pmi1 *pmi)
{
	unsigned int i;

	for (i = 0; pmi->ranks && i < pmi->mpi->opt->tasks; i++)
		hang_up(&pmi->ranks[i]);
	loop_forget(pmi->mpi->loop, &pmi->loop.self);
	loop_close(&pmi->loop);
	if (pmi->number >= 0)
		close(pmi->number);
	pmi->number = -1;
	free(pmi->ranks);
	pmi->ranks = NULL;
	pmi1_delete_all(&pmi->pairs);
	pmi1_delete_all(&pmi->names);
}
