// SPDX-License-Identifier: GPL-2.0-only
/* The board: a memfd with what all processes know and log; and the pipe of findings. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

static const char *const texts[F_N] = {
	[F_SECRET] = "a secret of another user can be read: address %lx secret %lx",
	[F_POINTER] = "a kernel pointer in a special mapping: address %lx value %lx",
	[F_WALL] = "memory of another user's process can be read: pid %ld address %lx",
	[F_BYSTANDER_DATA] = "a bystander's memory changed: address %lx is %lx, was %lx",
	[F_BYSTANDER_MAPS] = "a bystander's mapping changed: at %lx",
	[F_BYSTANDER_DIED] = "a bystander died: pid %ld status %lx",
	[F_BYSTANDER_STUCK] = "a bystander does not get on: pid %ld",
	[F_OWNERLESS] = "a mapping in a partition without a task: %lx-%lx partition %ld",
	[F_CROSSES] = "a mapping crosses a partition's end: %lx-%lx partition %ld",
	[F_RESERVED] = "a new mapping in a reserved partition: %lx-%lx partition %ld",
	[F_EXEC_FAILED] = "/bin/true of uid %ld failed: status %lx errno %ld",
	[F_EXEC_CAPTURED] = "/bin/true of uid %ld ran another user's loader: status %lx",
	[F_JOB] = "a job of uid %ld failed: step %ld, error %ld",
	[F_JOB_SLOW] = "a job of uid %ld took %ld ms",
	[F_RECLAIM] = "a task of uid %ld is reaped, its partition not free after %ld ms",
	[F_VFORK_KILLED] = "a vfork child in an open space was killed: status %lx",
	[F_KILL] = "attackers live on after SIGKILL: pid %ld, %ld of them",
	[F_SPACES] = "%ld spaces are left, nobody lives: space %ld",
	[F_AIO] = "fs.aio-nr is %ld, was %ld",
	[F_MODULE] = "the module has %ld references, had %ld",
	[F_MEMORY] = "MemAvailable fell by %ld KiB: from %ld to %ld",
	[F_LOCKED] = "locked memory is %ld KiB, was %ld",
	[F_IDLE] = "the attackers did %ld ops only",
	[F_VICTIM] = "a victim's memory changed: pid %ld status %lx",
	[F_NO_SPACE] = "none of %ld creators made a space: error %ld",
	[F_NO_EXEC] = "none of %ld execs of tasks stayed in the space",
	[F_UNOWNED] = "%ld KiB that no process or file has, were %ld",
	[F_NO_DEAF] = "none of %ld tasks of the plan deaf stored to its file",
};

static const char *const names[F_N] = {
	"", "secret", "pointer", "wall", "data", "maps", "died", "stuck", "ownerless", "crosses",
	"reserved", "exec", "captured", "job", "slow", "reclaim", "vfork", "kill", "spaces", "aio",
	"module", "memory", "locked", "idle", "victim", "creators",
	"execs", "unowned", "deaf",
};

static const char *const notes[N_LAST] = {
	"start", "CREATE", "SPAWN", "scan", "peek", "fork", "io_uring", "userfaultfd", "exit",
	"pass a descriptor", "int 0x80", "exec",
};

static int found_read;
static unsigned int n_found;
/* The same thing of the same session need not be said again and again. */
static unsigned int said[F_N];
bool print_all;

uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15ULL + b * 0xd1b54a32d192ed03ULL + 0x632be59bd9b4e019ULL;

	z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 32)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 30);
}

int board_make(void)
{
	int fds[2], fd = memfd_create("hostile-board", 0);

	if (fd < 0 || dup2(fd, BOARD_FD) < 0 || pipe2(fds, O_NONBLOCK) ||
	    dup2(fds[1], FOUND_FD) < 0)
		return -errno;
	fcntl(fds[0], F_SETPIPE_SZ, 1 << 20);
	found_read = fcntl(fds[0], F_DUPFD_CLOEXEC, FOUND_FD + 20);
	close(fd);
	close(fds[0]);
	close(fds[1]);
	return 0;
}

void board_reset(uint64_t seed, unsigned int round)
{
	struct board board = { .seed = seed, .round = round };

	memset(said, 0, sizeof(said));
	if (ftruncate(BOARD_FD, 0) ||
	    ftruncate(BOARD_FD, PAGE + LOG_SLOTS * sizeof(struct op_log)) ||
	    pwrite(BOARD_FD, &board, sizeof(board), 0) != sizeof(board))
		perror("hostile: board");
}

long board_kib(void)
{
	struct stat st;

	return fstat(BOARD_FD, &st) ? 0 : st.st_blocks / 2;
}

