// SPDX-License-Identifier: GPL-2.0-only
/* Which programs and scripts are run by the system's Python? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../libpvas/pvas.h"
#include "../python.h"
#include "unit.h"

static char path[] = "/tmp/pvas-unit-XXXXXX";
static char *const arguments[] = { "typed", "a b", "", NULL };

/* As python_host_find(), with its arguments as one text: "word|word" */
static int find(const char *script, size_t len, char words[static 512])
{
	struct python_host host;
	char why[256] = "";
	int fd = mkstemp(path), ret, i;

	check(write(fd, script, len) == (ssize_t)len);
	close(fd);
	ret = python_host_find(path, arguments, &host, why, sizeof(why));
	unlink(path);
	words[0] = '\0';
	if (ret > 0) {
		for (i = 0; host.argv[i]; i++)
			strcat(strcat(words, i ? "|" : ""),
			       strcmp(host.argv[i], path) ? host.argv[i] : "@");
		free(host.argv);
	}
	check(ret != -ENOEXEC || strstr(why, "python3-pvas"));
	strcpy(strrchr(path, '-'), "-XXXXXX");
	return ret;
}

static void test_others(void)
{
	static const char *const scripts[] = {
		"", "#", "#!", "#!\n", "#! \t\n", "#!/usr/bin/env", "#!/usr/bin/env \n",
		"#!/usr/bin/env -S", "#!/usr/bin/env -S  \t\n", "#!/usr/bin/env -S 'python3'\n",
		"#!/usr/bin/env -i python3\n", "#!/usr/bin/env -S a b c d e f g h i j\n",
		"#!/bin/sh\n", "#!/bin/sh /usr/bin/python3\n", "#!/no/such/env python3\n",
		"#!python3x\n", "\x7f" "ELF", "#!/usr/bin/python3/\n", "#!/usr/bin/../bin\n",
	};
	char words[512], line[300];
	size_t i;

	for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		check_case(!find(scripts[i], strlen(scripts[i]), words), scripts[i]);
	memset(line, 'x', sizeof(line));
	memcpy(line, "#!/usr/bin/env -S ", 18);
	check(!find(line, sizeof(line), words));
	memset(line, ' ', sizeof(line));
	memcpy(line, "#!", 2);
	check(!find(line, sizeof(line), words));
	check(!python_host_find("/no/such/file", arguments, NULL, words, sizeof(words)));
	check(!python_host_find("/", arguments, NULL, words, sizeof(words)));
}

/* The host's name beside this program; empty if the system's Python can be a task itself */
static void host_name(char name[static PATH_MAX])
{
	char real[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", name, PATH_MAX - 64);

	check(len > 0);
	name[len > 0 ? len : 0] = '\0';
	if (!realpath("/usr/bin/python3", real) || !strstr(real, "/python3.") ||
	    pvas_program_check(real, NULL, 0) != -ENOEXEC)
		name[0] = '\0';
	else
		strcat(strcpy(strrchr(name, '/'), "/pvas-"), strrchr(real, '/') + 1);
}

static void test_words(bool hosted)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "#!/usr/bin/python3\n", "/usr/bin/python3|@|a b|" },
		{ "#! /usr/bin/python3\t-u -x \n", "/usr/bin/python3|-u -x|@|a b|" },
		{ "#!/usr/bin/env python3\nx", "python3|@|a b|" },
		{ "#!/usr/bin/env -S python3 -W  ignore", "python3|-W|ignore|@|a b|" },
		{ "#!/usr/bin/env -Spython3 -u\n", "python3|-u|@|a b|" },
	};
	char words[512];
	size_t i;
	int ret;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ret = find(cases[i].line, strlen(cases[i].line), words);
		check_case(ret == (hosted ? 1 : 0), cases[i].line);
		check_text(words, hosted ? cases[i].words : "", cases[i].line);
	}
}

/* With a host that is there, and one that isn't */
static void test_system(void)
{
	const char *old = getenv("PATH");
	char host[PATH_MAX], words[512], *saved = strdup(old ? old : "");

	setenv("PATH", "/usr/bin:/bin", 1);
	host_name(host);
	if (host[0]) {
		unlink(host);
		check(find("#!/usr/bin/python3\n", 19, words) == -ENOEXEC);
		check(!symlink("/bin/true", host));
	}
	test_words(host[0]);
	unlink(host);
	setenv("PATH", saved, 1);
	free(saved);
}

void test_python(void)
{
	test_others();
	test_system();
}
