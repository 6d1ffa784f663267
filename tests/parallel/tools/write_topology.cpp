// Writes what is known of a mesh as cella-measure-mesh does; what is compiled with the header tests
// it.   write_topology FILE.hpp FILE.json
#include <cella/parallel/topology.hpp>

#include "../known_mesh.hpp"

int main(int count, char** files) {
  for (int i = 1; i < count; ++i)
    cella::parallel::save_topology(cella::test::known_mesh(), files[i]);
}
