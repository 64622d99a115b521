// SPDX-License-Identifier: LGPL-2.1-or-later
/* Thread-local storage that is so large that it is far */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 3 << 20 };

static __thread char storage[SIZE];

static void *use(void *arg)
{
	size_t i, wrong = 0;

	memset(storage, *(char *)arg, SIZE);
	for (i = 0; i < SIZE; i++)
		wrong += storage[i] != *(char *)arg;
	return wrong ? NULL : arg;
}

int main(void)
{
	char mark[2] = { 7, 8 };
	void *result = NULL;
	pthread_t thread;

	if (!use(mark) || pthread_create(&thread, NULL, use, mark + 1) ||
	    pthread_join(thread, &result) || result != mark + 1 || storage[SIZE - 1] != 7)
		return 1;
	puts("large storage");
	return 0;
}
