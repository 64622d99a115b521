// SPDX-License-Identifier: GPL-2.0-only
/* The key of a job that another launcher has started: the same for all its ranks, and secret */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* What it has left in a place that is not the test's */
static void forget(void)
{
	char file[400];

	snprintf(file, sizeof(file), "%s/pvasexec-%.*s", found.dir, (int)strcspn(found.key, "#"),
		 found.key);
	unlink(file);
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
	/* however long the name is, the secret is whole */
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	setenv("PMIX_NAMESPACE", name, 1);
	check(!look() && strstr(found.key, "#8de7ea7a093d70ff8a02d699caecf5c9"));
	strcpy(first, found.key);
	name[398] = 'm';
	setenv("PMIX_NAMESPACE", name, 1);
	check(!look() && strcmp(found.key, first));
	setenv("PMIX_NAMESPACE", "7", 1);
	/* it is no secret if it is short */
	setenv(TRANSPORTS, "8de7ea7a", 1);
	check(!look() && strcmp(found.secret_by, TRANSPORTS));
	forget();
	unsetenv(TRANSPORTS);
}

/* All ranks at once: one of them decides. */
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
	/* nothing but the file itself is there, it is this user's, and its name tells nothing */
	snprintf(command, sizeof(command), "cd %s && [ \"$(ls | wc -l)\" -eq 1 ]", dir);
	check(!system(command));
	snprintf(file, sizeof(file), "%s/pvasexec-%.*s", dir, (int)strcspn(key, "#"), key);
	check(!stat(file, &st) && (st.st_mode & 0777) == 0600);
	check(!strstr(file, strchr(key, '#') + 1));
	unlink(file);
	check(!look() && strcmp(key, found.key));
	/* what others could have made, or can read */
	check(!chmod(file, 0644));
	refused(file);
	check(!unlink(file) && !symlink("/etc/hostname", file));
	refused(file);
	check(!unlink(file) && !mkfifo(file, 0600));
	refused(file);
	check(!truncate(file, 5));
	refused(file);
	many();
	/* a directory that others can look into is not taken */
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

void test_jobkey(void)
{
	char dir[] = "/tmp/pvas-unit-XXXXXX", command[64];

	check(mkdtemp(dir) != NULL);
	unsetenv("XDG_RUNTIME_DIR");
	check(look() == -ENOENT);
	setenv("PMIX_NAMESPACE", "7", 1);
	from_file(dir);
	from_launcher();
	unsetenv("PMIX_NAMESPACE");
	snprintf(command, sizeof(command), "rm -r %s", dir);
	check(!system(command));
}
