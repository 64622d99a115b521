// SPDX-License-Identifier: GPL-2.0-only
/* Waiting for file servers: see answers.h. */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
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

/* It changes its own memory only. pvasrun has no other thread yet, so it may use all of libc. */
static void look(const void *about)
{
	struct answers *answers = *(struct answers *const *)about;
	struct options opt = *answers->opt;
	unsigned int i;

	while (open("/dev/null", O_RDWR | O_CLOEXEC) == STDOUT_FILENO)
		;
	report_keep(answers->said);
	answers->status = precheck_programs(&opt);
	if (!answers->status)
		answers->status = precheck_mpi(&opt);
	for (i = 0; !answers->status && i < opt.nr_apps; i++)
		tell(&opt.apps[i], &answers->of[i]);
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

static int no_answer(const struct options *opt)
{
	if (opt->timeout_at && now_ms() >= opt->timeout_at) {
		report_error("--timeout %s: the time is over, and a program's file server has not answered",
			     opt->timeout_text);
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
	return known ? take_all(opt, answers) : no_answer(opt);
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
