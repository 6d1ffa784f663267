// Counts every way to the heap. For one file of an executable: it replaces malloc.
#pragma once

#include <atomic>
#include <cstddef>

namespace cella::test {
inline std::atomic<long> allocations{0};
}

// The sanitizers bring a malloc of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__) && \
    !defined(__clang__)
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* malloc(std::size_t n) {
  ++cella::test::allocations;
  return __libc_malloc(n);
}
#define CELLA_COUNTS_MALLOC
#endif
