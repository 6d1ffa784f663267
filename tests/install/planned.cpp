#include <cella/runtime/loaded_program.hpp>

int main() {
  static_assert(cella::has_compiled_kernels);
  return cella::loaded_program::refusal({}, cella::dtype::bf16).empty();
}
