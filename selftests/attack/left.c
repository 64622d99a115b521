// SPDX-License-Identifier: GPL-2.0-only
/* See left.h. */
#include <dirent.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "left.h"

/* Knuth's 64-bit linear congruential generator: the same on every machine. */
unsigned int rnd(unsigned long long *state, unsigned int below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % below;
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

int count_spaces(void)
{
	char line[512];
	FILE *f = fopen("/proc/pvas", "r");
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "space ", 6);
	fclose(f);
	return n;
}

/* ---- memory ---- */

/* The number after @name in a file of lines "name: number kB"; 0 if there is none */
static long number_of(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[512];
	long n = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			n = atol(line + strlen(name));
	if (f)
		fclose(f);
	return n;
}

static long mapped_by_processes(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[300];
	long sum = 0;

	while (proc && (entry = readdir(proc))) {
		if (atoi(entry->d_name) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", entry->d_name);
		sum += number_of(path, "Pss_Anon:");
	}
	if (proc)
		closedir(proc);
	return sum;
}

/* Of file systems in memory; one that is mounted at several places counts once. */
static long in_files(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	unsigned long seen[64];
	struct mntent *mount;
	struct statvfs fs;
	int i, n = 0;
	long sum = 0;

	while (mounts && n < 64 && (mount = getmntent(mounts))) {
		if ((strcmp(mount->mnt_type, "tmpfs") && strcmp(mount->mnt_type, "devtmpfs")) ||
		    statvfs(mount->mnt_dir, &fs))
			continue;
		for (i = 0; i < n && seen[i] != fs.f_fsid; i++)
			;
		if (i < n)
			continue;
		seen[n++] = fs.f_fsid;
		sum += (long)((fs.f_blocks - fs.f_bfree) * fs.f_frsize / 1024);
	}
	if (mounts)
		endmntent(mounts);
	return sum;
}

static long in_segments(void)
{
	FILE *f = fopen("/proc/sysvipc/shm", "re");
	char line[512];
	long sum = 0, bytes;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d %*d %*o %*u %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld",
			   &bytes) == 1)
			sum += bytes / 1024;
	if (f)
		fclose(f);
	return sum;
}

long memory_without_owner(void)
{
	return number_of("/proc/meminfo", "AnonPages:") - mapped_by_processes() +
	       number_of("/proc/meminfo", "Shmem:") - in_files() - in_segments();
}

void show_memory(void)
{
	fprintf(stderr, "left: AnonPages %ld KiB, of processes %ld; Shmem %ld KiB, in files %ld, segments %ld\n",
		number_of("/proc/meminfo", "AnonPages:"), mapped_by_processes(),
		number_of("/proc/meminfo", "Shmem:"), in_files(), in_segments());
	if (system("{ for p in /proc/[0-9]*; do echo $(cat $p/comm; grep -h -E '^(State|PPid|Tgid|Threads)' $p/status;"
		   "grep -h -E '^Pss_(Anon|Shmem)' $p/smaps_rollup); done; cat /proc/pvas; } >&2"))
		fprintf(stderr, "left: can't show all processes\n");
}

/* ---- the end ---- */

/* Our children: orphans of launchers, adopted by this process. */
static int reap_all(double deadline)
{
	do {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return 0;
		if (pid == 0)
			usleep(10000);
	} while (now() < deadline);
	return 1;
}

static void complain(void)
{
	if (system("{ cat /proc/pvas; ps -eo pid,ppid,stat,wchan:30,args | tail -30;"
		   "for p in $(awk '/ task /{print $4}' /proc/pvas); do cat /proc/$p/stack "
		   "/proc/$p/syscall; grep -E '^(Sig|Shd|State|PPid)' /proc/$p/status; done; } >&2"))
		fprintf(stderr, "left: can't show what is left\n");
}

static int check_owners(long before, double deadline)
{
	long kib;

	for (;;) {
		kib = memory_without_owner();
		if (kib < before + OWNER_SLACK_KIB)
			return 0;
		if (now() >= deadline)
			break;
		usleep(100000);
	}
	fprintf(stderr, "left: %ld KiB that no process has, were %ld\n", kib, before);
	show_memory();
	return 1;
}

struct left left_before(void)
{
	return (struct left){ count_spaces(), memory_without_owner() };
}

int check_end(const struct left *before)
{
	double deadline = now() + END_SECONDS;
	int spaces;

	if (reap_all(deadline)) {
		fprintf(stderr, "left: processes are left after %d s\n", END_SECONDS);
		complain();
		return 1;
	}
	do {
		spaces = count_spaces();
		if (spaces <= before->spaces)
			break;
		usleep(10000);
	} while (now() < deadline);
	if (spaces <= before->spaces)
		return check_owners(before->unowned, deadline);
	fprintf(stderr, "left: %d spaces are left after %d s\n", spaces - before->spaces, END_SECONDS);
	complain();
	return 1;
}
