#include <cella/runtime/compiled_once.hpp>

int main() {
  static_assert(cella::has_compiled_kernels && cella::in_development);
  return cella::loaded_program::refusal({}, cella::dtype::bf16).empty();
}
