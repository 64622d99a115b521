/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hostile - several users attack at once; an oracle knows what must never happen
 *
 *  main.c      options, rounds, what this program is as a task
 *  board.c     shared by all processes: seed, victims, op logs, findings
 *  leftovers.c memory and the like that nobody owns any more
 *  victim.c    those who hold secrets; canaries: innocent programs and jobs
 *  bystander.c a task beside the attackers, which notices changes
 *  scan.c      looks for secrets and kernel pointers in all that can be read
 *  session.c   a user's attackers: started, killed, reaped
 *  plans.c     how a session's processes come about
 *  create.c    CREATE without libpvas, and what a creator does then
 *  creator.c   plans with such spaces, by processes with odd resources
 *  actor.c     one attacking process: the choice of ops
 *  grammar_*.c the ops, by subject
 *
 * All random choices of a process come from the seed, the round, the session
 * and the process's number, so its op stream is the same each time. How
 * processes interleave is not.
 */
#ifndef PVAS_HOSTILE_H
#define PVAS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE		4096UL
#define ARRAY(a)	(sizeof(a) / sizeof((a)[0]))

/* Descriptors that all processes have; ops choose lower ones only. */
#define BOARD_FD	1000
#define FOUND_FD	1001
#define MAIL_FD		1002	/* and MAIL_FD + 1: the two ends of a session's socket */
#define OWN_FDS		1000

#define UID_VICTIM	1002
#define DEAF_DIR	"/mnt"
#define STUB_EXIT	99	/* status of a program that ran a foreign loader */

/* ---- board.c ---- */

enum what {
	F_SECRET = 1, F_POINTER, F_WALL, F_BYSTANDER_DATA, F_BYSTANDER_MAPS, F_BYSTANDER_DIED,
	F_BYSTANDER_STUCK, F_OWNERLESS, F_CROSSES, F_RESERVED, F_EXEC_FAILED, F_EXEC_CAPTURED,
	F_JOB, F_JOB_SLOW, F_RECLAIM, F_VFORK_KILLED, F_KILL, F_SPACES, F_AIO, F_MODULE, F_MEMORY,
	F_LOCKED, F_IDLE, F_VICTIM, F_NO_SPACE, F_NO_EXEC, F_UNOWNED, F_NO_DEAF, F_N
};

/* A process reports numbers only: it may have no working libc. */
struct finding {
	uint32_t what;
	int32_t pid;		/* of the process whose ops may have done it */
	uint32_t session;
	uint32_t pad;
	uint64_t a, b, c;
	char text[256];
};

#define MAX_VICTIMS	16
#define MAX_SESSIONS	8

struct victim {
	int32_t pid;
	uint32_t uid;
	uint64_t addr;
	uint64_t secret;	/* argument of secret_word() */
};

struct board {
	uint64_t seed;
	uint32_t round;
	uint32_t n_victims;
	struct victim victims[MAX_VICTIMS];
};

#define LOG_OPS		62
#define LOG_SLOTS	4096

struct op_entry {
	uint64_t nr;		/* the system call, or 1000 + a note */
	uint64_t args[6];
	int64_t ret;
};

struct op_log {
	int32_t pid;
	uint32_t session;
	uint32_t plan;
	uint32_t uid;
	uint32_t number;
	uint32_t n;
	uint32_t execs, stayed;
	uint32_t deaf, silent;
	uint64_t pad[3];
	struct op_entry create;	/* its last CREATE, if it has come back */
	struct op_entry ops[LOG_OPS];
};

int board_make(void);
void board_reset(uint64_t seed, unsigned int round);
long board_kib(void);		/* its memory, which grows with a round's processes */
void board_read(struct board *board);
void board_add_victim(uint64_t addr, uint64_t secret);
void found(enum what what, unsigned int session, uint64_t a, uint64_t b, uint64_t c,
	   const char *text);
/* Prints what has come; how many findings those were. */
int print_findings(void);
unsigned int count_found(void);

/* Sums of what the attackers of a round did. */
struct tally {
	unsigned int processes, ops;
	unsigned int creators, spaces;	/* CREATE without libpvas; those that succeeded */
	unsigned int execs, stayed;	/* of tasks; attackers that came out of one as a task */
	unsigned int deaf, silent;	/* tasks of that plan; those whose store is never taken */
	int64_t error;			/* of a CREATE that failed */
};
void count_ops(struct tally *tally);
extern bool print_all;
uint64_t mix(uint64_t a, uint64_t b);
/* Word @i of a secret: computed, so the pattern is in no memory of whoever looks for it. */
static inline uint64_t secret_word(uint64_t secret, unsigned int i)
{
	uint64_t z = secret + (i % 8 + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	return z ^ (z >> 27);
}

/* ---- system calls without libc ---- */

static inline long raw6(uint64_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10),
			 "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return ret;
}

/* ---- actor.c ---- */

struct ring {
	int fd;
	unsigned int entries;
	char *sq, *sqes;
	unsigned int off_tail, off_mask, off_array;
	size_t sq_len;
};

#define MAX_PEERS	96
#define N_FDS		8

enum bias { BIAS_NONE, BIAS_MM, BIAS_NS, BIAS_RING, BIAS_PVAS, BIAS_PROC, BIAS_CRED, BIAS_N };

