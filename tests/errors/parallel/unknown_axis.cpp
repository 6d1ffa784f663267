// expect: cella: nothing is known of an axis of this mesh; measure a mesh that has it with
// expect: cella-measure-mesh
// expect-lines: 20
// expect-place: library
// Another axis of the machine was measured than the mesh has.
#include <cella/parallel/mesh.hpp>

using namespace cella;

struct topology_of_machine {
  static constexpr parallel::device_mesh value = parallel::mesh<parallel::axis<"data", 2>>::value;
};
using Ranks = parallel::measured_mesh<topology_of_machine, parallel::axis<"model", 2>>;

int main() { return Ranks::value.ranks(); }
