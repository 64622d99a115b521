! SPDX-License-Identifier: GPL-2.0-only
! Fortran over MPI: a Jacobi iteration on a row of cells, cut among the ranks,
! whose limit is known: a straight line from 0 to 1.
program fortran
	use mpi
	implicit none
	integer, parameter :: cells = 8, sweeps = 4000
	double precision, allocatable :: u(:), v(:)
	double precision :: worst, error
	integer :: rank, ranks, left, right, i, n, ierr

	call MPI_Init(ierr)
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
	call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
	allocate(u(0:cells + 1), v(0:cells + 1))
	left = rank - 1
	right = rank + 1
	if (left < 0) left = MPI_PROC_NULL
	if (right == ranks) right = MPI_PROC_NULL
	! near the line already: far from it the number of sweeps would grow with ranks
	n = ranks * cells
	do i = 0, cells + 1
		u(i) = dble(rank * cells + i) / (n + 1) + 0.01d0 * mod(i, 2)
	end do
	if (rank == 0) u(0) = 0
	if (rank == ranks - 1) u(cells + 1) = 1

	do i = 1, sweeps / n
		call MPI_Sendrecv(u(cells), 1, MPI_DOUBLE_PRECISION, right, 0, u(0), 1, &
			MPI_DOUBLE_PRECISION, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
		call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(cells + 1), 1, &
			MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
		v = u
		v(1:cells) = 0.25d0 * (u(0:cells - 1) + 2 * u(1:cells) + u(2:cells + 1))
		u = v
	end do

	error = 0
	do i = 1, cells
		error = max(error, abs(u(i) - dble(rank * cells + i) / (n + 1)))
	end do
	call MPI_Allreduce(error, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
	if (rank == 0) print '(a, i0, a, es8.1)', 'a line by ', ranks, ' ranks, worst error ', worst
	call MPI_Finalize(ierr)
	! The odd cells' 0.01 evens out to 0.005 at first, and then flows off at both ends.
	if (worst > 0.006d0) stop 1
end program fortran
