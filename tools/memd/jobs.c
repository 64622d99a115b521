// SPDX-License-Identifier: GPL-2.0-only
/* The jobs: read from key files at the beginning and at SIGHUP */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "key.h"
#include "memd.h"

static int add_job(struct memd *memd, const char *name, const uint8_t *key, bool once)
{
	struct job *job, **end = &memd->jobs;
	const char *slash = strrchr(name, '/');

	for (; *end; end = &(*end)->next) {
		if (!far_mac_equal((*end)->key, key))
			continue;
		(*end)->listed = true;
		(*end)->once |= once;
		return 0;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	snprintf(job->name, sizeof(job->name), "%s", slash ? slash + 1 : name);
	memcpy(job->key, key, sizeof(job->key));
	job->token = far_token(key);
	job->listed = true;
	job->once = once;
	*end = job;
	return 0;
}

/* @once: from a descriptor, which can't be read again */
static int read_file(struct memd *memd, const char *name, bool once)
{
	uint8_t key[FAR_KEY_BYTES];
	char why[160];
	int err;

	err = far_key_read(name, key, why, sizeof(why));
	if (err)
		fprintf(stderr, "pvas-memd: key %s: %s\n", name, why);
	else
		err = add_job(memd, name, key, once);
	far_wipe(key, sizeof(key));
	return err;
}

/* Others must not be able to put a key there. */
static int check_folder(int fd, const char *name)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & 022))
		return 0;
	fprintf(stderr, "pvas-memd: keys in %s: other users can change this folder\n", name);
	return -EPERM;
}

/* Was it read, and is no key that may be used? */
static bool is_verdict(int err)
{
	return !err || err == -EINVAL || err == -ENOENT || err == -EPERM || err == -ELOOP ||
	       err == -ENXIO;
}

/* An error that says nothing of the key, as one for lack of descriptors, is kept. */
static int worse(int a, int b)
{
	return !is_verdict(a) || !b ? a : b;
}

/* A file that is no key is left out, with a line. */
static int read_folder(struct memd *memd, int fd, const char *name)
{
	char path[4096];
	struct dirent *entry;
	int err, one;
	DIR *dir;

	err = check_folder(fd, name);
	dir = err ? NULL : fdopendir(fd);
	if (!dir) {
		close(fd);
		return err ? err : -ENOMEM;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
		one = read_file(memd, path, false);
		if (!is_verdict(one))
			err = one;
	}
	closedir(dir);
	return err;
}

static int read_name(struct memd *memd, const char *name)
{
	int fd;

	if (!strcmp(name, "-") || !strncmp(name, "fd:", 3))
		return read_file(memd, name, true);
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return read_folder(memd, fd, name);
	return read_file(memd, name, false);
}

/*
 * Descriptors can be read once; their jobs stay. If something can't be read now, all stay: no
 * job is to end because the server has no descriptor left, or a file server doesn't answer.
 */
int jobs_read(struct memd *memd)
{
	bool again = memd->jobs;
	struct job *job;
	unsigned int i;
	int err, result = 0;

	for (job = memd->jobs; job; job = job->next)
		job->listed = job->once;
	for (i = 0; i < memd->options.key_count; i++) {
		const char *name = memd->options.keys[i];

		if (again && (!strcmp(name, "-") || !strncmp(name, "fd:", 3)))
			continue;
		err = read_name(memd, name);
		result = worse(result, err);
	}
	if (!is_verdict(result))
		for (job = memd->jobs; job; job = job->next)
			job->listed = true;
	return result;
}

struct job *job_find(struct memd *memd, uint64_t token)
{
	struct job *job;

	for (job = memd->jobs; job; job = job->next)
		if (job->token == token && job->listed)
			return job;
	return NULL;
}

/* Bytes that the job may still reserve */
uint64_t job_free(const struct memd *memd, const struct job *job)
{
	uint64_t all = memd->options.ram - memd->reserved;
	uint64_t own = memd->options.job_ram > job->reserved ?
		       memd->options.job_ram - job->reserved : 0;

	return all < own ? all : own;
}

/* Forgets jobs whose key is gone; first their connections and memory go. */
void jobs_prune(struct memd *memd)
{
	struct job *job, **at = &memd->jobs;
	unsigned int i;
	bool used;

	while ((job = *at)) {
		used = job->reserved;
		for (i = 0; i < MAX_CONNS; i++)
			if (memd->conns[i] && memd->conns[i]->job == job) {
				used = true;
				if (!job->listed)
					conn_fail(memd->conns[i], "the job's key was removed");
			}
		if (job->listed || used) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		far_wipe(job, sizeof(*job));
		free(job);
	}
}
