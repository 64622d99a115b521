// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that uses only PMIx, to test the server: "pmix TEST", with two ranks. Rank 0
 * asks for data that never arrive, or late, and must get an answer within LONG seconds.
 * It exits with status 3 on failure.
 */
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../pmix/compat.h"

#define LONG 60

static pmix_proc_t me, other;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rank %u: %s\n", me.rank, what);
	_exit(3);
}

static void is(pmix_status_t got, pmix_status_t wanted, const char *what)
{
	if (got == wanted)
		return;
	fprintf(stderr, "rank %u: %s: %s, not %s\n", me.rank, what, PMIx_Error_string(got),
		PMIx_Error_string(wanted));
	_exit(3);
}

static void fence(void)
{
	is(PMIx_Fence(NULL, 0, NULL, 0), PMIX_SUCCESS, "fence");
}

/* Directives: a timeout of a second, and how many values to wait for (-1: don't wait) */
static size_t patience(pmix_info_t *info, int values)
{
	int seconds = 1;

	PMIX_INFO_LOAD(&info[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
	if (values < 0)
		return 1;
	PMIX_INFO_LOAD(&info[1], PMIX_WAIT, &values, PMIX_INT);
	return 2;
}

static void get(void)
{
	pmix_value_t *value = NULL;
	pmix_info_t info[2];

	if (me.rank == 0)
		is(PMIx_Get(&other, "never", info, patience(info, -1), &value), PMIX_ERR_TIMEOUT,
		   "get of what is never put");
	fence();
}

static void publish(const char *key, int value)
{
	pmix_info_t info;

	PMIX_INFO_LOAD(&info, key, &value, PMIX_INT);
	is(PMIx_Publish(&info, 1), PMIX_SUCCESS, "publish");
}

/* Without a time limit */
static void wait_for(const char *key)
{
	pmix_pdata_t data;
	pmix_info_t info;
	int all = 0;

	PMIX_PDATA_CONSTRUCT(&data);
	PMIX_LOAD_KEY(data.key, key);
	PMIX_INFO_LOAD(&info, PMIX_WAIT, &all, PMIX_INT);
	is(PMIx_Lookup(&data, 1, &info, 1), PMIX_SUCCESS, "lookup with no limit");
}

/* Rank 1 does not take part, but still runs: its exit would be another error. */
static void fence_alone(void)
{
	pmix_info_t info[2];

	if (me.rank == 1) {
		wait_for("over");
		return;
	}
	is(PMIx_Fence(NULL, 0, info, patience(info, -1)), PMIX_ERR_TIMEOUT,
	   "fence that the other one does not come to");
	publish("over", 1);
}

static void connect_alone(void)
{
	pmix_proc_t both[2] = { me, other };
	pmix_info_t info[2];

	if (me.rank == 1) {
		wait_for("over");
		return;
	}
	is(PMIx_Connect(both, 2, info, patience(info, -1)), PMIX_ERR_TIMEOUT,
	   "connect that the other one does not come to");
	publish("over", 1);
}

static pmix_status_t look_up(const char *a, const char *b, int values, int *found)
{
	pmix_info_t info[2];
	pmix_pdata_t data[2];
	pmix_status_t rc;

	PMIX_PDATA_CONSTRUCT(&data[0]);
	PMIX_PDATA_CONSTRUCT(&data[1]);
	PMIX_LOAD_KEY(data[0].key, a);
	PMIX_LOAD_KEY(data[1].key, b ? b : "");
	rc = PMIx_Lookup(data, b ? 2 : 1, info, patience(info, values));
	*found = data[0].value.type == PMIX_INT ? data[0].value.data.integer : 0;
	return rc;
}

static void lookup(void)
{
	int found;

	if (me.rank == 0) {
		is(look_up("late", NULL, -1, &found), PMIX_ERR_NOT_FOUND, "lookup, not waiting");
		is(look_up("late", NULL, 0, &found), PMIX_ERR_TIMEOUT, "lookup, waiting");
	}
	fence();
	if (me.rank == 1) {
		usleep(200000);
		publish("late", 7);
	} else {
		is(look_up("late", NULL, 0, &found), PMIX_SUCCESS, "lookup of what comes");
		must(found == 7, "another value than was published");
		is(look_up("late", "never", 0, &found), PMIX_ERR_TIMEOUT, "lookup of both");
		is(look_up("late", "never", 1, &found), PMIX_SUCCESS, "lookup of either");
		must(found == 7, "either is not the one there is");
	}
	fence();
}

/* The locality of each rank, as it and the other one get it */
static void place(void)
{
	pmix_value_t *mine, *others;
	pmix_status_t rc = PMIx_Get(&me, PMIX_LOCALITY_STRING, NULL, 0, &mine);

	if (rc != PMIX_SUCCESS) {
		puts("nowhere");
		return;
	}
	is(PMIx_Get(&other, PMIX_LOCALITY_STRING, NULL, 0, &others), PMIX_SUCCESS, "other's place");
	printf("%s beside %s\n", mine->data.string, others->data.string);
}

static pmix_status_t log_bytes(const char *bytes, size_t len)
{
	pmix_byte_object_t object = { .bytes = (char *)bytes, .size = len };
	pmix_info_t info;

	PMIX_INFO_LOAD(&info, PMIX_LOG_MSG, &object, PMIX_BYTE_OBJECT);
	return PMIx_Log(&info, 1, NULL, 0);
}

/* As Open MPI encodes it: file, topic, a flag, the text; each with a count */
#define TEXT(len, text) "\0\0\0\1\0\0\0" len text "\0"
#define MESSAGE TEXT("\2", "a") TEXT("\2", "b") "\0\0\0\1\1" TEXT("\10", "from b\n")

/* Before 7.0, libpmix itself takes any value of that name for a string, and crashes. */
#define NO_TEXT (PMIX_NUMERIC_VERSION < 0x00070000 ? PMIX_STRING : PMIX_UINT32)

/* As Open MPI 5.0 sends them: a text, its file and topic, and whether it is wanted once */
static void log_topic(const char *text, const char *topic, pmix_data_type_t type, bool once)
{
	pmix_info_t info, how[3];
	uint32_t number = 7;

	PMIX_INFO_LOAD(&info, PMIX_LOG_STDERR, text, PMIX_STRING);
	PMIX_INFO_LOAD(&how[0], PMIX_LOG_AGG, &once, PMIX_BOOL);
	PMIX_INFO_LOAD(&how[1], PMIX_LOG_KEY, "file", PMIX_STRING);
	if (type == PMIX_STRING)
		PMIX_INFO_LOAD(&how[2], PMIX_LOG_VAL, topic, type);
	else
		PMIX_INFO_LOAD(&how[2], PMIX_LOG_VAL, &number, type);
	is(PMIx_Log(&info, 1, how, 3), PMIX_SUCCESS, text);
}

/* The second of a topic is not printed; a topic that is none is like no topic. */
static void log_topics(void)
{
	log_topic("a, once\n", "a", PMIX_STRING, true);
	log_topic("a, twice\n", "a", PMIX_STRING, true);
	log_topic("a, each time\n", "a", PMIX_STRING, false);
	log_topic("b\n", "b", PMIX_STRING, true);
	log_topic("no topic\n", NULL, PMIX_STRING, true);
	log_topic("no topic\n", NULL, PMIX_STRING, true);
	log_topic("a number\n", NULL, NO_TEXT, true);
}

/* Truncated messages, and wrong lengths: the server must not read past the end. */
static void log_texts(void)
{
	static const char whole[] = MESSAGE, liar[] = "\0\0\0\1\377\377\377\377a";
	static const char endless[] = { 0, 0, 0, 1, 0, 0, 0, 1, 'a' };
	pmix_info_t info;
	size_t len;

	if (me.rank == 1)
		return;
	for (len = 0; len < sizeof(whole); len++)
		log_bytes(whole, len);
	log_bytes(liar, sizeof(liar));
	log_bytes(endless, sizeof(endless));
	is(log_bytes(whole, sizeof(whole)), PMIX_SUCCESS, "log");
	is(log_bytes(whole, sizeof(whole)), PMIX_SUCCESS, "log again");
	PMIX_INFO_LOAD(&info, PMIX_LOG_STDERR, "to stderr\n", PMIX_STRING);
	is(PMIx_Log(&info, 1, NULL, 0), PMIX_SUCCESS, "log to stderr");
	PMIX_INFO_LOAD(&info, PMIX_LOG_STDOUT, "to stdout\n", PMIX_STRING);
	is(PMIx_Log(&info, 1, NULL, 0), PMIX_SUCCESS, "log to stdout");
	log_topics();
}

static void nothing(pmix_status_t status, void *data)
{
	(void)status;
	(void)data;
}

static void answered(pmix_status_t status, pmix_pdata_t found[], size_t nr, void *data)
{
	(void)found;
	must(status != PMIX_SUCCESS && !nr, "an empty list is found");
	++*(volatile int *)data;
}

static void no_text(const char *key)
{
	pmix_info_t info;

	PMIX_INFO_LOAD(&info, key, NULL, PMIX_STRING);
	PMIx_Log(&info, 1, NULL, 0);
	strcpy(info.key, "no.text");
	PMIx_Publish(&info, 1);
	PMIX_LOAD_KEY(info.key, key);
}

/* Empty lists and strings: the server answers, and serves on. */
static void empty(void)
{
	char *none[] = { NULL }, *good[] = { "some.name", NULL };
	volatile int answers = 0;
	pmix_pdata_t found;
	pmix_info_t info;

	PMIX_INFO_LOAD(&info, PMIX_WAIT, NULL, PMIX_BOOL);
	PMIx_Lookup_nb(none, NULL, 0, answered, (void *)&answers);
	PMIx_Lookup_nb(none, &info, 1, answered, (void *)&answers);
	while (answers < 2)
		usleep(1000);
	PMIx_Unpublish(none, NULL, 0);
	no_text(PMIX_LOG_STDERR);
	no_text(PMIX_LOG_STDOUT);
	PMIX_INFO_LOAD(&info, good[0], "value", PMIX_STRING);
	is(PMIx_Publish(&info, 1), PMIX_SUCCESS, "publish");
	PMIX_PDATA_CONSTRUCT(&found);
	PMIX_LOAD_KEY(found.key, good[0]);
	is(PMIx_Lookup(&found, 1, NULL, 0), PMIX_SUCCESS, "lookup after all that");
}

/* More than a pipe holds, without waiting until it is written */
static void flood(void)
{
	static char text[1000];
	static pmix_info_t info;
	int i;

	memset(text, 'x', sizeof(text) - 2);
	text[sizeof(text) - 2] = '\n';
	PMIX_INFO_LOAD(&info, PMIX_LOG_STDERR, text, PMIX_STRING);
	for (i = 0; i < 500; i++)
		PMIx_Log_nb(&info, 1, NULL, 0, nothing, NULL);
}

/* ---- more than the server may keep ---- */

#define MIB (1 << 20)
#define MANY 400

static long server_kib(void)
{
	char path[40], line[200];
	long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", getppid());
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

static void must_be_small(void)
{
	long kib = server_kib();

	if (kib > 0 && kib < 800 << 10)
		return;
	fprintf(stderr, "rank %u: the server takes %ld KiB\n", me.rank, kib);
	_exit(3);
}

/* A commit sends all that was put until then: at some time one message is too long. */
static void put(void)
{
	static char text[MIB];
	pmix_value_t value = { .type = PMIX_STRING, .data.string = text };
	pmix_status_t rc = PMIX_SUCCESS;
	char key[32];
	int i;

	memset(text, 'x', sizeof(text) - 1);
	for (i = 0; i < MANY && rc == PMIX_SUCCESS; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		rc = PMIx_Put(PMIX_LOCAL, key, &value);
		if (rc == PMIX_SUCCESS)
			rc = PMIx_Commit();
	}
	must(rc != PMIX_SUCCESS, "the server takes all");
	must_be_small();
	_exit(0);
}

static void notify(void)
{
	static char text[MIB];
	pmix_info_t info;
	int i;

	memset(text, 'x', sizeof(text) - 1);
	PMIX_INFO_LOAD(&info, "x", text, PMIX_STRING);
	for (i = 0; i < MANY; i++)
		PMIx_Notify_event(-2000 - i, &me, PMIX_RANGE_GLOBAL, &info, 1, NULL, NULL);
	must_be_small();
	pause();
}

/* Exits at once, and leaves a process that holds its connection. */
static void leave(void)
{
	printf("%d\n", getpid());
	fflush(stdout);
	if (fork())
		_exit(0);
	sleep(60);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	time_t begun = time(NULL);

	is(PMIx_Init(&me, NULL, 0), PMIX_SUCCESS, "init");
	PMIX_LOAD_PROCID(&other, me.nspace, !me.rank);
	if (!strcmp(what, "get"))
		get();
	else if (!strcmp(what, "fence"))
		fence_alone();
	else if (!strcmp(what, "connect"))
		connect_alone();
	else if (!strcmp(what, "lookup"))
		lookup();
	else if (!strcmp(what, "place"))
		place();
	else if (!strcmp(what, "log"))
		log_texts();
	else if (!strcmp(what, "empty"))
		empty();
	else if (!strcmp(what, "flood"))
		flood();
	else if (!strcmp(what, "put"))
		put();
	else if (!strcmp(what, "notify"))
		notify();
	else if (!strcmp(what, "leave"))
		leave();
	else
		must(0, "what?");
	must(time(NULL) - begun < LONG, "it took too long");
	PMIx_Finalize(NULL, 0);
	if (me.rank == 0)
		printf("pmix %s: good\n", what);
	return 0;
}