void board_read(struct board *board)
{
	raw6(SYS_pread64, BOARD_FD, (uintptr_t)board, sizeof(*board), 0, 0, 0);
}

/* Called by victims, which all start one after the other. */
void board_add_victim(uint64_t addr, uint64_t secret)
{
	struct board board;
	struct victim *v;

	board_read(&board);
	if (board.n_victims >= MAX_VICTIMS)
		return;
	v = &board.victims[board.n_victims++];
	*v = (struct victim){ getpid(), getuid(), addr, secret };
	if (pwrite(BOARD_FD, &board, sizeof(board), 0) != sizeof(board))
		perror("hostile: board");
}

void found(enum what what, unsigned int session, uint64_t a, uint64_t b, uint64_t c,
	   const char *text)
{
	struct finding f = { .what = what, .session = session, .a = a, .b = b, .c = c };
	unsigned int i;

	f.pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	for (i = 0; text && text[i] && i < sizeof(f.text) - 1; i++)
		f.text[i] = text[i];
	raw6(SYS_write, FOUND_FD, (uintptr_t)&f, sizeof(f), 0, 0, 0);
}

static void print_op(const struct op_entry *op)
{
	if (op->nr >= 1000 && op->nr < 1000 + N_LAST)
		printf("#     %s %lx\n", notes[op->nr - 1000], op->args[0]);
	else
		printf("#     call %lx(%lx, %lx, %lx, %lx, %lx, %lx) = %ld\n", op->nr, op->args[0],
		       op->args[1], op->args[2], op->args[3], op->args[4], op->args[5], op->ret);
}

static void print_log(const struct op_log *log, unsigned int most)
{
	unsigned int n = log->n < LOG_OPS ? log->n : LOG_OPS, i;

	if (n > most)
		n = most;
	printf("#   process %d, number %u, session %u, plan %s, uid %u: %u ops, the last %u:\n",
	       log->pid, log->number, log->session, plans[log->plan].name, log->uid, log->n, n);
	for (i = log->n - n; i != log->n; i++)
		print_op(&log->ops[i % LOG_OPS]);
}

/* The logs of the finding's process and, up to a number, of its session (0: of all). */
static void print_logs(const struct finding *f)
{
	static struct op_log log;
	unsigned int i, n = 0;

	for (i = 0; i < LOG_SLOTS && n < 6; i++) {
		if (pread(BOARD_FD, &log, sizeof(log), PAGE + i * sizeof(log)) != sizeof(log))
			return;
		if (!log.n || log.plan >= n_plans())
			continue;
		if (log.pid == f->pid) {
			print_log(&log, LOG_OPS);
		} else if (!f->session || log.session == f->session) {
			n++;
			print_log(&log, 16);
		}
	}
}

static void print_finding(const struct finding *f)
{
	struct board board;

	board_read(&board);
	n_found++;
	if (said[f->what]++ > 2 && !print_all)
		return;
	printf("FOUND %s: ", names[f->what]);
	printf(texts[f->what], f->a, f->b, f->c);
	printf("%s%s (seed %lu, round %u, session %u, process %d)\n", f->text[0] ? ": " : "",
	       f->text, board.seed, board.round, f->session, f->pid);
	if (said[f->what] == 1)
		print_logs(f);
	fflush(stdout);
}

int print_findings(void)
{
	struct finding f;
	int n = 0;

	while (read(found_read, &f, sizeof(f)) == sizeof(f)) {
		if (!f.what || f.what >= F_N)
			continue;
		f.text[sizeof(f.text) - 1] = 0;
		print_finding(&f);
		n++;
	}
	return n;
}

/* A round in which nobody attacked would find nothing, too. */
static void count_creator(struct tally *tally, const struct op_entry *create)
{
	tally->creators++;
	if (create->ret)
		tally->error = create->ret;
	else
		tally->spaces++;
}

void count_ops(struct tally *tally)
{
	static struct op_log log;
	unsigned int i;

	*tally = (struct tally){ 0 };
	for (i = 0; i < LOG_SLOTS; i++) {
		if (pread(BOARD_FD, &log, offsetof(struct op_log, ops),
			  PAGE + i * sizeof(log)) <= 0)
			break;
		tally->ops += log.n;
		tally->processes += log.n > 0;
		tally->execs += log.execs;
		tally->stayed += log.stayed;
		tally->deaf += log.deaf;
		tally->silent += log.silent;
		if (log.create.nr)
			count_creator(tally, &log.create);
	}
}

unsigned int count_found(void)
{
	return n_found;
}
