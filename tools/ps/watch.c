// SPDX-License-Identifier: GPL-2.0-only
/*
 * The live view: sums of each space first, then a scrollable list of tasks, sorted by
 * processor use or otherwise.
 *
 * The terminal is restored in all cases: signals that end a program are read from a
 * signalfd, and raised again after that.
 */
#include "ps.h"

#include <errno.h>
#include <math.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define MEMORY_SHARE	20	/* measuring takes at most 1/MEMORY_SHARE of the time */

enum order { BY_CPU, BY_MEMORY, BY_TIME, BY_INDEX, NR_ORDERS };

static const char *const order_names[NR_ORDERS] = {
	[BY_CPU] = "processor", [BY_MEMORY] = "memory", [BY_TIME] = "processor time",
	[BY_INDEX] = "index",
};

/* A task on the screen. */
struct row {
	const struct ps_space *space;
	const struct ps_task *task;
};

/**
 * struct view - the state of the live view
 * @choice:	which spaces
 * @interval_ms: time between snapshots
 * @signals:	signalfd of the signals that end pvasps
 * @order:	how tasks are sorted
 * @top:	the first task on the screen
 * @page:	number of tasks on the screen
 * @now:	the snapshot that is shown
 * @taken:	when it was taken, in ms
 * @measure_at:	when memory may be measured again
 * @rows:	all tasks, sorted
 * @nr_rows:	how many
 */
struct view {
	struct ps_choice choice;
	int64_t interval_ms;
	int signals;
	enum order order;
	uint32_t top;
	uint32_t page;
	struct ps_snapshot now;
	int64_t taken;
	int64_t measure_at;
	struct row *rows;
	uint32_t nr_rows;
};

/* ---- snapshots ---- */

static const struct ps_task *same_task(const struct ps_snapshot *s, const struct ps_space *space,
				       const struct ps_task *task)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++) {
		const struct ps_task *old = NULL;

		if (s->spaces[i].id == space->id)
			old = ps_task_at(&s->spaces[i], task->index);
		if (old && old->pid == task->pid && old->born == task->born)
			return old;
	}
	return NULL;
}

static void rate(struct ps_snapshot *now, const struct ps_snapshot *before, int64_t ms)
{
	uint32_t i, j;

	for (i = 0; i < now->nr; i++) {
		struct ps_space *space = &now->spaces[i];

		for (j = 0; space->tasks && j < space->nr_tasks; j++) {
			struct ps_task *task = &space->tasks[j];
			const struct ps_task *old = same_task(before, space, task);

			if (old && ms > 0 && task->cpu_ms > old->cpu_ms)
				task->cpu_percent = 100.0 * (task->cpu_ms - old->cpu_ms) / ms;
		}
	}
}

/* Measuring delays mmap() in the tasks, so it is limited to a share of the time. */
static void take_snapshot(struct view *v)
{
	struct ps_snapshot before = v->now;
	struct ps_choice choice = v->choice;
	int64_t start = now_ms(), old = v->taken;

	choice.memory &= start >= v->measure_at;
	ps_snapshot_take(&v->now, &choice);
	v->taken = now_ms();
	if (choice.memory)
		v->measure_at = v->taken + (v->taken - start) * (MEMORY_SHARE - 1);
	else
		ps_snapshot_reuse(&v->now, &before);
	rate(&v->now, &before, v->taken - old);
	ps_snapshot_free(&before);
}

/* ---- sorting ---- */

static int compare(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;
	double d = 0;

	switch (*(enum order *)arg) {
	case BY_CPU:
		d = y->task->cpu_percent - x->task->cpu_percent;
		break;
	case BY_MEMORY:
		d = (double)y->task->mem.rss_kib - x->task->mem.rss_kib;
		break;
	case BY_TIME:
		d = (double)y->task->cpu_ms - x->task->cpu_ms;
		break;
	default:
		break;
	}
	if (d == 0)
		d = x->space != y->space ? (x->space < y->space ? -1 : 1)
					 : (double)x->task->index - y->task->index;
	return d < 0 ? -1 : d > 0;
}

