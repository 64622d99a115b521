// SPDX-License-Identifier: GPL-2.0-only
/*
 * C++ over MPI: vectors go round the ranks and are sorted, and an exception
 * is thrown and caught in each, while the others do the same.
 */
#include <mpi.h>
#include <algorithm>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

static int unwound(int depth, int rank)
{
	std::string name = "rank " + std::to_string(rank);

	if (!depth)
		throw std::runtime_error(name);
	return unwound(depth - 1, rank) + static_cast<int>(name.size());
}

static bool throws(int rank)
{
	try {
		unwound(50, rank);
	} catch (const std::exception &e) {
		return e.what() == "rank " + std::to_string(rank);
	}
	return false;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int rank, size;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);

	std::vector<int> mine(10000), all(mine.size() * size);
	for (std::size_t i = 0; i < mine.size(); i++)
		mine[i] = static_cast<int>((mine.size() - 1 - i) * size + rank);
	MPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_INT, all.data(),
		      static_cast<int>(mine.size()), MPI_INT, MPI_COMM_WORLD);
	std::sort(all.begin(), all.end());
	std::vector<int> wanted(all.size());
	std::iota(wanted.begin(), wanted.end(), 0);

	int bad = all != wanted || !throws(rank), sum;
	MPI_Allreduce(&bad, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		std::cout << all.size() << " numbers of " << size << " ranks, " << sum << " bad" << std::endl;
	MPI_Finalize();
	return sum != 0;
}
