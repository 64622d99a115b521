// SPDX-License-Identifier: GPL-2.0-only
/* The key of a job of another launcher: the same for all its ranks, and secret */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../jobkey.h"
#include "unit.h"

#define TRANSPORTS "OMPI_MCA_orte_precondition_transports"

static struct jobkey found;
static char why[512];

static int look(void)
{
	memset(&found, 0, sizeof(found));
	return jobkey_find(&found, why, sizeof(why));
}

/* Remove the secret from a place that is not the test's own. */
static void forget(void)
{
	char name[400];
	long key;

	snprintf(name, sizeof(name), "pvasexec-%.*s", (int)strcspn(found.key, "#"), found.key);
	key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", name, 0);
	if (key > 0)
		syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
	snprintf(name, sizeof(name), "%s/pvasexec-%.*s", found.dir, (int)strcspn(found.key, "#"),
		 found.key);
	unlink(name);
	rmdir(found.dir);
}

static void from_launcher(void)
{
	char first[sizeof(found.key)];
	char name[400];

	setenv(TRANSPORTS, "8de7ea7a093d70ff-8a02d699caecf5c9", 1);
	check(!look() && strstr(found.key, "8de7ea7a093d70ff8a02d699caecf5c9"));
	check_text(found.secret_by, TRANSPORTS, "transports");
	strcpy(first, found.key);
	setenv("PMIX_NAMESPACE", "8", 1);
	check(!look() && strcmp(found.key, first));
	/* the secret is complete however long the name is */
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	setenv("PMIX_NAMESPACE", name, 1);
	check(!look() && strstr(found.key, "#8de7ea7a093d70ff8a02d699caecf5c9"));
	strcpy(first, found.key);
	name[398] = 'm';
	setenv("PMIX_NAMESPACE", name, 1);
	check(!look() && strcmp(found.key, first));
	setenv("PMIX_NAMESPACE", "7", 1);
	/* a short secret is not used */
	setenv(TRANSPORTS, "8de7ea7a", 1);
	check(!look() && strcmp(found.secret_by, TRANSPORTS));
	forget();
	unsetenv(TRANSPORTS);
}

/* All ranks at once: one of them creates the secret. */
static void many(void)
{
	char key[sizeof(found.key)], first[sizeof(found.key)] = "";
	int ends[2], i, same = 0;

	setenv("PMIX_NAMESPACE", "many", 1);
	check(!pipe(ends));
	for (i = 0; i < 16; i++) {
		if (fork())
			continue;
		_exit(look() || write(ends[1], found.key, sizeof(key)) != sizeof(key));
	}
	for (i = 0; i < 16 && read(ends[0], key, sizeof(key)) == sizeof(key); i++) {
		if (!*first)
			strcpy(first, key);
		same += !strcmp(first, key);
	}
	check(same == 16);
	while (wait(NULL) > 0)
		;
	close(ends[0]);
	close(ends[1]);
	setenv("PMIX_NAMESPACE", "7", 1);
}

static void refused(const char *file)
{
	char name[400];

	snprintf(name, sizeof(name), "%s", file);
	check(look() < 0 && strstr(why, "cannot agree on the job's secret"));
	check(!unlink(name));
	check(!look());
}

static void from_file(const char *dir)
{
	char key[sizeof(found.key)], file[300], command[700];
	struct stat st;

	setenv("XDG_RUNTIME_DIR", dir, 1);
	check(!look());
	check_text(found.secret_by, dir, "directory");
	strcpy(key, found.key);
	check(!look() && !strcmp(key, found.key));
	/* there is only the file, private, and without the secret in its name */
	snprintf(command, sizeof(command), "cd %s && [ \"$(ls | wc -l)\" -eq 1 ]", dir);
	check(!system(command));
	snprintf(file, sizeof(file), "%s/pvasexec-%.*s", dir, (int)strcspn(key, "#"), key);
	check(!stat(file, &st) && (st.st_mode & 0777) == 0600);
	check(!strstr(file, strchr(key, '#') + 1));
	unlink(file);
	check(!look() && strcmp(key, found.key));
	/* files that others could have created, or can read */
	check(!chmod(file, 0644));
	refused(file);
	check(!unlink(file) && !symlink("/etc/hostname", file));
	refused(file);
	check(!unlink(file) && !mkfifo(file, 0600));
	refused(file);
	check(!truncate(file, 5));
	refused(file);
	many();
	/* a directory that others can read is not used */
	check(!chmod(dir, 0755) && !look() && strcmp(found.secret_by, dir));
	setenv("PMIX_SERVER_TMPDIR", dir, 1);
	check(!look() && strcmp(found.secret_by, dir));
	forget();
	unlink(file);
	check(!chmod(dir, 0700));
	unsetenv("XDG_RUNTIME_DIR");
	check(!look());
	check_text(found.secret_by, dir, "directory");
	unsetenv("PMIX_SERVER_TMPDIR");
}

/* As in a container: neither add_key(2) nor keyctl(2) */
static void forbid_keys(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_keyctl, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_add_key, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	      !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

/* Another user has created the directory in /tmp, whose name can be guessed. */
#define SQUATTED 54321

static void as_user(bool keys, bool squatted)
{
	char first[sizeof(found.key)];

	check(!setgid(SQUATTED) && !setuid(SQUATTED));
	if (!keys)
		forbid_keys();
	if (!keys && squatted) {
		check(look() == -EACCES && strstr(why, "/tmp/pvasexec-54321"));
		return;
	}
	check(!look());
	strcpy(first, found.key);
	check(!look() && !strcmp(first, found.key));
	check(!strncmp(found.secret_by, "/tmp", 4) == !keys);
	forget();
}

/* And it never answers: the server of the file system on it does not. */
static void silent(void)
{
	char options[80];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=1,group_id=1,allow_other", fd);
	if (fd < 0 || unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("f", "/tmp/pvasexec-54321", "fuse", MS_NOSUID | MS_NODEV, options))
		return;
	alarm(10);
	as_user(false, true);
}

static void squatting(void)
{
	int i, status;
	pid_t pid;

	if (geteuid() || (mkdir("/tmp/pvasexec-54321", 0777) && errno != EEXIST))
		return;
	for (i = 0; i < 5; i++) {	/* 3 and 4: with the name free */
		bool keys = i % 2, squatted = i < 3;

		if (!squatted)
			rmdir("/tmp/pvasexec-54321");
		pid = fork();
		if (!pid) {
			if (i == 2)
				silent();
			else
				as_user(keys, squatted);
			_exit(check_failures() != 0);
		}
		check(waitpid(pid, &status, 0) == pid && !status);
	}
	rmdir("/tmp/pvasexec-54321");
}

void test_jobkey(void)
{
	char dir[] = "/tmp/pvas-unit-XXXXXX", command[64];

	check(mkdtemp(dir) != NULL);
	unsetenv("XDG_RUNTIME_DIR");
	check(look() == -ENOENT);
	setenv("PMIX_NAMESPACE", "7", 1);
	from_file(dir);
	from_launcher();
	squatting();
	unsetenv("PMIX_NAMESPACE");
	snprintf(command, sizeof(command), "rm -r %s", dir);
	check(!system(command));
}
