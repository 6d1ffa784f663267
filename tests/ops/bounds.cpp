// Bounds of results, held against what the operations compute on random elements within random
// bounds.
#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/ops/bounds.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/list.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include "support/common.hpp"
#include "support/every_operation.hpp"

using namespace cella;

namespace {

constexpr double infinity = interval::infinity;

/// An operation with its operands' types and its options.
struct application {
  const op_info* op;
  std::vector<tensor_type> types;
  attributes options;
};

template <class Op>
constexpr std::size_t operands_of_pointwise() {
  if constexpr (requires(double x) { Op::apply(x); }) return 1;
  if constexpr (requires(double x) { Op::apply(x, x); }) return 2;
  return 0;
}

/// All operations but those of control: as `build_every_operation` applies them, and the pointwise
/// ones on vectors of each type that they have a meaning for.
std::vector<application> applications() {
  builder b;
  test::build_every_operation(b);
  std::vector<application> all;
  for (node_id n = 0; n < node_id(b.g.nodes.size()); ++n) {
    const node& x = b.g.nodes[std::size_t(n)];
    if (!x.op->space || x.op->traits.impure) continue;
    std::vector<tensor_type> types;
    for (node_id o : b.g.operands(n)) types.push_back(b.g.type(o));
    all.push_back({x.op, types, x.attributes});
  }
  all_operations::for_each([&]<class Op>() {
    if constexpr (requires {
                    requires operands_of_pointwise<Op>()
                    > 0;
                  }) {
      const std::size_t count = operands_of_pointwise<Op>();
      all.push_back({&info_of<Op>, {count, {dtype::f64, {16}}}, {}});
      if (info_of<Op>.integral)
        for (dtype t : {dtype::i64, dtype::i32, dtype::i8, dtype::u8})
          all.push_back({&info_of<Op>, {count, {t, {16}}}, {}});
    }
  });
  for (dtype from : {dtype::f64, dtype::i64})
    for (dtype to : {dtype::f64, dtype::i32, dtype::u8, dtype::boolean})
      all.push_back({&info_of<cast_op>, {{from, {16}}}, cast_op::options{{std::int32_t(to)}}});
  all.push_back({&info_of<random_key_op>, {{dtype::i64, {2}}}, random_key_op::options{1, 0, 3}});
  all.push_back({&info_of<print_op>, {{dtype::f64, {16}}}, {}});
  return all;
}

interval bounds_of(const application& a, const std::vector<interval>& in) {
  return cella::bounds_of(*a.op, in, a.types, a.options);
}

/// The first result on operands whose elements `element(operand, index)` tells.
std::vector<double> result_of(const application& a,
                              const std::function<double(std::size_t, std::int64_t)>& element) {
  std::vector<tensor_type> results(8);
  results.resize(a.op->infer ? 1 : std::size_t(a.op->results(a.types, a.options, results)));
  if (a.op->infer) results[0] = a.op->infer(a.types, a.options);
  std::vector<std::vector<std::byte>> memory;
  std::vector<tensor_ref> in, out;
  auto add = [&](std::vector<tensor_ref>& to, const tensor_type& t) {
    to.push_back({memory.emplace_back(std::size_t(t.bytes()) + 1).data(), t});
  };
  for (const tensor_type& t : a.types) add(in, t);
  for (const tensor_type& t : results) add(out, t);
  for (std::size_t k = 0; k < in.size(); ++k)
    for (std::int64_t i = 0; i < in[k].type.size(); ++i) write_element(in[k], i, element(k, i));
  if (!a.op->traits.impure)
    compute(*a.op, a.options, in, out);
  else
    out[0] = in[0];
  std::vector<double> values;
  for (std::int64_t i = 0; i < out[0].type.size(); ++i) values.push_back(read_element(out[0], i));
  return values;
}

/// How far a result may lie beyond a bound by rounding.
double slack(double bound, dtype t) {
  if (std::isinf(bound)) return 0;
  return (t == dtype::f32 ? 1e-6 : 1e-12) * std::max(1.0, std::abs(bound));
}

/// A random interval of numbers that a type can hold; one number, zero or far-off ones now and
/// then.
interval random_interval(std::mt19937& random, dtype t) {
  auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  auto one = [&] {
    const double sizes[] = {0.5, 1, 3, 20};
    const double size = sizes[random() % 4];
    return random() % 8 == 0 ? 0.0 : uniform(-size, size);
  };
  double low = one(), high = random() % 8 == 0 ? low : one();
  if (low > high) std::swap(low, high);
  if (!is_floating(t)) low = std::floor(low), high = std::floor(high);
  return intersection({low, high}, range_of(t));
}

}  // namespace

