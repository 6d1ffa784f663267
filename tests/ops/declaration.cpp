// What an operation's struct must say, and what the derivative is where it says that there is none.
#include <cella/ops/activation.hpp>
#include <cella/ops/declaration.hpp>
#include <cella/ops/random.hpp>
#include <cella/transform/jacobian.hpp>

#include "errors/operations/forgotten_partial.hpp"
#include "errors/operations/misspelled_vjp.hpp"
#include "errors/operations/rule_signature.hpp"
#include "support/compiled_cases.hpp"

namespace declaration_test {

using namespace cella;

// ---- structs made of parts, and what is wrong with them

struct first_type {
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
};
struct computed {
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    std::memcpy(out[0].data, in[0].data, std::size_t(in[0].type.bytes()));
  }
};
struct doubled {
  static constexpr auto apply(auto x) { return x + x; }
};
struct ruled {
  static constexpr void vjp(node_ref, span<const var> dy, span<const char>, span<var> dx) {
    dx[0] = dy[0];
  }
};
struct forward_ruled {
  static constexpr void jvp(node_ref, span<const var> dx, span<var> dy) { dy[0] = dx[0]; }
};
struct transposed {
  static constexpr var transpose(node_ref, int, var dy) { return dy; }
};
struct partially {
  static constexpr var partial(node_ref, int) { return one_partial; }
};
/// An operation of a kind, made of parts.
template <template <class> class Kind, class... Parts>
struct made : Kind<made<Kind, Parts...>>, Parts... {
  static constexpr std::string_view name = "made";
};

template <class Op>
constexpr bool says(std::string_view wrong) {
  return info_of<Op>.fault == wrong;
}
constexpr std::string_view tags =
    "of partial, vjp, zero_derivative and not_differentiable an operation has one";
constexpr std::string_view another = "a linear operation has transpose, and no other derivative";

static_assert(says<made<elementwise, doubled, partially>>(""));
static_assert(says<made<elementwise, doubled, ruled>>(""));
static_assert(says<made<elementwise, doubled, zero_derivative>>(""));
static_assert(says<made<elementwise, doubled, not_differentiable>>(""));
static_assert(says<made<elementwise, doubled, partially, ruled>>(tags));
static_assert(says<made<elementwise, doubled, partially, zero_derivative>>(tags));
static_assert(says<made<elementwise, doubled, zero_derivative, not_differentiable>>(tags));
static_assert(says<made<elementwise, partially>>("apply is missing"));
static_assert(says<made<elementwise, doubled, computed, partially>>(
    "of apply and compute an operation has one"));
static_assert(says<made<elementwise, doubled, transposed>>(
    "transpose is no rule of an elementwise operation; write partial"));

static_assert(says<made<linear, first_type, computed, transposed>>(""));
static_assert(says<made<linear, first_type, computed>>("a linear operation needs transpose"));
static_assert(says<made<bilinear, first_type, computed>>("a linear operation needs transpose"));
static_assert(says<made<linear, first_type, computed, transposed, ruled>>(another));
static_assert(says<made<linear, first_type, computed, not_differentiable>>(another));

static_assert(says<made<opaque, first_type, computed, ruled>>(""));
static_assert(says<made<opaque, first_type, computed, not_differentiable>>(""));
static_assert(says<made<opaque, first_type, computed, ruled, zero_derivative>>(tags));
static_assert(
    says<made<opaque, computed, ruled>>("infer is missing (or results, if there are several)"));
static_assert(says<made<opaque, first_type, ruled>>("compute is missing"));
static_assert(says<made<opaque, first_type, computed, partially>>(
    "partial and transpose are no rules of an opaque operation; write vjp"));
static_assert(says<made<opaque, first_type, computed, ruled, forward_ruled>>(""));
static_assert(says<made<opaque, first_type, computed, not_differentiable, forward_ruled>>(
    "jvp stands beside vjp; elsewhere the tangents follow from the rule"));
static_assert(says<made<elementwise, doubled, partially, forward_ruled>>(
    "jvp stands beside vjp; elsewhere the tangents follow from the rule"));
static_assert(says<made<leaf, first_type, computed>>(""));
static_assert(
    says<made<leaf, first_type, computed, ruled>>("without operands there is no derivative"));

/// A rule that is there, but not as it is called: overloaded, a template, a number, hidden.
struct overloaded {
  static var transpose(node_ref, int);
  static var transpose(node_ref, var);
};
struct generic {
  static var transpose(auto, auto);
};
struct number {
  static constexpr int transpose = 1;
};
class hidden {
  static var transpose(node_ref, int, var);
};
constexpr std::string_view no_transpose =
    "transpose is not `var transpose(node_ref n, int operand, var dy)`";
