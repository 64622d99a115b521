// SPDX-License-Identifier: GPL-2.0-only
/* The secret of a job: one for all ranks, and removed once its owner has ended */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../job_secret.h"
#include "unit.h"

static int dir;

static bool parses(const char *text)
{
	struct job_secret secret;

	return !job_secret_parse(&secret, text, strlen(text));
}

static void text(void)
{
	struct job_secret first, second;
	char text[JOB_SECRET_TEXT];

	check(!job_secret_create(&first));
	job_secret_format(&first, text);
	check(!job_secret_parse(&second, text, strlen(text)));
	check(!strcmp(first.digits, second.digits) && first.owner == second.owner &&
	      first.started == second.started);
	check(parses("0123456789abcdef0123456789abcdef 1 2"));
	check(!parses(""));
	check(!parses("0123456789abcdef0123456789abcdef"));
	check(!parses("0123456789abcdef0123456789abcde 1 2"));
	check(!parses("0123456789abcdef0123456789abcdeg 1 2"));
	check(!parses("0123456789abcdef0123456789abcdef0 1 2"));
	check(!parses("0123456789abcdef0123456789abcdef 0 2"));
	memset(text, '1', sizeof(text));
	check(job_secret_parse(&second, text, sizeof(text)) == -EBADMSG);
}

/* Another user's process has the owner's pid now: it is not asked when it was started. */
static void of_another_user(void)
{
	struct job_secret secret;
	int ready[2], status;
	pid_t pid;

	if (geteuid())
		return;
	check(!pipe(ready));
	pid = fork();
	if (!pid) {
		job_secret_create(&secret);
		if (setuid(12345) || write(ready[1], &secret, sizeof(secret)) != sizeof(secret))
			_exit(1);
		pause();
	}
	check(read(ready[0], &secret, sizeof(secret)) == sizeof(secret) && secret.owner == pid);
	clock_later(JOB_SECRET_MIN_AGE_S * 1000);
	check(job_secret_is_stale(&secret));
	clock_later(-JOB_SECRET_MIN_AGE_S * 1000);
	check(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	close(ready[0]);
	close(ready[1]);
}

static void stale(void)
{
	struct job_secret secret;
	pid_t pid;

	check(!job_secret_create(&secret) && !job_secret_is_stale(&secret));
	/* another process has this pid now */
	secret.started = 1;
	check(job_secret_is_stale(&secret));
	/* the owner has ended, but other ranks may still be starting */
	pid = fork();
	if (!pid) {
		job_secret_create(&secret);
		_exit(0);
	}
	check(!job_secret_create(&secret));
	waitpid(pid, NULL, 0);
	secret.owner = pid;
	check(!job_secret_is_stale(&secret));
	/* from before a reboot */
	secret.started = UINT64_MAX;
	check(job_secret_is_stale(&secret));
}

/* The start of process 1, which is root's and was started long ago; 0: unknown */
static uint64_t start_of_first(void)
{
	unsigned long long started = 0;
	char line[1024];
	FILE *f = fopen("/proc/1/stat", "re");
	const char *end;

	if (!f)
		return 0;
	line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
	fclose(f);
	end = strrchr(line, ')');
	if (end)
		sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		       &started);
	return started;
}

/* A pid that is another user's by now is not the owner's, and its /proc is not read. */
static void other_users_pid(void)
{
	struct job_secret secret = { .owner = 1, .started = start_of_first() };
	int status = -1;
	pid_t pid;

	if (geteuid())
		return;
	check(!job_secret_is_stale(&secret));
	pid = fork();
	if (!pid)
		_exit(setresuid(65534, 65534, 65534) || !job_secret_is_stale(&secret));
	check(waitpid(pid, &status, 0) == pid && !status);
}

/* ---- in a directory ---- */

static void put_file(const char *name, const char *text, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	check(write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !fchmod(fd, mode));
	close(fd);
}

