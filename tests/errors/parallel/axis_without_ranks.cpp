// expect: cella: an axis of a mesh has one rank or more
// expect-lines: 20
// expect-place: library
// An axis of a mesh has no rank.
#include <cella/nn/layers.hpp>
#include <cella/parallel/mesh.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() { return parallel::mesh<parallel::axis<"data", 0>>::value.ranks(); }
