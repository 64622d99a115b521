/* SPDX-License-Identifier: GPL-2.0-only */
/* A minimal test harness that counts checks. */
#ifndef PVASRUN_UNIT_H
#define PVASRUN_UNIT_H

#include <stdbool.h>
#include <stdint.h>

void check_(bool good, const char *file, int line, const char *what);
void check_text_(const char *got, const char *wanted, const char *file, int line,
		 const char *what);

/* For the exit status of a child process */
unsigned int check_failures(void);

/* All clocks are ahead by so much more. */
void clock_later(int64_t ms);

/* A connection to that port of 127.0.0.1 */
int connect_to(int port);

#define check(condition) check_(condition, __FILE__, __LINE__, #condition)
/* @what: the name of a case in a table */
#define check_case(condition, what) check_(condition, __FILE__, __LINE__, what)
#define check_text(got, wanted, what) check_text_(got, wanted, __FILE__, __LINE__, what)

void test_parse(void);
void test_options(void);
void test_tagger(void);
void test_bind(void);
void test_peer_uid(void);
void test_locality(void);
void test_env(void);
void test_elf_needed(void);
void test_precheck(void);
void test_job_secret(void);
void test_orphans(void);
void test_jobkey(void);
void test_trusted(void);
void test_remove_tree(void);
void test_pmi1(void);
void test_late_close(void);
void test_handshake(void);
void test_pmix_proxy(void);
void test_python(void);
void test_ask(void);
void test_job(void);
void test_writer(void);
void test_reader(void);
void test_relay(void);

#endif
