// SPDX-License-Identifier: GPL-2.0-only
/* A library that knows one thing, in a variable of the thread's. */
static __thread int value = ANSWER;

int answer(void)
{
	return value;
}
