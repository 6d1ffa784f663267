// What wrong programs with models include, most of them; see CMakeLists.txt.
#if !defined(__clang__)
// Behind these headers g++ instantiates what they have left pending, in each program anew: a second
// less where kernels are compiled once. So clang sees the library without them, and g++ with them.
#define CELLA_KERNELS 1
#endif
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/train/model.hpp>
