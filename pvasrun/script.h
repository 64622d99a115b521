/* SPDX-License-Identifier: GPL-2.0-only */
/* The first line of a script, as the kernel reads it. */
#ifndef PVASRUN_SCRIPT_H
#define PVASRUN_SCRIPT_H

#define SCRIPT_HEAD	256	/* the kernel reads no more of a #! line */
#define SCRIPT_WORDS	8	/* room for the interpreter, and for what is made of its argument */

/* The words that go before the script's path */
struct script_words {
	char line[SCRIPT_HEAD + 1];
	char *word[SCRIPT_WORDS + 1];
	unsigned int nr;
};

/* The interpreter and at most one argument; none if @path is no script. Returns 0 or -errno. */
int script_read(const char *path, struct script_words *w);

#endif
