// Options as attributes of ONNX, and back. What is expected of ONNX is written down from its
// specification (github.com/onnx/onnx/blob/main/docs/Operators.md) and its own tests.
#include <doctest/doctest.h>

#include <cella/interop/onnx.hpp>
#include <map>
#include <set>

#include "support/every_operation.hpp"

using namespace cella;

namespace {

using ints = list<std::int64_t>;
using named = list<onnx_attribute>;

onnx_attributes attributes_of(std::string_view op, const named& values) {
  onnx_attributes all(op);
  for (const auto& [name, value] : values) all.set(name, value);
  return all;
}
std::vector<tensor_type> floats(const std::vector<shape>& shapes) {
  std::vector<tensor_type> all;
  for (const shape& s : shapes) all.push_back({dtype::f32, s});
  return all;
}
template <class Op>
named write(const attributes& o, const std::vector<shape>& shapes) {
  return onnx_attributes_of(info_of<Op>, floats(shapes), o).values();
}
template <class Op>
attributes read(const named& values, const std::vector<shape>& shapes) {
  const op_info& op = info_of<Op>;
  return options_from_onnx(op, floats(shapes), attributes_of(op.onnx.name, values));
}
template <class Op>
std::string refusal(const named& values, const std::vector<shape>& shapes) {
  try {
    (void)read<Op>(values, shapes);
  } catch (const error& e) { return e.what(); }
  return "";
}

/// What ONNX has other places for is not in its attributes.
attributes expected(const op_info& op, const attributes& o) {
  if (&op == &info_of<cumsum_op>) {
    auto a = o.as<cumsum_op::options>();
    a.axis = 0;
    return a;
  }
  if (op.name == "max_pool" || op.name == "average_pool") {
    auto a = o.as<pooling_options>();
    a.extents = {};
    if (op.name == "max_pool") a.count_padding = 1;  // which says nothing there
    return a;
  }
  return o;
}

}  // namespace

TEST_CASE("options of operations come back from the attributes of ONNX") {
  builder b;
  test::build_every_operation(b);
  clamp(var{&b, b.input({dtype::f32, {2}}, input_role::argument, "x")}, -0.5, 6);
  std::set<std::string_view> seen, refused;
  for (node_id n = 0; n < node_id(b.g.nodes.size()); ++n) {
    const node& x = b.g.nodes[std::size_t(n)];
    // Options of clamp are doubles, ONNX's numbers are floats: 0.2 would not come back.
    if (x.op->onnx.name.empty() || (is<clamp_op>(x) && x.type.element != dtype::f32)) continue;
    INFO(x.op->name);
    std::vector<tensor_type> types;
    for (node_id o : b.g.operands(n)) types.push_back(b.g.type(o));
    try {
      const onnx_attributes written = onnx_attributes_of(*x.op, types, x.attributes);
      CHECK(options_from_onnx(*x.op, types, written) == expected(*x.op, x.attributes));
      CHECK(onnx_attributes_of(*x.op, types, options_from_onnx(*x.op, types, written)) == written);
      seen.insert(x.op->name);
    } catch (const file_error& e) { FAIL(e.what()); } catch (const error&) {
      refused.insert(x.op->name);
    }
  }
  CHECK(refused == std::set<std::string_view>{"broadcast", "constant", "matmul", "one_hot",
                                              "reshape", "slice", "values"});
  for (const op_info* op : all_operations::infos) {
    INFO(op->name);
    if (op->write_onnx) CHECK(seen.count(op->name) == 1);
    CHECK((op->onnx.since > 0) == !op->onnx.name.empty());
  }
}

