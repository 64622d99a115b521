// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of pvasrun. */
#include "unit.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static unsigned int passed, failed;

void check_(bool good, const char *file, int line, const char *what)
{
	if (good) {
		passed++;
		return;
	}
	failed++;
	printf("FAIL %s:%d: %s\n", file, line, what);
}

void check_text_(const char *got, const char *wanted, const char *file, int line,
		 const char *what)
{
	bool same = got && !strcmp(got, wanted);

	check_(same, file, line, what);
	if (!same)
		printf("\tgot:    %s\n\twanted: %s\n", got ? got : "(null)", wanted);
}

unsigned int check_failures(void)
{
	return failed;
}

int connect_to(int port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

int main(void)
{
	test_parse();
	test_options();
	test_tagger();
	test_bind();
	test_peer_uid();
	test_locality();
	test_env();
	test_elf_needed();
	test_precheck();
	test_job_secret();
	test_orphans();
	test_jobkey();
	test_trusted();
	test_remove_tree();
	test_pmi1();
	test_late_close();
	test_handshake();
	test_pmix_proxy();
	test_python();
	test_ask();
	test_job();
	test_writer();
	test_reader();
	test_relay();
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
