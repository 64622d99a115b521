// SPDX-License-Identifier: GPL-2.0-only
/* Figures with logarithmic axes, drawn by gnuplot, which reads commands and points from a pipe. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* gnuplot's name for the format, by the file's suffix */
static const char *terminal(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot && !strcmp(dot, ".svg"))
		return "svg size 1000,500 background 'white'";
	if (dot && !strcmp(dot, ".png"))
		return "png size 1000,500";
	return NULL;
}

/* gnuplot doubles the quote within single quotes; a name with a newline can't be given. */
static void put_path(FILE *out, const char *path)
{
	for (; *path; path++) {
		if (*path == '\'')
			fputc('\'', out);
		fputc(*path, out);
	}
}

int plot_begin(const char *path, const char *title, const char *x, const char *y, FILE **out)
{
	int fd;

	if (!terminal(path) || strchr(path, '\n'))
		return fail_usage("--plot '%s': not a name that ends in .svg or .png", path);
	/* gnuplot's own message would be many lines. */
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail("%s: %s", path, strerror(errno));
	close(fd);
	*out = popen("exec gnuplot 2>/dev/null", "we");
	if (!*out)
		return fail("gnuplot: %s", strerror(errno));
	fprintf(*out, "set terminal %s\nset output '", terminal(path));
	put_path(*out, path);
	fprintf(*out, "'\nset title \"%s\"\nset xlabel '%s'\nset ylabel '%s'\n", title, x, y);
	fprintf(*out, "set logscale x 2\nset logscale y\nset grid\nset key outside right top\n");
	fprintf(*out, "set format x '%%.0f'\nset format y '%%.0s %%cB'\n");
	return 0;
}

int plot_end(FILE *out, const char *path)
{
	struct stat drawn;
	int status = pclose(out);

	if (status || stat(path, &drawn) || !drawn.st_size)
		return fail("%s: gnuplot did not draw it (is gnuplot installed?)", path);
	return 0;
}