TEST_CASE(
    "windows in ONNX: strides, pads before and behind, dilations, groups, the filter's extents") {
  const window w{{2, 1}, {1, 0}, {2, 3}, {1, 2}, 2};
  const std::vector<shape> shapes{{1, 4, 7, 8}, {6, 2, 3, 2}};
  const named all{{"kernel_shape", ints{3, 2}},
                  {"strides", ints{2, 1}},
                  {"pads", ints{1, 0, 2, 3}},
                  {"dilations", ints{1, 2}},
                  {"group", std::int64_t{2}}};
  CHECK(write<convolution_op>(convolution_options{w, {}}, shapes) == all);
  CHECK(read<convolution_op>(all, shapes) == attributes(convolution_options{w, {}}));
  // All are optional.
  CHECK(read<convolution_op>({}, shapes) == attributes(convolution_options{}));
  CHECK(refusal<convolution_op>({{"kernel_shape", ints{3, 3}}}, shapes) ==
        "the attribute \"kernel_shape\" of the ONNX operator Conv is not that of the filter");
  CHECK(refusal<convolution_op>({{"strides", ints{2}}}, shapes) ==
        "the attribute \"strides\" of the ONNX operator Conv has another length than 2");
  CHECK(refusal<convolution_op>({{"group", 2.0f}}, shapes) ==
        "the attribute \"group\" of the ONNX operator Conv must be an INT");
  CHECK(refusal<convolution_op>({{"group", std::int64_t{1} << 40}}, shapes) ==
        "the attribute \"group\" of the ONNX operator Conv is larger than 32 bits");
  CHECK(refusal<convolution_op>({{"axis", std::int64_t{1}}}, shapes) ==
        "the attribute \"axis\" of the ONNX operator Conv is unknown to Cella");
  CHECK(refusal<convolution_op>({{"auto_pad", std::string("VALID")}, {"pads", ints{0, 0, 0, 0}}},
                                shapes) ==
        "the attribute \"pads\" of the ONNX operator Conv stands beside auto_pad");
}

TEST_CASE("auto_pad of ONNX as pads") {
  auto pads = [](const std::string& way, int extent, std::int64_t kernel, std::int64_t stride) {
    const named all{{"auto_pad", way},
                    {"kernel_shape", ints{kernel, kernel}},
                    {"strides", ints{stride, stride}}};
    const auto o = read<max_pool_op>(all, {{1, 1, extent, extent}}).as<pooling_options>();
    return std::array{o.window.before[0], o.window.after[0],
                      o.window.positions(extent, std::int32_t(kernel), 0)};
  };
  // ONNX's tests maxpool_2d_same_upper, _same_lower, _precomputed_same_upper, _default.
  CHECK(pads("SAME_UPPER", 32, 2, 1) == std::array{0, 1, 32});
  CHECK(pads("SAME_LOWER", 32, 2, 1) == std::array{1, 0, 32});
  CHECK(pads("SAME_UPPER", 5, 3, 2) == std::array{1, 1, 3});
  CHECK(pads("VALID", 32, 2, 1) == std::array{0, 0, 31});
  CHECK(pads("NOTSET", 32, 2, 1) == std::array{0, 0, 31});
  // conv_with_autopad_same: 5 x 5 by 3 x 3, strides 2, gives 3 x 3.
  const std::vector<shape> shapes{{1, 1, 5, 5}, {1, 1, 3, 3}};
  const attributes o = read<convolution_op>(
      {{"auto_pad", std::string("SAME_LOWER")}, {"strides", ints{2, 2}}}, shapes);
  CHECK(convolution_op::infer(floats(shapes), o).shape == shape{1, 1, 3, 3});
}

TEST_CASE("pools in ONNX") {
  const pooling_options o{{{1, 2}, {1, 0}, {0, 1}, {1, 1}, 1}, {3, 2}, {}, 0};
  const std::vector<shape> shapes{{1, 1, 8, 8}};
  named all{{"kernel_shape", ints{3, 2}}, {"strides", ints{1, 2}}, {"pads", ints{1, 0, 0, 1}}};
  CHECK(write<max_pool_op>(o, shapes) == all);
  all.push_back({"count_include_pad", 0});
  CHECK(write<average_pool_op>(o, shapes) == all);
  // Strides are 1 by default, not the window; zeros do not count.
  const pooling_options plain{{}, {2, 2}, {}, 0};
  CHECK(read<average_pool_op>({{"kernel_shape", ints{2, 2}}}, shapes) == attributes(plain));
  CHECK(refusal<max_pool_op>({{"ceil_mode", std::int64_t{1}}}, shapes) ==
        "the attribute \"ceil_mode\" of the ONNX operator MaxPool must be 0 here");
  CHECK(refusal<max_pool_op>({}, shapes) ==
        "the attribute \"kernel_shape\" of the ONNX operator MaxPool is missing");
}

