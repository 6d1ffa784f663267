#include <doctest/doctest.h>

#include <cella/backend/cpu/run/eager.hpp>
#include <cella/graph/random.hpp>
#include <cmath>

using namespace cella;

namespace {

struct owned_tensor {
  explicit owned_tensor(tensor_type t, std::uint64_t seed = 0)
      : memory(std::size_t(t.bytes()) + 64), ref{memory.data(), t} {
    for (std::int64_t i = 0; i < t.size(); ++i)
      write_element(ref, i, uniform<double>(seed, std::uint64_t(i)) * 2 - 1);
  }
  aligned_buffer memory;
  tensor_ref ref;
};

/// Largest difference between this back end's result and the reference computation.
template <class Op>
double difference(const attributes& options, const std::vector<tensor_type>& types) {
  std::vector<owned_tensor> in;
  for (std::size_t i = 0; i < types.size(); ++i) in.emplace_back(types[i], i + 1);
  std::vector<tensor_ref> x;
  for (const auto& t : in) x.push_back(t.ref);
  const tensor_type result = Op::infer(types, options);
  owned_tensor fast(result, 77);
  owned_tensor slow(result, 78);
  cpu::backend::compute<float, double>(info_of<Op>, options, x, std::array{fast.ref});
  compute(info_of<Op>, options, x, std::array{slow.ref});
  double worst = 0;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    worst = std::max(worst, std::abs(read_element(fast.ref, i) - read_element(slow.ref, i)));
  }
  return worst;
}

constexpr iteration_space::axes axes(std::initializer_list<int> list) {
  iteration_space::axes a = iteration_space::no_axes;
  std::size_t i = 0;
  for (int x : list) a[i++] = std::int8_t(x);
  return a;
}

}  // namespace

TEST_CASE("contractions in eager mode agree with their definition") {
  using o = matmul_op::options;
  for (const dtype t : {dtype::f32, dtype::f64}) {
    const double tolerance = t == dtype::f32 ? 2e-6 : 1e-14;
    auto type = [&](shape s) { return tensor_type{t, s}; };
    CHECK(difference<matmul_op>(o{axes({0, 2}), axes({2, 1}), axes({0, 1})},
                                {type({5, 7}), type({7, 3})}) < tolerance);
    CHECK(difference<matmul_op>(o{axes({2, 0}), axes({1, 2}), axes({0, 1})},
                                {type({7, 5}), type({3, 7})}) < tolerance);
    // A transposed result, a batch, a batch in one operand only, two summed axes.
    CHECK(difference<matmul_op>(o{axes({0, 2}), axes({2, 1}), axes({1, 0})},
                                {type({5, 7}), type({7, 3})}) < tolerance);
    CHECK(difference<matmul_op>(o{axes({3, 0, 2}), axes({3, 2, 1}), axes({3, 0, 1})},
                                {type({4, 5, 7}), type({4, 7, 3})}) < tolerance);
    CHECK(difference<matmul_op>(o{axes({3, 0, 2}), axes({1, 2}), axes({3, 0, 1})},
                                {type({4, 5, 7}), type({3, 7})}) < tolerance);
    CHECK(difference<matmul_op>(o{axes({0, 2, 3}), axes({2, 3, 1}), axes({0, 1})},
                                {type({5, 7, 2}), type({7, 2, 3})}) < tolerance);
    // No matrix product: the summed axes lie in different orders. The reference computation serves.
    CHECK(difference<matmul_op>(o{axes({0, 2, 3}), axes({3, 2, 1}), axes({0, 1})},
                                {type({5, 7, 2}), type({2, 7, 3})}) < tolerance);
  }
}

TEST_CASE("convolutions in eager mode agree with their definition") {
  for (const dtype t : {dtype::f32, dtype::f64}) {
    const double tolerance = t == dtype::f32 ? 1e-5 : 1e-13;
    for (const window& w : {window{}, window{{2, 1}, {1, 0}, {1, 2}, {1, 1}, 1},
                            window{{1, 2}, {2, 2}, {2, 2}, {2, 1}, 2}}) {
      const tensor_type image{t, {2, 4, 9, 8}};
      const tensor_type filter{t, {6, 4 / w.groups, 3, 2}};
      const convolution_options forward{w, {}};
      const std::array both{image, filter};
      const tensor_type dy = convolution_op::infer(both, forward);
      CHECK(difference<convolution_op>(forward, {image, filter}) < tolerance);
      CHECK(difference<convolution_input_gradient_op>(convolution_options{w, {9, 8}},
                                                      {dy, filter}) < tolerance);
      CHECK(difference<convolution_weight_gradient_op>(convolution_options{w, {3, 2}},
                                                       {image, dy}) < tolerance);
    }
  }
}
