#include <cella/graph/shape.hpp>

std::int64_t size_of_batch();
extern "C" int lanes_in_use();

int main() {
  const bool same = cella::shape{32, 784}.size() == size_of_batch();
  return same && lanes_in_use() >= 4 ? 0 : 1;
}
