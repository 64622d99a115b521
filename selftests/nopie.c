// SPDX-License-Identifier: GPL-2.0-only
/* Not position-independent: must never run, neither in a space nor, armed, outside of one. */
int main(void)
{
	return 42;
}