static void sort(struct view *v)
{
	uint32_t i, j;

	free(v->rows);
	v->rows = NULL;
	v->nr_rows = 0;
	for (i = 0; i < v->now.nr; i++) {
		const struct ps_space *space = &v->now.spaces[i];

		for (j = 0; space->tasks && j < space->nr_tasks; j++) {
			v->rows = ps_grow(v->rows, v->nr_rows, sizeof(*v->rows));
			v->rows[v->nr_rows++] = (struct row){ space, &space->tasks[j] };
		}
	}
	if (v->nr_rows)
		qsort_r(v->rows, v->nr_rows, sizeof(*v->rows), compare, &v->order);
}

/* ---- drawing ---- */

/* Cut at the width of the terminal, or the text would continue in the next line */
__attribute__((format(printf, 2, 3)))
static void put_line(int line, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	mvaddnstr(line, 0, text, COLS);
}

static void draw_title(const struct view *v)
{
	uint32_t unread = v->now.hidden + v->now.slow;
	time_t t = time(NULL);
	char clock[16], hidden[64] = "";

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&t));
	if (unread)
		snprintf(hidden, sizeof(hidden), ", %u more process%s can't be read",
			 unread, unread == 1 ? "" : "es");
	put_line(0, "%s  %u space%s, %u task%s by %s%s", clock, v->now.nr,
		 v->now.nr == 1 ? "" : "s", v->nr_rows, v->nr_rows == 1 ? "" : "s",
		 order_names[v->order], hidden);
}

static void draw_space(int line, const struct ps_space *space)
{
	char rss[24], huge[24], tables[24], far[160] = "";
	double percent = 0;
	uint32_t i;

	if (space->far.ram)
		ps_far_text(space, far);
	for (i = 0; space->tasks && i < space->nr_tasks; i++)
		percent += space->tasks[i].cpu_percent;
	put_line(line, "space %u (%s, uid %u): %u tasks, CPU %.0f%%, resident %s, huge %s, page tables %s, maps %lu%s%s",
		 space->id, space->user ? "user" : "kernel", space->uid, space->nr_tasks, percent,
		 ps_size_text(space->rss_kib, rss),
		 space->measured ? ps_size_text(ps_huge_kib(space), huge) : "-",
		 ps_size_text(space->tables_kib, tables), space->maps, *far ? ", " : "",
		 far);
}

/* At most a third of the lines are for sums of spaces. Returns the next line. */
static int draw_spaces(const struct view *v)
{
	uint32_t most = LINES > 12 ? LINES / 3 : 3;
	uint32_t i, shown = v->now.nr <= most ? v->now.nr : most - 1;

	for (i = 0; i < shown; i++)
		draw_space(1 + i, &v->now.spaces[i]);
	if (!v->now.nr)
		put_line(1, "no spaces");
	else if (shown < v->now.nr)
		put_line(1 + shown, "and %u spaces more (--space chooses one)",
			 v->now.nr - shown);
	return 1 + shown + (shown < v->now.nr || !v->now.nr);
}

static void draw_task(int line, const struct row *r)
{
	char rss[24] = "-", huge[24] = "-", cpu[24], name[64];
	const struct ps_task *t = r->task;

	if (r->space->measured) {
		ps_size_text(t->mem.rss_kib, rss);
		ps_size_text(t->mem.huge_kib, huge);
	}
	put_line(line, "%10u %5u %8d %-8s %5.1f %9s %7s %7s %5lu %4u  %s", r->space->id, t->index,
		 t->pid, t->state, t->cpu_percent, ps_cpu_text(t->cpu_ms, cpu), rss, huge,
		 t->mem.maps, t->threads, ps_name_text(t->name, name));
}

