// What wrong programs of cells include, most of them; see CMakeLists.txt.
#if !defined(__clang__)
#define CELLA_KERNELS 1  // as in models.hpp
#endif
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
