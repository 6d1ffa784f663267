// What wrong programs of cells include, most of them; see CMakeLists.txt.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