struct actor {
	unsigned long long rng;
	pid_t pid;
	unsigned int session, plan, number, log_n;
	enum bias bias;
	bool task;		/* lives in a partition: [base, end) */
	bool raw;		/* has no working libc */
	bool in_space;		/* a task, what shares its memory, or a creator */
	uintptr_t base, end;
	char *arena;
	char *scratch;		/* two pages: where calls may write */
	struct { uintptr_t start, end; } peers[MAX_PEERS];
	unsigned int n_peers;
	int fds[N_FDS];
	unsigned int n_fds;
	struct ring ring;
	int uffd;
	unsigned int depth;
	pid_t child;
};

#define ARENA_PAGES	64

unsigned int pick(struct actor *a, unsigned int below);
void actor_init(struct actor *a, unsigned int session, unsigned int plan, unsigned int number,
		uint64_t seed, unsigned int round);
void actor_run(struct actor *a, unsigned int ops);
/* Does a system call and logs it. */
long call(struct actor *a, uint64_t nr, uint64_t arg0, uint64_t arg1, uint64_t arg2,
	  uint64_t arg3, uint64_t arg4, uint64_t arg5);
void note(struct actor *a, unsigned int what, uint64_t v);
void log_entry(struct actor *a, const struct op_entry *op);
/* Where the actor's log is on the board. */
uint64_t log_slot(const struct actor *a);
/* One more in a counter of the actor's log. */
void count_exec(struct actor *a, size_t offset);
void keep_fd(struct actor *a, long fd);
int any_fd(struct actor *a);
uint64_t any_addr(struct actor *a);
uint64_t any_len(struct actor *a);

#define CALL(a, nr, ...) call_(a, nr, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define call_(a, nr, b, c, d, e, f, g, ...) \
	call(a, nr, (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), (uint64_t)(e), (uint64_t)(f), \
	     (uint64_t)(g))

enum note {
	N_START = 0, N_CREATE, N_ARMED, N_SCAN, N_PEEK, N_FORK, N_RING, N_UFFD, N_EXIT, N_PASS,
	N_INT80, N_EXEC, N_LAST
};

/* ---- grammar_*.c: one op each ---- */
void op_mm(struct actor *a);
void op_mm_sequence(struct actor *a);
void op_uffd(struct actor *a);
void op_ring(struct actor *a);
bool ring_make(struct actor *a, unsigned int flags);
void op_ns(struct actor *a);
void op_timens(struct actor *a);
void op_cred(struct actor *a);
void op_proc(struct actor *a);
void op_remote(struct actor *a);
void op_settings(struct actor *a);
/* The end of a task: often as another program, which stays in its partition. */
void exec_again(struct actor *a, char **argv);
void op_pvas(struct actor *a);
void op_pass(struct actor *a);
long pass_fd(int fd);
/* A new task to its manager: it may begin. */
void say_ready(void);
bool peer_ready(void);
bool arm(struct actor *a, int fd, uint32_t id, int index);
void arm_and_end(struct actor *a, int fd);

/* ---- scan.c ---- */
void op_scan(struct actor *a);
void op_peek(struct actor *a);
bool copy_out(int pipe_fds[2], uint64_t addr, void *buf, size_t len);

struct map_line {
	uint64_t start, end;
	bool readable, special, vdso;
	char *text;
	size_t len;
};
/* Lines of a maps or smaps file in @buf, one a call; false at the end. */
bool next_map(char **at, struct map_line *line);
/* All of a file of /proc; its length, the buffer ends with a NUL. */
size_t read_proc(const char *path, char *buf, size_t room);

/* ---- bystander.c ---- */
int bystander(unsigned int session);

/* ---- victim.c ---- */
int victim_task(uint64_t secret, bool careless);
void start_victims(uint64_t seed, unsigned int round);
void stop_victims(void);
void start_canaries(void);
void stop_canaries(void);

/* ---- session.c ---- */
unsigned int start_sessions(uint64_t seed, unsigned int round, const char *plans);
void stop_sessions(void);
int become(uid_t uid, bool keep_root_without_caps);

/* ---- plans.c ---- */
struct manager {
	unsigned long long rng;
	unsigned int session, plan, next;
	uid_t uid;
	uint64_t seed;
	unsigned int round;
};

struct plan {
	const char *name;
	void (*run)(struct manager *m);
	unsigned int weight;
	bool root;		/* with all capabilities */
	unsigned int length;	/* of a round with it, in usual ones */
};

extern const struct plan plans[];
unsigned int n_plans(void);
struct pvas_space;
pid_t start_role(struct pvas_space *space, const char *role, struct manager *m, unsigned int arg);
int device_fd(void);
void fork_actor(struct manager *m, enum bias bias, unsigned int ops);
void manage(struct manager *m);

/* ---- creator.c ---- */
void plan_creator(struct manager *m);
void plan_keyed(struct manager *m);
void raw_entry(void);
/* A task of the space bound to @fd; its exit status, or -errno. */
int raw_task(int fd, int *err);

/* ---- create.c ---- */
/*
 * Makes the caller a space with so many random calls after it, and ends it. Comes back only
 * if something of it could not be mapped. Without an @entry tasks exit with STUB_EXIT.
 */
void raw_create(struct actor *a, int fd, const char *key, const void *entry,
		unsigned int attacks);

/* ---- leftovers.c ---- */
void left_baseline(void);
void left_check(void);

extern char self_path[];

#endif