static void draw_tasks(struct view *v, int line)
{
	uint32_t i, room = LINES - line > 2 ? LINES - line - 2 : 0;

	attron(A_REVERSE);
	put_line(line, "%-*s", COLS, "     SPACE INDEX      PID STATE     CPU%      TIME     RES    HUGE  MAPS  THR  COMMAND");
	attroff(A_REVERSE);
	v->page = room;
	if (v->top + room > v->nr_rows)
		v->top = v->nr_rows > room ? v->nr_rows - room : 0;
	for (i = 0; i < room && v->top + i < v->nr_rows; i++)
		draw_task(line + 1 + i, &v->rows[v->top + i]);
	put_line(LINES - 1, "tasks %u-%u of %u   q: quit, s: sort, arrows and pages: scroll",
		 v->nr_rows && room ? v->top + 1 : 0, v->top + i, v->nr_rows);
}

static void draw(struct view *v)
{
	erase();
	draw_title(v);
	draw_tasks(v, draw_spaces(v));
	refresh();
}

/* ---- keys and signals ---- */

static void scroll_by(struct view *v, int64_t by)
{
	int64_t top = v->top + by;

	v->top = top < 0 ? 0 : top;	/* draw_tasks() checks the other end */
}

/* False: quit. */
static bool take_key(struct view *v, int key)
{
	switch (key) {
	case 'q':
		return false;
	case 's':
		v->order = (v->order + 1) % NR_ORDERS;
		break;
	case KEY_UP: case 'k':
		scroll_by(v, -1);
		break;
	case KEY_DOWN: case 'j':
		scroll_by(v, 1);
		break;
	case KEY_PPAGE:
		scroll_by(v, -(int64_t)v->page);
		break;
	case KEY_NPAGE: case ' ':
		scroll_by(v, v->page);
		break;
	case KEY_HOME:
		v->top = 0;
		break;
	case KEY_END:
		v->top = v->nr_rows;
		break;
	}
	return true;
}

/* Wait for the next snapshot. Returns 0, the number of a signal, or -1: quit. */
static int wait_for(struct view *v, int64_t until)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN }, { .fd = v->signals, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	int64_t left;
	int key;

	while ((left = until - now_ms()) > 0) {
		/* SIGWINCH and SIGCONT interrupt it: draw again */
		if (poll(fds, 2, left > INT32_MAX ? INT32_MAX : left) < 0 && errno != EINTR)
			return -1;
		if ((fds[1].revents & POLLIN) && read(v->signals, &info, sizeof(info)) > 0)
			return info.ssi_signo;
		while ((key = getch()) != ERR)
			if (!take_key(v, key))
				return -1;
		if (fds[0].revents & (POLLHUP | POLLERR))
			return -1;
		fds[0].revents = fds[1].revents = 0;
		sort(v);
		draw(v);
	}
	return 0;
}

static int run(struct view *v)
{
	int end;

	do {
		take_snapshot(v);
		sort(v);
		draw(v);
		end = wait_for(v, v->taken + v->interval_ms);
	} while (!end);
	return end;
}

static void end_by(int signo, const sigset_t *old)
{
	signal(signo, SIG_DFL);
	raise(signo);
	sigprocmask(SIG_SETMASK, old, NULL);	/* the signal is delivered here */
}

int ps_watch(const struct ps_choice *choice, int64_t interval_ms)
{
	struct view v = { .choice = *choice, .interval_ms = interval_ms };
	sigset_t ends, old;
	SCREEN *screen;
	int end;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGQUIT);
	sigprocmask(SIG_BLOCK, &ends, &old);
	v.signals = signalfd(-1, &ends, SFD_CLOEXEC);
	if (v.signals < 0)
		return ps_fail("cannot watch for signals: %s", strerror(errno));
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return ps_fail("cannot use this terminal: TERM is '%s' (try: pvasps --watch | cat)",
			       getenv("TERM") ?: "");
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	end = run(&v);
	endwin();
	delscreen(screen);
	close(v.signals);
	ps_snapshot_free(&v.now);
	free(v.rows);
	if (end > 0)
		end_by(end, &old);
	return 0;
}
