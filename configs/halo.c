/* Jacobi's method on a square with halos: an MPI program for `hopforge app run --program` (docs/guides/applications.md).

   smpicc -O2 -o build/halo configs/halo.c
   hopforge app run --program build/halo -n 64 configs/app_mg_torus.yml 256 20

   Arguments: points of an edge of each rank's square (default 128), iterations (default 10). Ranks form a torus, as
   square as their number allows. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { NORTH, SOUTH, WEST, EAST };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int n = argc > 1 ? atoi(argv[1]) : 128, iterations = argc > 2 ? atoi(argv[2]) : 10;
    if (n < 1 || iterations < 0) {
        if (rank == 0)
            fprintf(stderr, "halo: needs at least 1 point and 0 iterations\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rows = 1;
    for (int i = 1; i * i <= ranks; i++)
        if (ranks % i == 0)
            rows = i;
    int columns = ranks / rows, row = rank / columns, column = rank % columns;
    int near[4] = {
        [NORTH] = (row + rows - 1) % rows * columns + column,
        [SOUTH] = (row + 1) % rows * columns + column,
        [WEST] = row * columns + (column + columns - 1) % columns,
        [EAST] = row * columns + (column + 1) % columns,
    };

    int wide = n + 2;
    double *now = calloc((size_t)wide * wide, sizeof *now), *next = calloc((size_t)wide * wide, sizeof *next);
    double *sent = malloc(4 * n * sizeof *sent), *got = malloc(4 * n * sizeof *got);
    for (int y = 1; y <= n; y++)
        for (int x = 1; x <= n; x++)
            now[y * wide + x] = rank % 7;

    double change = 0;
    for (int step = 0; step < iterations; step++) {
        MPI_Request request[8];
        for (int i = 0; i < n; i++) {
            sent[NORTH * n + i] = now[wide + i + 1];
            sent[SOUTH * n + i] = now[n * wide + i + 1];
            sent[WEST * n + i] = now[(i + 1) * wide + 1];
            sent[EAST * n + i] = now[(i + 1) * wide + n];
        }
        for (int side = 0; side < 4; side++) /* what goes north comes from the south: the tag is the way it goes */
            MPI_Irecv(got + side * n, n, MPI_DOUBLE, near[side], side ^ 1, MPI_COMM_WORLD, request + side);
        for (int side = 0; side < 4; side++)
            MPI_Isend(sent + side * n, n, MPI_DOUBLE, near[side], side, MPI_COMM_WORLD, request + 4 + side);
        MPI_Waitall(8, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++) {
            now[i + 1] = got[NORTH * n + i];
            now[(n + 1) * wide + i + 1] = got[SOUTH * n + i];
            now[(i + 1) * wide] = got[WEST * n + i];
            now[(i + 1) * wide + n + 1] = got[EAST * n + i];
        }
        double own = 0;
        for (int y = 1; y <= n; y++)
            for (int x = 1; x <= n; x++) {
                const double *p = now + y * wide + x;
                double value = 0.25 * (p[-wide] + p[wide] + p[-1] + p[1]);
                own += (value - *p) * (value - *p);
                next[y * wide + x] = value;
            }
        MPI_Allreduce(&own, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double *old = now;
        now = next;
        next = old;
    }
    if (rank == 0)
        printf("%d x %d ranks, %d steps, change %g\n", rows, columns, iterations, change);
    free(now);
    free(next);
    free(sent);
    free(got);
    MPI_Finalize();
    return 0;
}
