// SPDX-License-Identifier: GPL-2.0-only
/* Find programs, and report whether they can be tasks. */
#include "program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../libpvas/pvas.h"
#include "elf_needed.h"
#include "precheck.h"
#include "python.h"
#include "report.h"
#include "script.h"

struct known {
	const char *name;
	const char *hint;
};

/* Programs that are often linked at fixed addresses, and packages with others for the purpose */
static const struct known alternatives[] = {
	{ "busybox", "package busybox has one, unlike busybox-static" },
	{ "gawk", "mawk and original-awk are" },
	{ "node", "that of Debian's own package nodejs is" },
	{ NULL, "or start it by env, as a process outside the space; Go: -buildmode=pie" },
};

/* Programs that can be tasks, if they are told something */
static const struct known conditions[] = {
	{ "java", "not with ZGC of Java 17, whose heap is at fixed addresses: take another collector, or env PVAS_EXEC=leave java, a process outside the space" },
	{ "mariadbd", "it reserves more than a partition: start it with --innodb-buffer-pool-size-max=1T" },
	{ NULL, NULL },
};

/* The last entry is for all others. */
static const char *hint_for(const struct known *known, const char *path)
{
	char *real = realpath(path, NULL);
	const char *name = strrchr(real ? real : path, '/');

	while (known->name && (!name || strcmp(name + 1, known->name)))
		known++;
	free(real);
	return known->hint;
}

const char *program_condition(const char *path)
{
	return path ? hint_for(conditions, path) : NULL;
}

static const char *find_hint(const char *name, int err)
{
	struct stat st;

	if (err == -EACCES && !stat(name, &st) && S_ISDIR(st.st_mode))
		return "it is a directory";
	if (err == -EACCES)
		return "make it executable: chmod +x";
	if (err != -ENOENT)
		return "check its path";
	return strchr(name, '/') ? "check its path" : "not in PATH; ./prog for one here";
}

static int find(const char *name, const char *wdir, char path[static PATH_MAX])
{
	char joined[PATH_MAX];

	if (wdir && strchr(name, '/') && name[0] != '/') {
		if (snprintf(joined, sizeof(joined), "%s/%s", wdir, name) >= PATH_MAX)
			return -ENAMETOOLONG;
		name = joined;
	}
	return pvas_program_find(name, NULL, path, PATH_MAX);
}

int program_find(const char *name, const char *wdir, char path[static PATH_MAX], char *why,
		 size_t len)
{
	const char *instead;
	char reason[256] = "";
	int err;

	err = find(name, wdir, path);
	if (err) {
		path[0] = '\0';
		snprintf(why, len, "%s (%s)", strerror(-err), find_hint(name, err));
		return err;
	}
	err = pvas_program_check(path, reason, sizeof(reason));
	if (!err)
		return 0;
	instead = err == -ENOEXEC && (elf_needed(path) & ELF_IS_FIXED) ?
		  hint_for(alternatives, path) : NULL;
	snprintf(why, len, "%s%s%s%s", reason[0] ? reason : strerror(-err), instead ? " (" : "",
		 instead ? instead : "", instead ? ")" : "");
	return err;
}

/* ---- --check ---- */

/* A name out of the file may be another user's, and is printed on terminals. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void describe(const char *path, bool is_elf, char *text, size_t len)
{
	struct script_words w;
	char name[PATH_MAX];

	if (is_elf && elf_interpreter(path, name, sizeof(name)))
		snprintf(text, len, "position-independent, interpreter %s", name);
	else if (is_elf)
		snprintf(text, len, "position-independent, no interpreter");
	else if (!script_read(path, &w) && w.nr)
		snprintf(text, len, "a script, and so can its interpreter %s", w.word[0]);
	else
		snprintf(text, len, "a script, and so can its interpreter");
	make_printable(text);
}

static void print_good(const char *path)
{
	const char *condition = program_condition(path);
	unsigned int flags = elf_needed(path);
	char form[PATH_MAX + 64];

	describe(path, flags & ELF_IS_ELF, form, sizeof(form));
	printf("%s: can be a task (%s%s%s%s%s)\n", path, form,
	       flags & ELF_NEEDS_MPI ? ", MPI" : "",
	       flags & ELF_HAS_RPATH ? ", with a library path of its own" : "",
	       condition ? ", but " : "", condition ? condition : "");
}

static bool has_host(const char *path, char **name, char *why, size_t len)
{
	struct python_host host;

	if (python_host_find(path, name, &host, why, len) <= 0)
		return false;
	printf("%s: can be a task (Python, run by %s, which is position-independent)\n", path,
	       host.path);
	free(host.argv);
	return true;
}

int program_check(char *name)
{
	char path[PATH_MAX], why[512], *names[] = { name, NULL };
	int err;

	err = program_find(name, NULL, path, why, sizeof(why));
	if ((!err || err == -ENOEXEC) && has_host(path, names, why, sizeof(why)))
		return 0;
	if (!err) {
		print_good(path);
		return 0;
	}
	printf("%s: cannot be a task: %s\n", path[0] ? path : name, why);
	return precheck_status(err);
}

int program_check_all(char **names)
{
	int first = 0, status;

	for (; *names; names++) {
		status = program_check(*names);
		first = first ? first : status;
	}
	return first;
}