TEST_CASE("transposed convolutions in ONNX") {
  // ONNX's tests convtranspose_pads and convtranspose_kernel_shape, whose results are 7 x 3 and
  // 10 x 8.
  using op = convolution_input_gradient_op;
  const std::vector<shape> shapes{{1, 1, 3, 3}, {1, 2, 3, 3}};
  auto result = [&](const named& values) {
    return op::infer(floats(shapes), read<op>(values, shapes)).shape;
  };
  CHECK(result({{"strides", ints{3, 2}}, {"pads", ints{1, 2, 1, 2}}}) == shape{1, 2, 7, 3});
  CHECK(result({{"strides", ints{3, 2}}, {"output_padding", ints{1, 1}}}) == shape{1, 2, 10, 8});
  CHECK(result({}) == shape{1, 2, 5, 5});
  CHECK(refusal<op>({{"auto_pad", std::string("SAME_UPPER")}}, shapes) ==
        "the attribute \"auto_pad\" of the ONNX operator ConvTranspose is not told as pads");
}

TEST_CASE("axes in ONNX count from the end, too, and have defaults") {
  const std::vector<shape> one{{2, 3, 4}};
  const std::int64_t last = -1, none = 0;
  CHECK(write<transpose_op>(transpose_op::options{{2, 0, 1, -1, -1, -1, -1, -1}}, one) ==
        named{{"perm", ints{2, 0, 1}}});
  CHECK(read<transpose_op>({}, one) ==
        attributes(transpose_op::options{{2, 1, 0, -1, -1, -1, -1, -1}}));
  CHECK(refusal<transpose_op>({{"perm", ints{0, 0, 1}}}, one) ==
        "the attribute \"perm\" of the ONNX operator Transpose does not name each axis once");
  CHECK(read<softmax_op>({}, one) == attributes(detail::axis_options{2}));
  CHECK(read<log_softmax_op>({{"axis", std::int64_t{-3}}}, one) ==
        attributes(detail::axis_options{0}));
  CHECK(write<softmax_op>(detail::axis_options{1}, one) == named{{"axis", std::int64_t{1}}});
  CHECK(read<concat_op>({{"axis", last}}, {{2, 3}, {2, 1}}) == attributes(concat_op::options{1}));
  CHECK(write<concat_op>(concat_op::options{1}, {{2, 3}, {2, 1}}) ==
        named{{"axis", std::int64_t{1}}});
  CHECK(read<gather_op>({}, {{5, 3}, {2, 2}}) == attributes(detail::indexing_options{0, 5, 2}));
  CHECK(read<gather_op>({{"axis", last}}, {{5, 3}, {2}}) ==
        attributes(detail::indexing_options{1, 3, 1}));
  CHECK(refusal<gather_op>({{"axis", std::int64_t{2}}}, {{5, 3}, {2}}) ==
        "the attribute \"axis\" of the ONNX operator Gather names axis 2 of 2");
  CHECK(write<sum_op>(axes_options{0b101}, one) == named{{"axes", ints{0, 2}}, {"keepdims", none}});
  CHECK(read<max_op>({{"axes", ints{-1, 0}}, {"keepdims", none}}, one) ==
        attributes(axes_options{0b101}));
  CHECK(read<prod_op>({{"keepdims", none}}, one) == attributes(axes_options{0b111}));
  CHECK(refusal<min_op>({{"axes", ints{1}}}, one) ==
        "the attribute \"keepdims\" of the ONNX operator ReduceMin must be 0 here");
  CHECK(write<argmax_op>(detail::axis_options{1}, one) ==
        named{{"axis", std::int64_t{1}}, {"keepdims", none}});
  CHECK(read<argmin_op>({{"keepdims", none}}, one) == attributes(detail::axis_options{0}));
  CHECK(write<cumsum_op>(cumsum_op::options{1, 1, 0}, one) ==
        named{{"exclusive", none}, {"reverse", std::int64_t{1}}});
}

