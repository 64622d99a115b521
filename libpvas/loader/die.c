// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The loader's error message. It runs after the point of no return, when execve() can
 * no longer return an error: so it prints one line and exits.
 */
#include "die.h"

#include <errno.h>
#include "../rawsys.h"

/* Without pointers, because the blob has no relocations. */
static const struct {
	int err;
	char text[36];
} reasons[] = {
	{ EPERM,	"operation not permitted" },
	{ ENOENT,	"not found" },
	{ EIO,		"input/output error" },
	{ ENOEXEC,	"malformed ELF file" },
	{ EAGAIN,	"memory locking limit" },
	{ ENOMEM,	"no memory or room in the partition" },
	{ EACCES,	"permission denied" },
	{ EEXIST,	"addresses already in use" },
	{ ENODEV,	"the file system can't map files" },
	{ ENOTDIR,	"not a directory" },
	{ EINVAL,	"invalid argument" },
	{ ENFILE,	"too many open files in the system" },
	{ EMFILE,	"too many open files" },
	{ ETXTBSY,	"being written" },
	{ ENAMETOOLONG,	"name too long" },
	{ ETIMEDOUT,	"its creator was killed" },
	{ ELOOP,	"too many symbolic links" },
	{ ELIBBAD,	"malformed ELF interpreter" },
};

struct line {
	unsigned int len;
	char text[1024];
};

static void add(struct line *l, const char *s)
{
	while (*s && l->len < sizeof(l->text) - 1)
		l->text[l->len++] = *s++;
}

static void add_number(struct line *l, unsigned int n)
{
	char digits[12];
	int i = sizeof(digits);

	digits[--i] = 0;
	do {
		digits[--i] = '0' + n % 10;
		n /= 10;
	} while (n);
	add(l, digits + i);
}

static void add_reason(struct line *l, int err)
{
	unsigned int i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].err == -err) {
			add(l, reasons[i].text);
			return;
		}
	}
	add(l, "error ");
	add_number(l, -err);
}

void pvas_die(const char *program, const char *what, const char *name, int err)
{
	struct line l;

	/* One write, so that the lines of many tasks do not mix. */
	l.len = 0;
	add(&l, "pvas: ");
	add(&l, program);
	add(&l, ": ");
	add(&l, what);
	if (name) {
		add(&l, " ");
		add(&l, name);
	}
	add(&l, ": ");
	add_reason(&l, err);
	l.text[l.len++] = '\n';
	pvas_raw3(__NR_write, 2, l.text, l.len);
	for (;;)
		pvas_raw1(__NR_exit_group, err == -ENOENT ? 127 : 126);
}
