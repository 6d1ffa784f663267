#include <cella/graph/shape.hpp>

std::int64_t size_of_batch();

int main() { return cella::shape{32, 784}.size() == size_of_batch() ? 0 : 1; }
