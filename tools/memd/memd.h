/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pvas-memd, the memory server. One thread: a loop over UCX's events (main.c) calls the
 * functions below. Connections come in at the entrance (admission.c, entrance.c), which admits
 * those that send a job's token; each becomes a struct conn (conn.c, serve.c) on a worker that
 * strangers have no endpoint on.
 *
 * Functions that UCX calls don't free a connection: they mark it as failed, and the loop ends it.
 */
#ifndef PVAS_MEMD_H
#define PVAS_MEMD_H

#include <stdbool.h>
#include <stdint.h>
#include "auth.h"
#include "store.h"
#include "ucx.h"
#include "ucx_network.h"
#include "wire.h"

#define MAX_CONNS	1024
#define MAX_JOB_STORES	64
#define MAX_FDS		16384
/* Answers of a connection that UCX has not sent yet: of all slots, some of them used again */
#define MAX_ANSWERS	(4 * FAR_SLOTS)
/* Seconds for the handshake, and for an answer to be taken by the other side */
#define HANDSHAKE_S	5
#define PATIENCE_S	90

/**
 * struct job - those who know one key
 * @name:	of its key file; shown, not a secret
 * @reserved:	bytes of all its stores; @held: bytes of pages that were put
 * @once:	its key came from a descriptor, which can't be read again
 * @listed:	its key was there when the keys were last read
 */
struct job {
	char name[64];
	uint8_t key[FAR_KEY_BYTES];
	uint64_t token;
	uint64_t reserved, held, put_bytes, get_bytes;
	unsigned int stores;
	bool listed, once;
	struct job *next;
};

/** struct pages - the memory of a store; @present has a bit for each page */
struct pages {
	char *base;
	uint64_t page_size, count, held;
	uint64_t *present;
};

enum conn_state {
	CONN_NEW,		/* admitted by its token */
	CONN_CHALLENGED,
	CONN_OPEN,
	CONN_REFUSED,		/* told why; ended by the other side, or soon */
};

struct conn;

/** struct answer - a message that is being sent */
struct answer {
	struct conn *conn;
	struct answer *next;
	union {
		struct far_challenge challenge;
		struct far_welcome welcome;
		struct far_reply reply;
	};
};

/** struct slot - a request under way */
struct slot {
	struct conn *conn;
	bool busy;
	struct far_request request;
};

/**
 * struct conn - a store's connection
 * @number:	no other connection ever has it
 * @users:	messages and receives that UCX has not ended: they use the pages' memory
 * @deadline:	it is ended then; moves on while the other side answers
 * @closing:	UCX's request to close the endpoint
 */
struct conn {
	struct memd *memd;
	unsigned int index;
	uint64_t number;
	struct job *job;
	ucp_ep_h ep;
	enum conn_state state;
	const char *failure;
	ucs_status_ptr_t closing;
	double deadline;
	int users;
	struct far_hello hello;
	struct far_challenge challenge;
	struct pages pages;
	struct slot slots[FAR_SLOTS];
	struct answer answers[MAX_ANSWERS], *free_answers;
};

/** struct released - pages whose store has ended; their memory is given back in slices */
struct released {
	struct pages pages;
	uint64_t gone;
	struct job *job;
	struct released *next;
};

struct options {
	const char *listen;
	uint64_t ram, job_ram;
	int silence;
	const char **keys;
	unsigned int key_count;
	bool until_eof, verbose;
};

struct memd {
	struct options options;
	ucp_context_h context;
	ucp_worker_h entrance, worker;
	ucp_listener_h listener;
	struct addrinfo *addresses;	/* where it is to listen: the first of them */
	char network[FAR_NETWORK];	/* the only one, or "" */
	unsigned int port;		/* where it listens */
	int entrance_efd, worker_efd;
	struct far_spin spin;
	struct job *jobs;
	struct conn *conns[MAX_CONNS];
	unsigned int conn_count;
	uint64_t numbers;
	struct released *released;
	uint64_t reserved;
	unsigned int notices;
	double notice_at;
};

/* entrance.c */
int entrance_resolve(struct memd *memd, char *why, size_t len);
int entrance_open(struct memd *memd, char *why, size_t len);
unsigned int address_port(const struct sockaddr_storage *address);
const char *address_text(const struct sockaddr_storage *address, char *text, size_t len);

/* jobs.c */
int jobs_read(struct memd *memd);
struct job *job_find(struct memd *memd, uint64_t token);
uint64_t job_free(const struct memd *memd, const struct job *job);
void jobs_prune(struct memd *memd);

/* conn.c */
int conn_accept(struct memd *memd, struct job *job, ucp_conn_request_h request);
void conn_fail(struct conn *conn, const char *why);
void conns_reap(struct memd *memd);
struct answer *conn_answer(struct conn *conn);
void conn_send(struct conn *conn, struct answer *answer, size_t bytes, const void *data,
	       size_t data_bytes);
ucs_status_t conn_receive(void *arg, const void *header, size_t header_bytes, void *data,
			  size_t bytes, const ucp_am_recv_param_t *param);

/* hello.c */
void hello_receive(struct conn *conn, const void *header, size_t bytes);
void proof_receive(struct conn *conn, const void *header, size_t bytes);

/* serve.c */
ucs_status_t serve(struct conn *conn, const void *header, size_t header_bytes, void *data,
		   size_t bytes, const ucp_am_recv_param_t *param);

/* pages.c */
int pages_make(struct pages *pages, uint64_t reserved, uint64_t page_size, uint64_t count);
void pages_limit(uint64_t reserved);
void pages_mark(struct conn *conn, uint64_t first, uint64_t count, bool present);
void pages_discard(struct conn *conn, uint64_t first, uint64_t count);
void pages_release(struct conn *conn);
bool released_free_some(struct memd *memd);

/* silence.c */
void silence_limit(const struct memd *memd);
void strangers_end(const struct memd *memd);
unsigned int local_port(int fd);

/* admission.c: who may come in, from now on; print who was refused */
void admission_update(const struct memd *memd);
void admission_report(struct memd *memd);

/* out.c: from now on printing never waits; before the end, wait a little for what is left */
int out_begin(void);
void out_end(void);

/* report.c */
void report(const struct memd *memd);
void notice(struct memd *memd, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say(const struct memd *memd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* options.c */
int options_parse(struct options *options, int argc, char **argv);

#endif
