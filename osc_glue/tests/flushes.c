// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI_THREAD_MULTIPLE: a thread's flush makes the thread's own stores visible to all before its
 * later loads, also if another thread has flushed in between. Three processors would have to meet
 * within nanoseconds to show the difference by a wrong value, so the test goes through the flush
 * instruction by instruction, and counts fences.
 */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

static MPI_Win win;
static volatile sig_atomic_t fences, instructions;

/* mfence, or what compilers take for it: lock or $0, (%rsp), of 8 or 4 bytes */
static int is_fence(const void *at)
{
	return !memcmp(at, "\x0f\xae\xf0", 3) || !memcmp(at, "\xf0\x48\x83\x0c\x24\x00", 6) ||
	       !memcmp(at, "\xf0\x83\x0c\x24\x00", 5);
}

static void on_step(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *user = context;

	(void)signal;
	(void)info;
	instructions++;
	fences += is_fence((const void *)user->uc_mcontext.gregs[REG_RIP]);
}

static void steps(int on)
{
	uint64_t flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(uint64_t)TRAP_FLAG);
}

static void *flush(void *unused)
{
	MPI_Win_flush(0, win);
	return unused;
}

static void others_flush(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, flush, NULL);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	int64_t *memory, value = 5;
	int provided, i;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	sigaction(SIGTRAP, &action, NULL);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < 3; i++) {
		MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
		others_flush();
		fences = instructions = 0;
		steps(1);
		MPI_Win_flush(0, win);
		steps(0);
		expect(instructions > 10, "flush %d has only %d instructions", i,
		       (int)instructions);
		expect(fences, "flush %d has no fence among %d instructions", i,
		       (int)instructions);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	return finish();
}