TEST_CASE("element types, limits and losses in ONNX") {
  // TensorProto.DataType
  const std::map<dtype, int> codes{{dtype::f32, 1},  {dtype::u8, 2},   {dtype::i8, 3},
                                   {dtype::i32, 6},  {dtype::i64, 7},  {dtype::boolean, 9},
                                   {dtype::f16, 10}, {dtype::f64, 11}, {dtype::bf16, 16}};
  for (const auto& [t, code] : codes) {
    CHECK(onnx_code(t) == code);
    const attributes o = cast_op::options{{std::int32_t(t)}};
    CHECK(write<cast_op>(o, {{2}}) == named{{"to", t}});
    CHECK(read<cast_op>({{"to", std::int64_t{code}}}, {{2}}) == o);
  }
  CHECK(onnx_code(dtype::record) == -1);
  CHECK(refusal<cast_op>({{"to", std::int64_t{8}}}, {{2}}) ==
        "the attribute \"to\" of the ONNX operator Cast names an element type that Cella lacks");
  CHECK(refusal<cast_op>({}, {{2}}) == "the attribute \"to\" of the ONNX operator Cast is missing");
  CHECK(write<clamp_op>(clamp_op::options{0, 6}, {{2}}) == named{{"min", 0.f}, {"max", 6.f}});
  // Without a limit there is that of the floats.
  CHECK(read<clamp_op>({{"min", -1.f}}, {{2}}) ==
        attributes(clamp_op::options{-1, 3.4028234663852886e38}));
  CHECK(write<cross_entropy_op>({}, {{2, 3}, {2}}) == named{{"reduction", std::string("none")}});
  CHECK(refusal<cross_entropy_op>({}, {{2, 3}, {2}}) ==
        "the attribute \"reduction\" of the ONNX operator SoftmaxCrossEntropyLoss must be \"none\" "
        "here");
}

namespace {

/// An operation of somebody's own domain.
struct smooth_op : elementwise<smooth_op>, not_differentiable {
  static constexpr std::string_view name = "smooth";
  static constexpr onnx_operator onnx{"Smooth", 1, "example.org"};
  struct options {
    double width = 1;
    std::int32_t axis{};
    std::array<std::int32_t, 2> steps{};
    std::uint32_t over{};
    stored_dtype as{};
    cella::shape shape{};
    std::array<char, 8> mode{};
  };
  static constexpr auto apply(options, auto x) { return x; }
};

}  // namespace

TEST_CASE("fields of one's own operation are attributes of one's own operator, by their names") {
  const smooth_op::options o{0.5, 1, {3, 4}, 0b110, {std::int32_t(dtype::f16)}, {2, 0}, {'l', 'o'}};
  const named all{{"width", 0.5f},
                  {"axis", std::int64_t{1}},
                  {"steps", ints{3, 4}},
                  {"over", ints{1, 2}},
                  {"as", dtype::f16},
                  {"shape", ints{2, 0}},
                  {"mode", std::string("lo")}};
  CHECK(write<smooth_op>(o, {{2, 3}}) == all);
  CHECK(read<smooth_op>(all, {{2, 3}}) == attributes(o));
  CHECK(read<smooth_op>({{"axis", std::int64_t{-1}}}, {{2, 3}}) ==
        attributes(smooth_op::options{.axis = 1}));
  CHECK(refusal<smooth_op>({{"steps", ints{1}}}, {{2}}) ==
        "the attribute \"steps\" of the ONNX operator Smooth has another length");
  CHECK(refusal<smooth_op>({{"mode", std::string("too long")}}, {{2}}) ==
        "the attribute \"mode\" of the ONNX operator Smooth is too long");
  CHECK(refusal<smooth_op>({{"high", 1.f}}, {{2}}) ==
        "the attribute \"high\" of the ONNX operator Smooth is unknown to Cella");
}

TEST_CASE("operations that ONNX lacks, or gives operands, have no attributes") {
  auto why = [](const op_info& op) -> std::string {
    try {
      onnx_attributes_of(op, {}, {});
    } catch (const error& e) { return e.what(); }
    return "";
  };
  CHECK(why(info_of<add_op>) == "");
  CHECK(why(info_of<rsqrt_op>) == "the operation \"rsqrt\" has no counterpart in ONNX");
  CHECK(why(info_of<reshape_op>) ==
        "the options of the operation \"reshape\" are operands of the ONNX operator Reshape, and "
        "no attributes");
}
