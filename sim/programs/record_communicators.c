/* Tells which communicator each collective was called in; SimGrid's traces do not.
 *
 * Loaded before SimGrid's library (LD_PRELOAD), in which MPI_X calls PMPI_X; its ranks are threads of one process.
 * HOPFORGE_COMMUNICATORS names a folder; rank r writes a line for each collective to the file r there: its name and,
 * unless it has all ranks in order, the ranks of the communicator.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE** files;

static void note(const char* name, MPI_Comm comm)
{
  int rank, world_size, size, in_order = 1;
  if (comm == MPI_COMM_NULL)
    return;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (!files)
    files = calloc(world_size, sizeof *files);
  if (!files[rank]) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", getenv("HOPFORGE_COMMUNICATORS"), rank);
    files[rank] = fopen(path, "w");
    if (!files[rank]) {
      perror(path);
      exit(1);
    }
    setvbuf(files[rank], NULL, _IOLBF, 4096);
  }
  fputs(name, files[rank]);
  if (comm != MPI_COMM_WORLD) {
    MPI_Group group, world;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &size);
    int* own    = malloc(2 * size * sizeof *own);
    int* global = own + size;
    for (int i = 0; i < size; i++)
      own[i] = i;
    PMPI_Group_translate_ranks(group, size, own, world, global);
    in_order = size == world_size;
    for (int i = 0; i < size; i++)
      in_order = in_order && global[i] == i;
    for (int i = 0; i < size && !in_order; i++)
      fprintf(files[rank], " %d", global[i]);
    free(own);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
  }
  fputc('\n', files[rank]);
}

#define RECORDED(function, name, parameters, arguments)                                                                \
  int PMPI_##function parameters                                                                                       \
  {                                                                                                                    \
    static int(*next) parameters;                                                                                      \
    if (!next)                                                                                                         \
      *(void**)&next = dlsym(RTLD_NEXT, "PMPI_" #function);                                                            \
    note(name, comm);                                                                                                  \
    return next arguments;                                                                                             \
  }

RECORDED(Barrier, "barrier", (MPI_Comm comm), (comm))
RECORDED(Bcast, "bcast", (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm),
         (data, count, type, root, comm))
RECORDED(Reduce, "reduce",
         (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
         (out, in, count, type, op, root, comm))
RECORDED(Allreduce, "allreduce", (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (out, in, count, type, op, comm))
RECORDED(Scan, "scan", (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (out, in, count, type, op, comm))
RECORDED(Exscan, "exscan", (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (out, in, count, type, op, comm))
RECORDED(Reduce_scatter, "reducescatter",
         (const void* out, void* in, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (out, in, counts, type, op, comm))
RECORDED(Reduce_scatter_block, "reducescatter",
         (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (out, in, count, type, op, comm))
RECORDED(Gather, "gather",
         (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
          int root, MPI_Comm comm),
         (out, out_count, out_type, in, in_count, in_type, root, comm))
RECORDED(Gatherv, "gatherv",
         (const void* out, int out_count, MPI_Datatype out_type, void* in, const int* in_counts, const int* places,
          MPI_Datatype in_type, int root, MPI_Comm comm),
         (out, out_count, out_type, in, in_counts, places, in_type, root, comm))
RECORDED(Scatter, "scatter",
         (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
          int root, MPI_Comm comm),
         (out, out_count, out_type, in, in_count, in_type, root, comm))
RECORDED(Scatterv, "scatterv",
         (const void* out, const int* out_counts, const int* places, MPI_Datatype out_type, void* in, int in_count,
          MPI_Datatype in_type, int root, MPI_Comm comm),
         (out, out_counts, places, out_type, in, in_count, in_type, root, comm))
RECORDED(Allgather, "allgather",
         (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
          MPI_Comm comm),
         (out, out_count, out_type, in, in_count, in_type, comm))
RECORDED(Allgatherv, "allgatherv",
         (const void* out, int out_count, MPI_Datatype out_type, void* in, const int* in_counts, const int* places,
          MPI_Datatype in_type, MPI_Comm comm),
         (out, out_count, out_type, in, in_counts, places, in_type, comm))
RECORDED(Alltoall, "alltoall",
         (const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
          MPI_Comm comm),
         (out, out_count, out_type, in, in_count, in_type, comm))
RECORDED(Alltoallv, "alltoallv",
         (const void* out, const int* out_counts, const int* out_places, MPI_Datatype out_type, void* in,
          const int* in_counts, const int* in_places, MPI_Datatype in_type, MPI_Comm comm),
         (out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm))
