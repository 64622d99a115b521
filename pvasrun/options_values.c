// SPDX-License-Identifier: GPL-2.0-only
/* The options of the command line: each one's value. */
#include "options_values.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/pvas.h>

#include "../libpvas/pvas.h"
#include "clock.h"
#include "parse.h"

int options_refuse(struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->why, p->len, format, args);
	va_end(args);
	return -EINVAL;
}

int options_refuse_memory(struct parser *p)
{
	options_refuse(p, "out of memory");
	return -ENOMEM;
}

static int take_tasks(struct parser *p, const char *text)
{
	int err = parse_count(text, 1, PVAS_MAX_TASKS, &p->app->tasks);

	if (err)
		return options_refuse(p, "-n '%s': not a number of tasks (1 to %d)", text, PVAS_MAX_TASKS);
	return 0;
}

static int take_export(struct parser *p, const char *text)
{
	struct app *app = p->app;
	const char **more;

	if (!text[0] || text[0] == '=')
		return options_refuse(p, "-x '%s': no variable's name (-x VAR or -x VAR=VALUE)", text);
	if (!strncmp(text, "PVAS_", 5))
		return options_refuse(p, "-x '%s': names that begin PVAS_ are pvasrun's own", text);
	more = reallocarray(app->exports, app->nr_exports + 1, sizeof(*more));
	if (!more)
		return options_refuse_memory(p);
	app->exports = more;
	app->exports[app->nr_exports++] = text;
	return 0;
}

static int take_stdin(struct parser *p, const char *text)
{
	static const char *const names[] = { [STDIN_ALL] = "all", [STDIN_NONE] = "none", NULL };
	int choice = parse_choice(text, names);

	p->opt->stdin_to = choice;
	if (choice >= 0)
		return 0;
	p->opt->stdin_to = STDIN_RANK;
	if (parse_count(text, 0, PVAS_MAX_TASKS - 1, &p->opt->stdin_rank))
		return options_refuse(p, "--stdin '%s': unknown (a rank, all or none)", text);
	return 0;
}

static int take_timeout(struct parser *p, const char *text)
{
	p->opt->timeout_text = text;
	if (parse_seconds(text, &p->opt->timeout_ms))
		return options_refuse(p, "--timeout '%s': not a time (seconds, or 5m, 2h, 1d)", text);
	p->opt->timeout_at = p->opt->timeout_ms ? now_ms() + p->opt->timeout_ms : 0;
	return 0;
}

static int take_partition_size(struct parser *p, const char *text)
{
	uint64_t size;

	if (parse_size(text, &size) || size < 1ULL << PVAS_SHIFT_MIN ||
	    size > 1ULL << PVAS_SHIFT_MAX || (size & (size - 1)))
		return options_refuse(p, "--partition-size '%s': not a power of two from 4G to 8T", text);
	p->opt->partition_size = size;
	return 0;
}

static int take_bind_to(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[BIND_CORE] = "core", [BIND_NUMA] = "numa", [BIND_NONE] = "none", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return options_refuse(p, "--bind-to '%s': unknown (core, numa or none)", text);
	p->opt->bind_to = choice;
	return 0;
}

static int take_mem_bind(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[MEM_LOCAL] = "local", [MEM_INTERLEAVE] = "interleave", [MEM_NONE] = "none", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return options_refuse(p, "--mem-bind '%s': unknown (local, interleave or none)", text);
	p->opt->mem_bind = choice;
	return 0;
}

static int take_backend(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[PVAS_BACKEND_AUTO] = "auto", [PVAS_BACKEND_KERNEL] = "kernel",
		[PVAS_BACKEND_USER] = "user", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return options_refuse(p, "--backend '%s': unknown (auto, kernel or user)", text);
	p->opt->backend = choice;
	return 0;
}

