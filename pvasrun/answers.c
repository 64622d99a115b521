// SPDX-License-Identifier: GPL-2.0-only
/* Waiting for file servers: see answers.h. */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "elf_needed.h"
#include "job.h"
#include "precheck.h"
#include "python.h"
#include "report.h"
#include "script.h"

#define MESSAGES	4096	/* bytes, of an app, and as many more */

/* The answers about a program: fields of struct app. The words follow one another. */
struct answer {
	char path[PATH_MAX];
	const char *condition;	/* of a table, which lies at the same address in pvasrun */
	unsigned int elf, own_words;
	char words[SCRIPT_HEAD + 1 + PATH_MAX];
};

/* In memory that pvasrun and the child share */
struct answers {
	const struct options *opt;
	struct report_kept *said;
	int status;
	const char *asking;	/* the file server that is being asked */
	struct answer of[];
};

/* ---- in the child ---- */

static void tell(const struct app *app, struct answer *answer)
{
	char *at = answer->words, *end = at + sizeof(answer->words);
	unsigned int i;

	if (app->path)
		strncpy(answer->path, app->path, sizeof(answer->path) - 1);
	answer->condition = app->condition;
	answer->elf = app->elf;
	/* A single one is argv[0] as it was. */
	for (i = 0; app->own_words > 1 && i < app->own_words; i++)
		at = memccpy(at, app->own_argv[i], '\0', (size_t)(end - at)) ?: end;
	answer->own_words = app->own_words;
}

/*
 * pvasrun asks these itself, later: a server that is silent from the beginning holds up this
 * child instead. Of a file that is no regular one, as a pipe, nothing may be read.
 */
static void touch(struct answers *answers, const char *asking, const char *path)
{
	struct stat st;
	char byte;
	int fd;

	answers->asking = asking;
	if (!path || !*path || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* Whether it can be read is pvasrun's question. */
	if (fd >= 0 && read(fd, &byte, 1) >= 0)
		close(fd);
}

/* Returns whether there are other hosts' among them. */
static bool touch_stores(struct answers *answers, const char *stores)
{
	bool hosts = false;
	char path[PATH_MAX];
	size_t len;

	for (; stores && *stores; stores += len + (stores[len] == ',')) {
		len = strcspn(stores, ",");
		if (strncmp(stores, "file:", 5)) {
			hosts |= len != 3 || strncmp(stores, "zip", 3);
		} else if (len - 5 < sizeof(path)) {
			snprintf(path, sizeof(path), "%.*s", (int)len - 5, stores + 5);
			touch(answers, "--far's", path);
		}
	}
	return hosts;
}

static void touch_plugins(struct answers *answers)
{
	const char *folder = secure_getenv("PVAS_FAR_PLUGINS");
	char path[PATH_MAX];

	if (folder && snprintf(path, sizeof(path), "%s/pvasfar-host.so", folder) < PATH_MAX)
		touch(answers, "PVAS_FAR_PLUGINS'", path);
}

static bool has_mpi(const struct options *opt)
{
	unsigned int i;

	for (i = 0; opt->mpi == MPI_AUTO && i < opt->nr_apps; i++)
		if (opt->apps[i].elf & ELF_NEEDS_MPI)
			return true;
	return opt->mpi == MPI_PMIX;
}

static void touch_others(struct answers *answers, const struct options *opt)
{
	const char *key = opt->far.key ? opt->far.key : getenv("PVAS_FAR_KEY");

	if (has_mpi(opt))
		touch(answers, "TMPDIR's", getenv("TMPDIR"));
	if (!opt->far.ram)
		return;
	touch(answers, "--far-key's", key);
	if (touch_stores(answers, opt->far.stores) || opt->far.nr_start)
		touch_plugins(answers);
}

/* It changes its own memory only. pvasrun has no other thread yet, so it may use all of libc. */
static void look(const void *about)
{
	struct answers *answers = *(struct answers *const *)about;
	struct options opt = *answers->opt;
	unsigned int i;

	while (open("/dev/null", O_RDWR | O_CLOEXEC) == STDOUT_FILENO)
		;
	report_keep(answers->said);
	answers->asking = "a program's";
	answers->status = precheck_programs(&opt);
	if (!answers->status)
		answers->status = precheck_mpi(&opt);
	for (i = 0; !answers->status && i < opt.nr_apps; i++)
		tell(&opt.apps[i], &answers->of[i]);
	if (!answers->status)
		touch_others(answers, &opt);
	if (write(STDIN_FILENO, "", 1) < 0)
		return;
}

/* ---- in pvasrun ---- */

static int take_words(struct app *app, const struct answer *answer)
{
	const char *words[SCRIPT_WORDS + 2], *at = answer->words;
	unsigned int i;

	for (i = 0; i < answer->own_words; i++) {
		words[i] = answer->own_words > 1 ? at : app->argv[0];
		at += strlen(words[i]) + 1;
	}
	app->own_words = answer->own_words;
	app->own_argv = python_host_argv(words, answer->own_words, app->argv);
	app->argv = app->own_argv;
	return app->argv ? 0 : -ENOMEM;
}

static int take(struct app *app, const struct answer *answer)
{
	app->path = strdup(answer->path);
	app->condition = answer->condition;
	app->elf = answer->elf;
	if (!app->path)
		return -ENOMEM;
	return answer->own_words ? take_words(app, answer) : 0;
}

static int take_all(struct options *opt, const struct answers *answers)
{
	unsigned int i;
	int err = 0;

	report_text(answers->said->text, answers->said->used);
	for (i = 0; !answers->status && !err && i < opt->nr_apps; i++)
		err = take(&opt->apps[i], &answers->of[i]);
	if (err)
		report_error("cannot look for the programs: %s", strerror(-err));
	return err ? STATUS_FAILED : answers->status;
}

static int no_answer(const struct options *opt, const struct answers *answers)
{
	if (opt->timeout_at && now_ms() >= opt->timeout_at) {
		report_error("--timeout %s: the time is over, and %s file server has not answered",
			     opt->timeout_text, answers->asking ? answers->asking : "a program's");
		return STATUS_TIMEOUT;
	}
	report_error("cannot look for the programs: the child of pvasrun that does has been killed");
	return STATUS_FAILED;
}

static int wait_for_all(struct options *opt, struct answers *answers)
{
	int64_t patience = opt->timeout_at ? opt->timeout_at - now_ms() : INT_MAX;
	struct ask ask;
	char answer;
	bool known;
	int err;

	if (patience > INT_MAX)
		patience = INT_MAX;
	err = ask_begin(&ask, look, &answers);
	if (err) {
		report_error("cannot look for the programs: %s", strerror(-err));
		return STATUS_FAILED;
	}
	known = ask_read(&ask, &answer, 1, &patience);
	ask_end(&ask);
	return known ? take_all(opt, answers) : no_answer(opt, answers);
}

int answers_wait(struct options *opt)
{
	const size_t of = sizeof(struct answers) + opt->nr_apps * sizeof(struct answer);
	const size_t room = MESSAGES * (opt->nr_apps + 1UL);
	const size_t size = of + sizeof(struct report_kept) + room;
	struct answers *answers;
	int status;

	answers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answers == MAP_FAILED) {
		report_error("cannot look for the programs: %s", strerror(errno));
		return STATUS_FAILED;
	}
	answers->opt = opt;
	answers->said = (struct report_kept *)((char *)answers + of);
	answers->said->room = room;
	status = wait_for_all(opt, answers);
	munmap(answers, size);
	return status;
}