static_assert(says<made<linear, first_type, computed, overloaded>>(no_transpose));
static_assert(says<made<linear, first_type, computed, generic>>(no_transpose));
static_assert(says<made<linear, first_type, computed, number>>(no_transpose));
static_assert(says<made<linear, first_type, computed, hidden>>(no_transpose));
/// One of several overloads is the rule.
struct one_of_two {
  static var transpose(node_ref, int, var);
  static var transpose(node_ref, var);
};
static_assert(says<made<linear, first_type, computed, one_of_two>>(""));

struct other_infer {
  static tensor_type infer(span<const tensor_type>);
};
struct other_compute {
  static void compute(span<const tensor_ref>, span<const tensor_ref>);
};
struct other_space {
  static iteration_space space(const attributes&);
};
struct other_batch {
  static var batch(node_ref, span<const var>, unsigned);
};
struct other_batch_options {
  static attributes batch_options(node_ref);
};
struct other_jvp {
  static void jvp(node_ref, span<const var>);
};
struct other_onnx {
  static attributes read_onnx(const onnx_attributes&);
};
struct written_only {
  static void write_onnx(span<const tensor_type>, const attributes&, onnx_attributes&);
};
struct other_bounds {
  static interval bounds(span<const interval>);
};
struct other_results {
  static void results(span<const tensor_type>, const attributes&, span<tensor_type>);
};
struct other_apply {
  static auto apply(auto, auto, auto, auto);
};
template <class Part>
constexpr bool refused(std::string_view begin) {
  return info_of<made<opaque, computed, ruled, Part>>.fault.starts_with(begin);
}
static_assert(refused<other_infer>("infer is not `tensor_type infer("));
static_assert(refused<other_results>("results is not `int results("));
static_assert(refused<other_space>("space is not `iteration_space space("));
static_assert(refused<other_jvp>("jvp is not `void jvp("));
static_assert(refused<other_onnx>("read_onnx is not `attributes read_onnx("));
static_assert(says<made<opaque, first_type, computed, ruled, written_only>>(
    "of write_onnx and read_onnx an operation has both"));
static_assert(refused<other_bounds>("bounds is not `interval bounds("));
static_assert(refused<other_batch>("batch is not `void batch("));
static_assert(refused<other_batch_options>("batch_options is not `attributes batch_options("));
static_assert(says<made<opaque, first_type, other_compute, ruled>>(
    "compute is not `void compute(const attributes& options, span<const tensor_ref> in, "
    "span<const tensor_ref> out)`"));
static_assert(says<made<elementwise, other_apply, partially>>(
    "apply is static, and takes one to three elements, behind the options if there are any"));
struct large_options {
  struct options {
    std::array<std::int32_t, 26> words{};
  };
};
static_assert(says<made<opaque, first_type, computed, ruled, large_options>>(
    "options are not a trivially copyable struct of whole words, at most 100 bytes"));

// ---- derivatives that there are not

using no_slope = made<elementwise, doubled, not_differentiable>;
using flat = made<elementwise, doubled, zero_derivative>;

/// x y, of which only the derivative by x is told.
template <class... Tags>
struct half_linear : linear<half_linear<Tags...>>, first_type, Tags... {
  static constexpr std::string_view name = "half_linear";
  static constexpr var transpose(node_ref n, int, var dy) { return dy * n.operand(1); }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    for (std::int64_t i = 0; i < in[0].type.size(); ++i)
      write_element(out[0], i, read_element(in[0], i) * read_element(in[1], i));
  }
};
/// One number -> the number, twice, without a derivative or with one of zero.
template <class Tag>
struct two_op : opaque<two_op<Tag>>, Tag {
  static constexpr std::string_view name = "two";
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    out[0] = out[1] = in[0];
    return 2;
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    for (std::size_t k = 0; k < 2; ++k) write_element(out[k], 0, read_element(in[0], 0));
  }
};

template <class Op, class... More>
constexpr var apply(var x, More... more) {
  return emit<Op>({}, std::source_location::current(), x, more...);
}
template <class Tag>
constexpr var second_of_two(var x) {
  return {x.b, x.b->get(apply<two_op<Tag>>(x).id, 1)};
}

}  // namespace declaration_test

using namespace declaration_test;
using namespace cella::test;

