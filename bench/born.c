// SPDX-License-Identifier: GPL-2.0-only
/* Store the time when main() was reached. usage: born FILE */
#include "stamp.h"

int main(int argc, char **argv)
{
	return argc == 2 ? stamp(argv[1]) : 2;
}