static int take_mpi(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[MPI_AUTO] = "auto", [MPI_PMIX] = "pmix", [MPI_PMI1] = "pmi1", [MPI_NONE] = "none",
		NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return options_refuse(p, "--mpi '%s': unknown (auto, pmix, pmi1 or none)", text);
	p->opt->mpi = choice;
	return 0;
}

static int take_orphans(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[ORPHANS_WARN] = "warn", [ORPHANS_WAIT] = "wait", [ORPHANS_KILL] = "kill", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return options_refuse(p, "--orphans '%s': unknown (warn, wait or kill)", text);
	p->opt->orphans = choice;
	return 0;
}

static int take_pty(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[PTY_AUTO] = "auto", [PTY_ALWAYS] = "always", [PTY_NEVER] = "never", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return options_refuse(p, "--pty '%s': unknown (auto, always or never)", text);
	p->opt->pty = choice;
	return 0;
}

static int take_pretend(struct parser *p, const char *text)
{
	struct pretence *to = &p->opt->pretend;
	char words[64], *nodes = words, *per_node, *full;

	snprintf(words, sizeof(words), "%s", text);
	full = strchr(words, ',');
	if (full)
		*full++ = '\0';
	per_node = strchr(words, ':');
	if (per_node)
		*per_node++ = '\0';
	*to = (struct pretence){ .full = full };
	if (strlen(text) >= sizeof(words) || (full && strcmp(full, "full")) ||
	    parse_count(nodes, 1, MAX_RANKS, &to->nodes) ||
	    (per_node && parse_count(per_node, 1, PVAS_MAX_TASKS, &to->per_node)))
		return options_refuse(p, "--pretend '%s': not NODES[:PPN][,full] (1 to %u nodes, 1 to %d tasks)",
			      text, MAX_RANKS, PVAS_MAX_TASKS);
	return 0;
}

static int take_far(struct parser *p, int key, const char *text)
{
	const char *wrong = options_take_far(&p->opt->far, key, text);

	return wrong ? options_refuse(p, "%s (not '%s')", wrong, text) : 0;
}

int options_take_value(struct parser *p, int key, const char *text)
{
	if (key >= KEY_RAM)
		return take_far(p, key, text);
	switch (key) {
	case 'n':
		return take_tasks(p, text);
	case 'x':
		return take_export(p, text);
	case KEY_WDIR:
		p->app->wdir = text;
		return 0;
	case KEY_BIND_TO:
		return take_bind_to(p, text);
	case KEY_MEM_BIND:
		return take_mem_bind(p, text);
	case KEY_STDIN:
		return take_stdin(p, text);
	case KEY_TIMEOUT:
		return take_timeout(p, text);
	case KEY_PARTITION_SIZE:
		return take_partition_size(p, text);
	case KEY_PRETEND:
		return take_pretend(p, text);
	case KEY_PTY:
		return take_pty(p, text);
	case KEY_ORPHANS:
		return take_orphans(p, text);
	case KEY_MPI:
		return take_mpi(p, text);
	default:
		return take_backend(p, text);
	}
}

void options_take_flag(struct options *opt, int key)
{
	switch (key) {
	case KEY_TAG_OUTPUT:
		opt->tag_output = true;
		break;
	case KEY_NO_KILL:
		opt->no_kill = true;
		break;
	case KEY_NO_PTY:
		opt->pty = PTY_NEVER;
		break;
	case KEY_NO_BTL:
		opt->no_btl = true;
		break;
	case KEY_NO_ASLR:
		opt->no_aslr = true;
		break;
	case KEY_MAP:
		opt->map = true;
		break;
	case 'v':
		opt->verbose = true;
		break;
	case 'q':
		opt->quiet = true;
		break;
	case KEY_CHECK:
		opt->action = ACTION_CHECK;
		break;
	case KEY_CHECK_RUN:
		opt->action = ACTION_CHECK_RUN;
		break;
	case 'h':
		opt->action = ACTION_HELP;
		break;
	case 'V':
		opt->action = ACTION_VERSION;
		break;
	}
}