static bool exists(const char *name)
{
	return !faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

#define OLD "0123456789abcdef0123456789abcdef 1 1"	/* init was not started at 1 */

static void sweep_directory(void)
{
	struct job_secret secret, live;
	char text[JOB_SECRET_TEXT];

	check(!job_secret_create(&live));
	job_secret_format(&live, text);
	put_file("pvasexec-live", text, 0600);
	put_file("pvasexec-stale", OLD, 0600);
	put_file("pvasexec-readable", OLD, 0644);
	put_file("pvasexec-other", "something else", 0600);
	put_file("another", OLD, 0600);
	put_file("target", OLD, 0600);
	check(!symlinkat("target", dir, "pvasexec-link"));
	check(!mkfifoat(dir, "pvasexec-fifo", 0600));
	check(!job_secret_in_directory(dir, "new", &secret));
	check(!exists("pvasexec-stale"));
	check(exists("pvasexec-live") && exists("pvasexec-new"));
	check(exists("pvasexec-readable") && exists("pvasexec-other") && exists("another"));
	check(exists("pvasexec-link") && exists("target") && exists("pvasexec-fifo"));
}

/* Another user's file is not touched, even by root. */
static void other_users_file(void)
{
	struct job_secret secret;

	if (geteuid())
		return;
	put_file("pvasexec-theirs", OLD, 0600);
	check(!fchownat(dir, "pvasexec-theirs", 12345, 12345, 0));
	check(!job_secret_in_directory(dir, "newer", &secret) && exists("pvasexec-theirs"));
}

static void directory(void)
{
	char path[] = "/tmp/pvas-unit-XXXXXX", command[64];

	check(mkdtemp(path) != NULL);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sweep_directory();
	other_users_file();
	close(dir);
	snprintf(command, sizeof(command), "rm -r %s", path);
	check(!system(command));
}

/* ---- in the keyring ---- */

static long find(const char *name)
{
	return syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", name, 0);
}

static long add(const char *name, const char *text)
{
	return syscall(SYS_add_key, "user", name, text, strlen(text), KEY_SPEC_USER_KEYRING);
}

static void drop(const char *name)
{
	long key = find(name);

	if (key > 0)
		syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
}

/* All at once: one creates the key, and all read it. */
static void many(void)
{
	struct job_secret secret, first = { 0 };
	int ends[2], i, same = 0;

	check(!pipe(ends));
	for (i = 0; i < 16; i++) {
		if (fork())
			continue;
		_exit(job_secret_in_keyring("unit-many", &secret) ||
		      write(ends[1], &secret, sizeof(secret)) != sizeof(secret));
	}
	for (i = 0; i < 16 && read(ends[0], &secret, sizeof(secret)) == sizeof(secret); i++) {
		if (!i)
			first = secret;
		same += !strcmp(first.digits, secret.digits);
	}
	check(same == 16);
	while (wait(NULL) > 0)
		;
	close(ends[0]);
	close(ends[1]);
	drop("pvasexec-unit-many");
}

static void keyring(void)
{
	struct job_secret first, second;
	long key = add("pvas-unit", "x");

	if (key < 0) {
		printf("skip: no keyring here: %s\n", strerror(errno));
		return;
	}
	check(!job_secret_in_keyring("unit;1", &first));
	check(!job_secret_in_keyring("unit;1", &second) && !strcmp(first.digits, second.digits));
	check(!job_secret_in_keyring("unit;2", &second) && strcmp(first.digits, second.digits));
	/* stale secrets of other jobs are removed, and nothing else */
	check(add("pvasexec-unit;stale", OLD) > 0 && add("pvasexec-unit;other", "x") > 0);
	check(!job_secret_in_keyring("unit;3", &second));
	check(find("pvasexec-unit;stale") < 0 && find("pvasexec-unit;other") > 0);
	check(find("pvasexec-unit;1") > 0 && find("pvas-unit") == key);
	/* an expired key does not hide the name */
	key = find("pvasexec-unit;1");
	check(!syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, 1));
	sleep(2);
	check(!job_secret_in_keyring("unit;1", &second) && strcmp(first.digits, second.digits));
	many();
	drop("pvasexec-unit;1");
	drop("pvasexec-unit;2");
	drop("pvasexec-unit;3");
	drop("pvasexec-unit;other");
	drop("pvas-unit");
}

void test_job_secret(void)
{
	text();
	stale();
	of_another_user();
	other_users_pid();
	directory();
	keyring();
}