TEST_CASE("what operations compute lies within their bounds") {
  std::mt19937 random(11);
  std::set<const op_info*> seen;
  for (const application& a : applications()) {
    seen.insert(a.op);
    INFO(a.op->name);
    if (a.op->traits.stored) continue;  // values lie in a graph
    const dtype element = detail::first_result(*a.op, a.types, a.options).element;
    for (int round = 0; round < 300; ++round) {
      std::vector<interval> in;
      for (const tensor_type& t : a.types) in.push_back(random_interval(random, t.element));
      const interval y = bounds_of(a, in);
      CHECK(y.low <= y.high);
      const auto values = result_of(a, [&](std::size_t k, std::int64_t) {
        const auto [low, high] = in[k];
        const unsigned choice = random() % 4;
        if (choice < 2) return choice ? low : high;
        const double v = low < high ? std::uniform_real_distribution(low, high)(random) : low;
        return is_floating(a.types[k].element) ? v : std::round(v);
      });
      for (double v : values) {
        const bool within = std::isnan(v) || (v >= y.low - slack(y.low, element) &&
                                              v <= y.high + slack(y.high, element));
        if (within) continue;
        std::string operands;
        for (const interval& x : in)
          operands += " [" + std::to_string(x.low) + ", " + std::to_string(x.high) + "]";
        INFO("operands within" << operands << ", " << v << " outside of [" << y.low << ", "
                               << y.high << "]");
        CHECK(within);
      }
    }
  }
  for (const op_info* op : all_operations::infos) {
    INFO(op->name);
    CHECK((seen.count(op) == 1) == (op->kind != op_kind::control));
  }
}

TEST_CASE("operations of real numbers have finite bounds on small positive numbers, all but some") {
  std::set<std::string> unbounded;
  for (const application& a : applications()) {
    const interval y = bounds_of(a, std::vector<interval>(a.types.size(), {0.25, 0.75}));
    if (std::isinf(y.low) || std::isinf(y.high)) unbounded.insert(std::string(a.op->name));
  }
  // Complex numbers have no order, and of values in a graph their options say nothing.
  for (const char* name :
       {"angle", "complex", "conj", "fft", "imag", "irfft", "magnitude", "real", "rfft", "values"})
    CHECK(unbounded.erase(name) == 1);
  // Of factors of matrices nothing is told, an empty segment has an infinite largest element, and
  // some distributions have no largest number.
  CHECK(unbounded == std::set<std::string>{"acosh", "batch_norm_gradient", "cholesky", "eigh",
                                           "gamma_slope", "lu", "qr", "random_gamma",
                                           "random_poisson", "scatter_reduce", "slogdet", "solve",
                                           "svd", "triangular_solve"});
}

