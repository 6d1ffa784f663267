// Ranks by whichever transport is wanted.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/parallel/thread_ranks.hpp>
#if defined(CELLA_MPI)
#include <cella/parallel/mpi_ranks.hpp>
#endif

namespace cella::parallel {

/// rank(r, communicator) on all ranks of a mesh: threads of this process, or the processes that
/// mpirun has started, of a program that is linked with `cella::mpi`. So many seconds a rank waits
/// for the others.
template <class F>
void run_ranks(const device_mesh& m, bool as_threads, F rank, double timeout_seconds = 60) {
  if (as_threads) return thread_ranks(m, timeout_seconds).run(rank);
#if defined(CELLA_MPI)
  mpi_ranks(m, timeout_seconds).run(rank);
#else
  throw error("this program was built without MPI; start it with --threads-as-ranks");
#endif
}

}  // namespace cella::parallel
