#include <doctest/doctest.h>

#include <cella/backend/cpu/run/eager.hpp>
#include <cella/graph/random.hpp>
#include <cmath>

using namespace cella;

namespace {

struct owned_tensor {
  explicit owned_tensor(tensor_type t, std::uint64_t seed = 0)
      : memory(std::size_t(t.bytes()) + 64), ref{memory.data(), t} {
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const double u = uniform<double>(seed, std::uint64_t(i));
      // Integers are indices: -1 to 6, of which the first and the last lie outside a table of 6.
      write_element(ref, i, is_integer(t.element) ? std::floor(u * 8) - 1 : u * 2 - 1);
    }
  }
  aligned_buffer memory;
  tensor_ref ref;
};

/// The types of an operation's results.
template <class Op>
std::vector<tensor_type> results_of(const std::vector<tensor_type>& types,
                                    const attributes& options) {
  if constexpr (requires { Op::results; }) {
    std::array<tensor_type, 8> out{};
    const int count = Op::results(types, options, out);
    return {out.begin(), out.begin() + count};
  } else {
    return {Op::infer(types, options)};
  }
}

/// Largest difference between the result of this back end's kernel, and of what eager mode calls,
/// and the reference computation. Where there is no kernel eager mode calls the latter.
template <class Op>
double difference(const attributes& options, const std::vector<tensor_type>& types,
                  bool has_kernel = true) {
  std::vector<owned_tensor> in;
  for (std::size_t i = 0; i < types.size(); ++i) in.emplace_back(types[i], i + 1);
  std::vector<tensor_ref> x;
  for (const auto& t : in) x.push_back(t.ref);
  std::vector<owned_tensor> by_kernels, by_definition;
  std::vector<tensor_ref> fast, slow;
  for (const tensor_type& t : results_of<Op>(types, options)) {
    by_kernels.emplace_back(t, 77);
    fast.push_back(by_kernels.back().ref);
    by_definition.emplace_back(t, 78);
    slow.push_back(by_definition.back().ref);
  }
  const bool by_kernel =
      types[0].element == dtype::f32
          ? cpu::detail::compute_by_kernel<float>(info_of<Op>, options, x, fast)
          : cpu::detail::compute_by_kernel<double>(info_of<Op>, options, x, fast);
  CHECK(by_kernel == has_kernel);
  cpu::backend::compute<float, double>(info_of<Op>, options, x, fast);
  compute(info_of<Op>, options, x, slow);
  double worst = 0;
  for (std::size_t k = 0; k < fast.size(); ++k) {
    for (std::int64_t i = 0; i < fast[k].type.size(); ++i)
      worst = std::max(worst, std::abs(read_element(fast[k], i) - read_element(slow[k], i)));
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
                                {type({5, 7, 2}), type({2, 7, 3})}, false) < tolerance);
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

TEST_CASE("lines, permutations and rows by index in eager mode agree with their definition") {
  for (const dtype t : {dtype::f32, dtype::f64}) {
    const double tolerance = t == dtype::f32 ? 1e-6 : 1e-14;
    for (const shape& s : {shape{7, 5}, shape{3, 4, 17}, shape{2, 33, 3}}) {
      for (int axis = 0; axis < s.rank; ++axis) {
        const cella::detail::axis_options along{axis};
        CHECK(difference<softmax_op>(along, {{t, s}}) < tolerance);
        CHECK(difference<log_softmax_op>(along, {{t, s}}) < tolerance * 10);
        CHECK(difference<argmax_op>(along, {{t, s}}) == 0);
        CHECK(difference<argmin_op>(along, {{t, s}}) == 0);
      }
    }
    CHECK(difference<transpose_op>(transpose_op::options{{2, 0, 1}}, {{t, {3, 4, 17}}}) == 0);
    for (const dtype index : {dtype::i32, dtype::i64}) {
      const tensor_type table{t, {6, 5}}, indices{index, {4, 3}}, rows{t, {4, 3, 5}};
      const cella::detail::indexing_options first_axis{0, 6, 2};
      CHECK(difference<gather_op>(first_axis, {table, indices}) == 0);
      CHECK(difference<scatter_op>(first_axis, {rows, indices}) < tolerance);
      const cella::detail::indexing_options second_axis{1, 5, 2};
      const tensor_type columns{t, {6, 4, 3}};
      CHECK(difference<gather_op>(second_axis, {table, indices}) == 0);
      CHECK(difference<scatter_op>(second_axis, {columns, indices}) < tolerance);
    }
  }
}

TEST_CASE("pooling in eager mode agrees with its definition") {
  for (const dtype t : {dtype::f32, dtype::f64}) {
    const pooling_options o{window{{2, 2}, {1, 0}, {0, 1}, {1, 1}, 1}, {3, 2}, {9, 8}};
    const tensor_type image{t, {2, 3, 9, 8}};
    const tensor_type windows = cella::detail::pooled(image, o);
    CHECK(difference<max_pool_op>(o, {image}) == 0);
    CHECK(difference<average_pool_op>(o, {image}) < 1e-6);
    CHECK(difference<average_spread_op>(o, {windows}) < 1e-6);
  }
}
