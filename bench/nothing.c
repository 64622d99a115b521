// SPDX-License-Identifier: GPL-2.0-only
/* A program that ends at once, linked statically: its start reads no other file. */
int main(void)
{
	return 0;
}
