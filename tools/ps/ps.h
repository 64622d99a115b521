/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files of pvasps
 *
 *  main.c      command line and program flow
 *  util.c      small helpers
 *  snapshot.c  a snapshot of all spaces: take, filter, free
 *  kernel.c    spaces of the module, from /proc/pvas
 *  user.c      spaces of the user backend, from the processes themselves
 *  reader.c    reads that may block: maps and memory of other users' processes
 *  smaps.c     memory by partition
 *  proc.c      small files of /proc/PID
 *  far.c       far memory
 *  text.c      the plain list
 *  json.c      the list for programs
 *  watch.c     the live view
 */
#ifndef PVASPS_H
#define PVASPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <linux/pvas.h>

#include "../../libpvas/header.h"

#define PS_FAILED	1	/* exit status, as pvasrun's */

/**
 * struct ps_memory - memory use of a range of addresses
 * @rss_kib:	resident, huge pages included
 * @huge_kib:	of it in huge pages: transparent ones and hugetlbfs
 * @maps:	mappings
 */
struct ps_memory {
	uint64_t rss_kib;
	uint64_t huge_kib;
	uint64_t maps;
};

/* The purpose of a mapping, as far as its place and file show it */
enum ps_kind { PS_PROGRAM, PS_HEAP, PS_FILE, PS_ANON, PS_STACK };

/**
 * struct ps_area - neighbouring mappings of one kind in one partition
 * @kind:	their purpose
 * @start:	where the first begins
 * @end:	where the last ends
 * @rss_kib:	resident
 */
struct ps_area {
	enum ps_kind kind;
	uint64_t start;
	uint64_t end;
	uint64_t rss_kib;
};

/**
 * struct ps_task - a task
 * @index:	its partition
 * @pid:	its process
 * @state:	"armed", "running", "ending"
 * @start:	first address of the partition
 * @end:	first address after it
 * @load:	where the program's address 0 is; 0: unknown (user backend)
 * @heap:	where its brk heap begins; 0: unknown
 * @brk:	and ends
 * @name:	its command name
 * @threads:	how many
 * @cpu_ms:	processor time used
 * @born:	start time of the process, in clock ticks since boot
 * @cpu_percent: of one processor, since the previous snapshot; for the live view
 * @mem:	memory use of its partition
 * @far_kib:	far memory in its partition
 * @local_kib:	of it, in memory
 * @areas:	the same in pieces, in the order of addresses
 * @nr_areas:	how many
 */
struct ps_task {
	uint32_t index;
	pid_t pid;
	char state[16];
	uint64_t start;
	uint64_t end;
	uint64_t load;
	uint64_t heap;
	uint64_t brk;
	char name[64];
	uint32_t threads;
	uint64_t cpu_ms;
	uint64_t born;
	double cpu_percent;
	struct ps_memory mem;
	uint64_t far_kib;
	uint64_t local_kib;
	struct ps_area *areas;
	uint32_t nr_areas;
};

/**
 * struct ps_space - a space
 * @id:		its id
 * @user:	made by the user backend
 * @uid:	its owner
 * @launcher:	user backend: the process that made it; else 0
 * @shift:	log2 of the partition size
 * @closing:	nobody can enter any more
 * @nr_tasks:	partitions in use
 * @tasks:	by index, or NULL if @detail is not set
 * @detail:	its tasks may be listed
 * @measured:	the memory by partition is known
 * @rss_kib:	resident memory of the whole address space
 * @tables_kib:	its page tables
 * @maps:	its mappings
 * @far:	far memory; its @ram is 0 if there is none
 * @header:	memory use of partition 0: space header and loader
 * @rest:	memory use outside of partition 0 and the partitions of tasks
 */
struct ps_space {
	uint32_t id;
	bool user;
	uid_t uid;
	pid_t launcher;
	unsigned int shift;
	bool closing;
	uint32_t nr_tasks;
	struct ps_task *tasks;
	bool detail;
	bool measured;
	uint64_t rss_kib;
	uint64_t tables_kib;
	uint64_t maps;
	struct pvas_far_seen far;
	struct ps_memory header;
	struct ps_memory rest;
};

