// What eager mode calls where the kernels are linked: each operation by the back end's kernel, on
// tensors of the caller, with nothing planned.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/graph/random.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/list.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "support/every_operation.hpp"
#include "support/harness.hpp"

namespace {

using namespace cella;

struct owned_tensor {
  explicit owned_tensor(tensor_type t)
      : memory(std::size_t(t.bytes()) + 64), ref{memory.data(), t} {}
  aligned_buffer memory;
  tensor_ref ref;
};

/// Numbers between 0 and 1, and integers that are 0 or 1; square matrices are symmetric and
/// positive definite.
void fill_with_numbers(const tensor_ref& x, std::uint64_t seed) {
  const shape& s = x.type.shape;
  const std::int64_t n = s.rank >= 2 && s[s.rank - 1] == s[s.rank - 2] ? s[s.rank - 1] : 0;
  for (std::int64_t i = 0; i < x.type.size(); ++i) {
    std::int64_t at = i;
    bool diagonal = false;
    if (n) {
      const std::int64_t row = i / n % n, column = i % n;
      at = i / (n * n) * n * n + std::min(row, column) * n + std::max(row, column);
      diagonal = row == column;
    }
    const double u = uniform<double>(seed, std::uint64_t(at));
    write_element(x, i,
                  is_floating(x.type.element) ? u + (diagonal ? double(n) : 0) : std::round(u));
  }
}

std::vector<owned_tensor> results_of(const graph& g, node_id n) {
  const node& x = g.nodes[std::size_t(n)];
  std::vector<owned_tensor> all;
  if (x.result_count == 0) all.emplace_back(x.type);
  for (int k = 0; k < x.result_count; ++k) all.emplace_back(g.result_type(n, k));
  return all;
}

}  // namespace

TEST_CASE("an operation that is computed alone by a kernel agrees with its definition") {
  builder b;
  test::build_every_operation(b);
  int compared = 0;
  for (node_id n = 0; n < node_id(b.g.nodes.size()); ++n) {
    const node& x = b.g.nodes[std::size_t(n)];
    if (x.operand_count == 0 || x.op->name == "get" || x.op->name == "print") continue;
    std::vector<owned_tensor> in;
    std::vector<tensor_ref> read, fast, slow;
    bool real = true;
    for (const node_id o : b.g.operands(n)) {
      real = real && !is_complex(b.g.type(o).element);
      in.emplace_back(b.g.type(o));
    }
    if (!real) continue;
    for (std::size_t k = 0; k < in.size(); ++k) {
      fill_with_numbers(in[k].ref, 5 * std::uint64_t(n) + k);
      read.push_back(in[k].ref);
    }
    const auto by_kernel = results_of(b.g, n), by_definition = results_of(b.g, n);
    for (const owned_tensor& t : by_kernel) fast.push_back(t.ref);
    for (const owned_tensor& t : by_definition) slow.push_back(t.ref);
    CAPTURE(std::string(x.op->name));
    CAPTURE(n);
    test::compute_on_cpu(*x.op, x.attributes, read, fast);
    compute(*x.op, x.attributes, read, slow);
    for (std::size_t k = 0; k < fast.size(); ++k) {
      if (is_complex(fast[k].type.element)) continue;
      for (std::int64_t i = 0; i < fast[k].type.size(); ++i) {
        const double found = read_element(fast[k], i), expected = read_element(slow[k], i);
        if (std::isfinite(expected))
          CHECK(found == doctest::Approx(expected).epsilon(1e-9));
        else
          CHECK((found == expected || (std::isnan(found) && std::isnan(expected))));
      }
      ++compared;
    }
  }
  CHECK(compared > 100);
}