TEST_CASE("many bounds are reached by elements at the ends") {
  int reached = 0;
  for (const application& a : applications()) {
    INFO(a.op->name);
    bool padded = false;
    const bool contraction = a.op->kind == op_kind::bilinear;
    if (a.op->space && a.op->computes != compute_class::random) {
      const iteration_space s = a.op->space(a.types, a.options);
      for (std::size_t k = 0; k < a.types.size(); ++k) padded |= has_padding(s, int(k), a.types[k]);
      if (contraction)
        padded |= !points_at_element(s, s.result(), a.op->infer(a.types, a.options)).same;
    }
    const bool tight = a.op->traits.nondecreasing || (contraction && !padded) ||
                       std::set<std::string_view>{"sub", "neg",    "sum",       "prod",   "max",
                                                  "min", "cumsum", "transpose", "concat", "gather"}
                           .count(a.op->name);
    if (!tight || a.types.size() > 2 || !is_floating(a.types[0].element)) continue;
    ++reached;
    const std::vector<interval> in(a.types.size(), {0.25, 0.75});
    const interval y = bounds_of(a, in);
    double low = infinity, high = -infinity;
    for (unsigned ends = 0; ends < 4; ++ends)
      for (double v : result_of(a, [&](std::size_t k, std::int64_t) {
             const double end = ends >> k & 1 ? in[k].high : in[k].low;
             return is_floating(a.types[k].element) ? end : 0;
           })) {
        if (std::isnan(v)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
    if (a.op->name == "acosh") continue;  // none of these numbers has one
    CHECK(y.low == doctest::Approx(low).epsilon(1e-12));
    CHECK(y.high == doctest::Approx(high).epsilon(1e-12));
  }
  CHECK(reached > 35);
}

namespace {

template <class Op>
interval of(std::vector<interval> in, const attributes& o = {},
            const tensor_type& t = {dtype::f64, {4}}) {
  const std::vector<tensor_type> types(in.size(), t);
  return cella::bounds_of(info_of<Op>, in, types, o);
}
bool close(interval x, interval y) {
  auto same = [](double a, double b) { return a == b || std::abs(a - b) < 1e-12; };
  return same(x.low, y.low) && same(x.high, y.high);
}

}  // namespace

TEST_CASE("bounds of functions follow their shape") {
  const double pi = std::numbers::pi;
  CHECK(close(of<exp_op>({{0, 1}}), {1, std::exp(1)}));
  CHECK(of<exp_op>({{}}) == interval{0, infinity});
  CHECK(of<sigmoid_op>({{}}) == interval{0, 1});
  CHECK(of<sqrt_op>({{-4, 9}}) == interval{0, 3});
  CHECK(of<log_op>({{-1, 1}}) == interval{-infinity, 0});
  CHECK(close(of<asin_op>({{}}), {-pi / 2, pi / 2}));
  CHECK(close(of<acos_op>({{}}), {0, pi}));
  CHECK(of<square_op>({{-2, 1}}) == interval{0, 4});
  CHECK(of<square_op>({{1, 3}}) == interval{1, 9});
  CHECK(of<abs_op>({{-3, -1}}) == interval{1, 3});
  CHECK(of<sin_op>({{}}) == interval{-1, 1});
  CHECK(close(of<sin_op>({{0, pi}}), {0, 1}));
  CHECK(close(of<sin_op>({{7, 8}}), {std::sin(7), 1}));  // 5 pi / 2 is 7.85
  CHECK(close(of<cos_op>({{1, 2}}), {std::cos(2), std::cos(1)}));
  CHECK(of<cos_op>({{3, 4}}).low == -1);
  CHECK(of<tan_op>({{1, 2}}) == interval{});
  CHECK(close(of<tan_op>({{2, 4}}), {std::tan(2), std::tan(4)}));
  CHECK(of<rsqrt_op>({{4, 16}}) == interval{0.25, 0.5});
  CHECK(of<rsqrt_op>({{0, 16}}) == interval{});
  CHECK(of<div_op>({{1, 2}, {4, 8}}) == interval{0.125, 0.5});
  CHECK(of<div_op>({{1, 2}, {-1, 8}}) == interval{});
  CHECK(of<mul_op>({{-1, 2}, {-3, 5}}) == interval{-6, 10});
  CHECK(of<mul_op>({{0, 0}, {}}) == interval{0, 0});
  CHECK(of<pow_op>({{-2, 1}, {2, 2}}) == interval{0, 4});
  CHECK(of<pow_op>({{-2, 1}, {3, 3}}) == interval{-8, 1});
  CHECK(of<pow_op>({{0.5, 2}, {-1, 2}}) == interval{0.25, 4});
  CHECK(of<pow_op>({{-2, 1}, {0, 1}}) == interval{});
  CHECK(of<clamp_op>({{-5, 0.5}}, clamp_op::options{0, 1}) == interval{0, 0.5});
  CHECK(of<softmax_op>({{}}, detail::axis_options{0}) == interval{0, 1});
  CHECK(close(of<softmax_op>({{0, 1}}, detail::axis_options{0}),
              {1 / (1 + 3 * std::exp(1)), 1 / (1 + 3 * std::exp(-1))}));
  CHECK(close(of<log_softmax_op>({{2, 2}}, detail::axis_options{0}), {-std::log(4), -std::log(4)}));
  CHECK(of<cumsum_op>({{-1, 2}}, cumsum_op::options{0, 0, 0}) == interval{-4, 8});
  CHECK(of<cumsum_op>({{1, 2}}, cumsum_op::options{0, 0, 0}) == interval{1, 8});
  CHECK(of<cumsum_op>({{1, 2}}, cumsum_op::options{0, 0, 1}) == interval{0, 6});
  CHECK(of<argmax_op>({{}}, detail::axis_options{0}) == interval{0, 3});
  CHECK(of<sum_op>({{1, 2}}, axes_options{1}) == interval{4, 8});
  CHECK(of<less_op>({{}, {}}) == interval{0, 1});
}

TEST_CASE("integers may overflow, and then may be any") {
  const tensor_type bytes{dtype::i8, {4}};
  CHECK(of<add_op>({{0, 60}, {0, 60}}, {}, bytes) == interval{0, 120});
  CHECK(of<add_op>({{0, 60}, {0, 90}}, {}, bytes) == interval{-128, 127});
  CHECK(of<add_op>({{}, {0, 0}}, {}, bytes) == interval{-128, 127});
  CHECK(of<div_op>({{-7, 7}, {2, 2}}, {}, bytes) == interval{-3, 3});
  CHECK(of<floor_div_op>({{-7, 7}, {2, 2}}, {}, bytes) == interval{-4, 3});
  CHECK(of<div_op>({{-7, 5}, {-1, 3}}, {}, bytes) == interval{-7, 7});
  CHECK(of<mul_op>({{0, 300}, {300, 300}}, {}, {dtype::f16, {4}}) == interval{0, infinity});
}

TEST_CASE("sums count the points of their loops, padding among them as zeros") {
  auto convolution = [](const window& w, const shape& image, const shape& filter) {
    const std::vector<interval> in{{1, 2}, {3, 4}};
    const std::vector<tensor_type> types{{dtype::f64, image}, {dtype::f64, filter}};
    return cella::bounds_of(info_of<convolution_op>, in, types, convolution_options{w, {}});
  };
  CHECK(convolution({}, {1, 2, 5, 5}, {3, 2, 3, 3}) == interval{18 * 3, 18 * 8});
  CHECK(convolution({.before = {1, 1}}, {1, 2, 5, 5}, {3, 2, 3, 3}) == interval{0, 18 * 8});
  CHECK(convolution({.groups = 2}, {1, 4, 5, 5}, {6, 2, 3, 3}) == interval{18 * 3, 18 * 8});
  // Windows side by side: each pixel of the image has one tap of each filter, or none at all.
  builder b;
  auto input = [&](shape s) {
    return var{&b, b.input({dtype::f64, s}, input_role::argument, "x")};
  };
  const var y = input({1, 3, 2, 2}), w = input({3, 2, 2, 2});
  auto back = [&](int stride) {
    const int e = stride + 2;
    return emit<convolution_input_gradient_op>(
        convolution_options{{.stride = {stride, stride}}, {e, e}}, std::source_location::current(),
        y, w);
  };
  const auto one = back(1), two = back(2), three = back(3);
  const list<interval> all = cella::bounds_of(b.g, std::vector<interval>{{1, 2}, {3, 4}});
  CHECK(all[std::size_t(two.id)] == interval{3 * 3, 3 * 8});
  CHECK(all[std::size_t(three.id)] == interval{0, 3 * 8});
  CHECK(all[std::size_t(one.id)] == interval{0, 3 * 4 * 8});
}

TEST_CASE("bounds go through a graph, its results and its regions") {
  builder b;
  auto input = [&](shape s) {
    return var{&b, b.input({dtype::f64, s}, input_role::argument, "x")};
  };
  const var x = input({2, 3}), w = input({3, 4}), open = input({2, 4});
  const var h = relu(matmul(x, w)), p = sigmoid(h + open);
  const auto normal = detail::normalize_batch(p, sum(w, {0}), sum(w, {0}), 1e-5);
  const var chosen = select(open > 0, p, -p);
  const list<interval> all = bounds_of(b.g, std::vector<interval>{{-1, 1}, {0, 2}});
  auto at = [&](var v) { return all[std::size_t(v.id)]; };
  CHECK(at(x) == interval{-1, 1});
  CHECK(at(open) == interval{});
  CHECK(at(h) == interval{0, 6});
  CHECK(at(p) == interval{0, 1});
  CHECK(at(chosen) == interval{-1, 1});
  // Two numbers lie one standard deviation from their mean: -6 to 6, and 0 to 6 more.
  CHECK(at(normal.value) == interval{-6, 12});
  CHECK(at(normal.variance) == interval{});
}