TEST_CASE("the mended operations of the documents have the derivatives of their functions") {
  static constexpr gradient_case cases[] = {
      {"a partial", [](var x) { return apply<forgotten_partial::cube_op>(x); }, {{.extents = {3}}}},
      {"a signature", [](var x) { return apply<rule_signature::cube_op>(x); }, {{.extents = {3}}}},
      {"a vjp",
       [](var x) { return apply<misspelled_vjp::direction_op>(x); },
       {{.extents = {3}, .low = 0.5}}},
  };
  check_gradients<cases>();
}

TEST_CASE("where a derivative is zero almost everywhere it is zero in both modes") {
  const auto x = f64({3}, {-0.75, 0.5, 2.25});
  const reals zero(3, 0.0);
  auto check = [&](auto f) {
    CHECK(eval([=](var v) { return grad([=](var t) { return sum(f(t)); })(v); }, x).values == zero);
    CHECK(eval([=](var v) { return jvp(f, v, ones_like(v)).second; }, x).values == zero);
  };
  check([](var v) { return floor(v); });
  check([](var v) { return ceil(v); });
  check([](var v) { return round(v); });
  check([](var v) { return trunc(v); });
  check([](var v) { return sign(v); });
  check([](var v) { return floor_div(v, 2); });
  check([](var v) { return stop_gradient(v); });
  check([](var v) { return select(v > 0, ones_like(v), zeros_like(v)); });
  check([](var v) { return cast(argmax(v, 0), dtype::f64) * ones_like(v); });
  check([](var v) { return one_hot(argmax(v, 0), 3, dtype::f64); });
  check([](var v) { return apply<flat>(v); });
  const auto one = scalar(2);
  CHECK(eval([](var v) { return jvp(second_of_two<zero_derivative>, v, v).second; }, one).values ==
        reals{0});
}

TEST_CASE("the derivative of an operation that has none is a fault, in both modes") {
  const std::vector<tensor_type> one{{dtype::f64, {}}};
  auto reverse = [&](auto f) {
    return fault([=](const vars& v) { return vars{grad(f)(v[0])}; }, one);
  };
  auto forward = [&](auto f) {
    return fault([=](const vars& v) { return vars{jvp(f, v[0], v[0]).second}; }, one);
  };
  const std::string remedy = "; give it a derivative with custom_vjp(), or hand it stop_gradient()";
  auto slopeless = [](var v) { return apply<no_slope>(v * 2); };
  CHECK(reverse(slopeless) == "made: is not differentiable by mul result f64[]" + remedy);
  CHECK(forward(slopeless) == "made: is not differentiable by mul result f64[]" + remedy);
  auto two = [](var v) { return second_of_two<not_differentiable>(v * 2); };
  CHECK(reverse(two) == "two: is not differentiable by mul result f64[]" + remedy);
  CHECK(forward(two) == "two: is not differentiable by mul result f64[]" + remedy);
  auto half = [](var v) { return apply<half_linear<>>(v, v * 2); };
  CHECK(reverse(half) == "half_linear: is not differentiable by mul result f64[]" + remedy);
  CHECK(forward(half) == "half_linear: is not differentiable by mul result f64[]" + remedy);
}

TEST_CASE("an operation without a derivative may stand where none is asked for") {
  const auto x = scalar(3);
  auto slope = [&](auto f) { return eval([=](var v) { return grad(f)(v); }, x).values; };
  auto along = [&](auto f) {
    return eval([=](var v) { return jvp(f, v, ones_like(v)).second; }, x).values;
  };
  auto behind_stop = [](var v) { return apply<no_slope>(stop_gradient(v) + 1) * v; };
  CHECK(slope(behind_stop) == reals{8});
  CHECK(along(behind_stop) == reals{8});
  auto before_floor = [](var v) { return floor(apply<no_slope>(stop_gradient(v))) + v; };
  CHECK(slope(before_floor) == reals{1});
  CHECK(along(before_floor) == reals{1});
  auto compared = [](var v) { return select(apply<no_slope>(stop_gradient(v)) > 1, v, v * 2); };
  CHECK(slope(compared) == reals{1});
  auto half = [](var v) { return apply<half_linear<>>(v, stop_gradient(v)); };
  CHECK(slope(half) == reals{3});
  CHECK(along(half) == reals{3});
  auto tagged = [](var v) { return apply<half_linear<zero_derivative>>(v, v); };
  CHECK(slope(tagged) == reals{3});
  CHECK(along(tagged) == reals{3});
}
