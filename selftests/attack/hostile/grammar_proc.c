// SPDX-License-Identifier: GPL-2.0-only
/* Processes and threads: how they come, end and exec; signals. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

#define MAX_DEPTH 2

static void end_somehow(struct actor *a)
{
	static const char *const programs[] = { "/bin/true", "/nonexistent", "/etc/passwd" };
	const char *program = programs[pick(a, 3)];

	note(a, N_EXIT, 0);
	switch (pick(a, 4)) {
	case 0: raw6(SYS_exit, 0, 0, 0, 0, 0, 0); break;
	case 1: kill(getpid(), SIGKILL); break;
	case 2: execl(program, program, (char *)NULL); break;
	}
	_exit(0);
}

static void child(struct actor *a)
{
	a->pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	a->rng = mix(a->rng, a->depth + 77);
	a->number = a->number * 10 + 1;
	a->depth++;
	a->log_n = 0;
	a->child = 0;
	a->in_space = false;
	note(a, N_FORK, a->depth);
	actor_run(a, 2 + pick(a, 12));
	end_somehow(a);
}

static void op_fork(struct actor *a)
{
	pid_t pid;

	if (a->depth >= MAX_DEPTH)
		return;
	pid = fork();
	if (!pid)
		child(a);
	if (pid > 0)
		a->child = pid;
}

struct piece {
	struct actor actor;
	unsigned int ops;
};

static void *thread(void *arg)
{
	struct piece *piece = arg;

	actor_run(&piece->actor, piece->ops);
	/* Sometimes it stays: an exit that leaves threads is another one. */
	if (piece->ops & 1)
		pause();
	return NULL;
}

/* Those that share the mm have a copy of the actor, and few ops. */
static struct piece *make_piece(struct actor *a)
{
	struct piece *piece = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (piece == MAP_FAILED)
		return NULL;
	piece->actor = *a;
	piece->actor.depth = MAX_DEPTH;
	piece->actor.rng = mix(a->rng, 5);
	piece->ops = 1 + pick(a, 10);
	return piece;
}

static void op_thread(struct actor *a)
{
	struct piece *piece = make_piece(a);
	pthread_t t;

	if (piece && a->depth < MAX_DEPTH && !pthread_create(&t, NULL, thread, piece))
		pthread_detach(t);
}

static int cloned(void *arg)
{
	struct piece *piece = arg;

	piece->actor.raw = true;
	piece->actor.pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	piece->actor.log_n = 0;
	actor_run(&piece->actor, piece->ops);
	raw6(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

static void op_clone(struct actor *a)
{
	static const unsigned int flags[] = {
		CLONE_VM | SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD,
		CLONE_VM | CLONE_FILES | SIGCHLD,
		CLONE_VM | CLONE_PARENT | SIGCHLD, CLONE_VM, CLONE_VM | CLONE_SIGHAND | SIGCHLD,
		CLONE_VM | CLONE_FS | CLONE_IO | SIGCHLD, CLONE_VM | CLONE_NEWUSER | SIGCHLD,
	};
	struct piece *piece = make_piece(a);
	unsigned int f = flags[pick(a, ARRAY(flags))];
	int pid;

	if (!piece || a->depth >= MAX_DEPTH)
		return;
	note(a, N_FORK, f);
	pid = clone(cloned, (char *)piece + 16 * PAGE, f, piece);
	if (pid > 0)
		a->child = pid;
}

static void op_spawn(struct actor *a)
{
	char *const argv[] = { (char *)"true", NULL }, *const envp[] = { NULL };
	pid_t pid;

	(void)a;
	if (!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, envp))
		waitpid(pid, NULL, __WALL);
}

static void op_signal(struct actor *a)
{
	static const int signals[] = { SIGKILL, SIGSTOP, SIGCONT, SIGUSR1, SIGTERM };

	if (a->child > 0)
		CALL(a, SYS_kill, a->child, signals[pick(a, ARRAY(signals))]);
}

void op_proc(struct actor *a)
{
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
	switch (pick(a, 12)) {
	case 0 ... 3: op_fork(a); break;
	case 4 ... 5: op_thread(a); break;
	case 6 ... 7: op_clone(a); break;
	case 8: op_spawn(a); break;
	case 9: usleep(pick(a, 20000)); break;
	default: op_signal(a);
	}
	if (a->depth && !pick(a, 30))
		end_somehow(a);
}

/* ---- the exec of a task ---- */

static void *exec_by_thread(void *argv)
{
	execv(self_path, argv);
	return NULL;
}

/* One that leaves the space or fails: the attacker goes on only in the latter case. */
static void exec_other(struct actor *a)
{
	static const char *const programs[] = {
		"/bin/true", "/bin/true", "/bin/su", "/nonexistent", "/etc/passwd", "/dev/null",
	};
	char *program = (char *)programs[pick(a, ARRAY(programs))];
	char *argv[] = { program, (char *)"--version", NULL };
	char *leave[] = { (char *)"PVAS_EXEC=leave", NULL };

	/* Not to the log. */
	raw6(SYS_close, STDOUT_FILENO, 0, 0, 0, 0, 0);
	raw6(SYS_close, STDERR_FILENO, 0, 0, 0, 0, 0);
	execve(program, argv, pick(a, 2) ? leave : &leave[1]);
}

/*
 * Its threads, children, rings and mappings are as the ops left them. The new program is an
 * attacker in the same partition.
 */
void exec_again(struct actor *a, char **argv)
{
	char number[16];
	char *again[] = { self_path, (char *)"--role", argv[0], argv[1], argv[2], argv[3], argv[4],
			  number, argv[6], (char *)"again", NULL };
	unsigned int way = pick(a, 8);
	pthread_t t;

	note(a, N_EXEC, way);
	if (way < 2)
		return;
	if (way < 4)
		exec_other(a);
	snprintf(number, sizeof(number), "%u", a->number + 100000);
	count_exec(a, offsetof(struct op_log, execs));
	if (way < 6 && !pthread_create(&t, NULL, exec_by_thread, again))
		pthread_join(t, NULL);
	execv(self_path, again);
}
