// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * With a rank in the world that has another component, all others finalize, and have ended
 * before the last of them knows: it gets no word of PMIx for a while. That is no failure.
 */
#include "common.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pid_t main_thread;

static void pause_thread(int sig)
{
	struct timespec left = { 3, 0 };

	(void)sig;
	while (nanosleep(&left, &left))
		;
}

/* As if the other threads had lost their processor */
static void *pause_others(void *unused)
{
	struct dirent *entry;
	pid_t tid;
	DIR *dir;

	sleep(1);
	dir = opendir("/proc/self/task");
	while (dir && (entry = readdir(dir))) {
		tid = atoi(entry->d_name);
		if (tid && tid != main_thread && tid != (pid_t)syscall(SYS_gettid))
			syscall(SYS_tgkill, getpid(), tid, SIGUSR2);
	}
	if (dir)
		closedir(dir);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	begin(&argc, &argv);
	main_thread = getpid();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 2)
		sleep(2);
	if (rank == size - 1) {
		signal(SIGUSR2, pause_thread);
		check(!pthread_create(&thread, NULL, pause_others, NULL), "no thread");
	}
	MPI_Finalize();
	return errors != 0;
}