/**
 * struct ps_snapshot - all spaces at one point in time
 * @spaces:	by id
 * @nr:		how many
 * @hidden:	processes that may belong to a space of the user backend, but can't be
 *		read (ptrace(2), kernel.yama.ptrace_scope)
 * @slow:	processes skipped, because reading those of their user took too long
 */
struct ps_snapshot {
	struct ps_space *spaces;
	uint32_t nr;
	uint32_t hidden;
	uint32_t slow;
};

/**
 * struct ps_choice - the spaces to show, and their details
 * @space:	only the one with this id, 0: all
 * @pid:	only the one that has this process as task or launcher, 0: all
 * @memory:	measure the memory by partition, the most expensive part
 */
struct ps_choice {
	uint32_t space;
	pid_t pid;
	bool memory;
};

/* ---- util.c ---- */

/* Prints one line to standard error, and returns the exit status PS_FAILED. */
int ps_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Room for one more entry, zeroed; exits if there is no memory. */
void *ps_grow(void *array, uint32_t nr, size_t size);

struct ps_task *ps_task_at(const struct ps_space *space, uint32_t index);
uint64_t ps_cpu_ms(const struct ps_space *space);
uint64_t ps_huge_kib(const struct ps_space *space);

/* ---- snapshot.c ---- */

void ps_snapshot_take(struct ps_snapshot *s, const struct ps_choice *choice);
void ps_snapshot_free(struct ps_snapshot *s);

/* Copy measurements of memory from @old for spaces that were not measured. */
void ps_snapshot_reuse(struct ps_snapshot *s, const struct ps_snapshot *old);

/* ---- kernel.c, user.c: add the spaces of one backend ---- */

void ps_kernel_find(struct ps_snapshot *s);
void ps_user_find(struct ps_snapshot *s);

/* ---- reader.c ---- */

enum ps_phase { PS_FINDING, PS_MEASURING, PS_PHASES };

/* A new snapshot: read slow users again, unless a helper still hangs because of them. */
void ps_reader_begin(void);

/* The account that pays for the time of processes of @uid: one for all uids of a container */
uid_t ps_account_of(uid_t uid);

/* The next reads are of a process of @uid. False: the time for this user is used up. */
bool ps_reader_turn(uid_t uid, enum ps_phase phase);

/* Did a read of this turn fail because the time was used up? */
bool ps_reader_late(void);

/* -errno: EPERM if ptrace(2) would be refused, ETIME on timeout */
int ps_read_memory(pid_t pid, uint64_t from, void *to, size_t len);

/* As kcmp(2): 0 if both processes have the same memory; -errno. */
int ps_compare_memory(pid_t a, pid_t b);

/* The inode of its pid namespace, or -errno. The kernel waits there for its execve(2). */
int64_t ps_pid_namespace(pid_t pid);

/* A file of /proc/PID. Only one can be open. */
FILE *ps_reader_open(pid_t pid, const char *file);

/* Read a line, and drop what does not fit: file names have no limit. */
bool ps_next_line(FILE *f, char *text, size_t size);

/* ---- smaps.c ---- */

/* By the smaps of process @pid, which has the space's memory. False if that failed. */
bool ps_measure(struct ps_space *space, pid_t pid);
const char *ps_kind_name(enum ps_kind kind);

/* ---- proc.c ---- */

/* The effective user of a process, or -1 */
int64_t ps_owner(pid_t pid);

/* The last number of the line @key in /proc/PID/status, or -1; in a turn of the reader. */
int64_t ps_status_number(pid_t pid, const char *key);

/* Name, threads and times; in a turn of the reader. */
void ps_read_task(struct ps_task *task);

/* A name without bytes that a terminal could interpret. */
const char *ps_name_text(const char *name, char buf[static 64]);

/* ---- far.c ---- */

/* "12.0G far, 2.0G of it local ...", for a space that has some */
const char *ps_far_text(const struct ps_space *space, char buf[static 160]);

/* ---- text.c, json.c, watch.c ---- */

const char *ps_size_text(uint64_t kib, char buf[static 24]);
const char *ps_cpu_text(uint64_t ms, char buf[static 24]);
void ps_print_text(const struct ps_snapshot *s);
void ps_print_json(const struct ps_snapshot *s, bool areas);

/* Returns the exit status. */
int ps_watch(const struct ps_choice *choice, int64_t interval_ms);

#endif /* PVASPS_H */
