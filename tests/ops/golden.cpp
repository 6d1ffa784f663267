// Every golden case of an operation, and of recurrent layers and attention: values and gradients in
// double, in eager mode, through a graph traced at run time, and planned on kernels. A case that is
// not met is a failure.
#include <cella/nn/attention.hpp>
#include <cella/nn/ctc_loss.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/ops/attention.hpp>
#include <cella/ops/convolution_nd.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/image.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cella/ops/loss.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/transform/gradient.hpp>
#include <map>
#include <string>
#include <vector>

#include "support/golden_runs.hpp"

using namespace cella;
using namespace cella::test;
using nlohmann::json;

namespace {

using ints = std::vector<int>;
using unary_function = var (*)(operand);
using binary_function = var (*)(operand, operand);

const std::map<std::string, unary_function> unary{
    {"abs", abs},
    {"exp", exp},
    {"expm1", expm1},
    {"sin", sin},
    {"cos", cos},
    {"tanh", tanh},
    {"sinh", sinh},
    {"cosh", cosh},
    {"atan", atan},
    {"asinh", asinh},
    {"erf", erf},
    {"erfc", erfc},
    {"square", square},
    {"sign", sign},
    {"floor", floor},
    {"ceil", ceil},
    {"round", round},
    {"sigmoid", sigmoid},
    {"relu", relu},
    {"relu6", relu6},
    {"softplus", softplus},
    {"selu", selu},
    {"silu", silu},
    {"mish", mish},
    {"hard_swish", hard_swish},
    {"hard_sigmoid", hard_sigmoid},
    {"log_sigmoid", log_sigmoid},
    {"softsign", softsign},
    {"tan", tan},
    {"log", log},
    {"log1p", log1p},
    {"sqrt", sqrt},
    {"rsqrt", rsqrt},
    {"reciprocal", reciprocal},
    {"log2", log2},
    {"asin", asin},
    {"acos", acos},
    {"atanh", atanh},
    {"acosh", acosh},
    {"logical_not", logical_not},
    {"flatten", flatten},
    {"diag", diag},
    {"trace", trace},
    {"global_avg_pool", global_average_pool},
};

const std::map<std::string, binary_function> binary{
    {"maximum", maximum},
    {"minimum", minimum},
    {"pow", pow},
    {"atan2", atan2},
    {"squared_difference", squared_difference},
    {"floor_div", floor_div},
    {"mod", mod},
    {"fmod", fmod},
    {"equal", equal},
    {"not_equal", not_equal},
    {"greater", greater},
    {"greater_equal", greater_equal},
    {"less", less},
    {"less_equal", less_equal},
    {"logical_and", logical_and},
    {"logical_or", logical_or},
    {"logical_xor", logical_xor},
    {"outer", outer},
    {"embedding", embedding},
    {"gather_nd", gather_nd},
    {"mse_loss", mean_squared_error},
    {"kl_div", kl_div},
};

shape extents(const json& list) {
  shape s;
  for (int e : list) s.push_back(e);
  return s;
}
template <var (*Reduce)(operand, const axis_list&, bool)>
vars reduce(const vars& x, const json& a) {
  return {Reduce(x[0], a.at("axes").get<ints>(), a.value("keep_dims", false))};
}
/// A number, or one per direction.
std::array<int, 2> pair(const json& a, const char* key, int otherwise) {
  const json v = a.value(key, json(otherwise));
  if (v.is_array()) return {v[0], v[1]};
  return {v.get<int>(), v.get<int>()};
}
window walk(const json& a) {
  const auto padding = pair(a, "padding", 0);
  return {pair(a, "stride", 1), padding, padding, pair(a, "dilation", 1), a.value("groups", 1)};
}
var with_bias(var y, const vars& x) {
  if (x.size() < 3) return y;
  shape s = x[2].shape();
  while (s.rank < y.rank() - 1) s.push_back(1);
  return y + reshape(x[2], s);
}
var vector_like(var like, const json& numbers) {
  vars parts;
  for (double v : numbers) parts.push_back(constant(*like.b, v, {like.element(), {1}}));
  return concat(parts, 0);
}

const std::map<std::string, golden_function> others{
    {"neg", [](const vars& x, const json&) { return vars{-x[0]}; }},
    {"add", [](const vars& x, const json&) { return vars{x[0] + x[1]}; }},
    {"sub", [](const vars& x, const json&) { return vars{x[0] - x[1]}; }},
    {"mul", [](const vars& x, const json&) { return vars{x[0] * x[1]}; }},
    {"div", [](const vars& x, const json&) { return vars{x[0] / x[1]}; }},
    {"add_n", [](const vars& x, const json&) { return vars{x[0] + x[1] + x[2]}; }},
    {"lerp", [](const vars& x, const json&) { return vars{lerp(x[0], x[1], x[2])}; }},
    {"select", [](const vars& x, const json&) { return vars{select(x[0], x[1], x[2])}; }},
    {"elu", [](const vars& x, const json& a) { return vars{elu(x[0], a.value("alpha", 1.0))}; }},
    {"gelu",
     [](const vars& x, const json& a) {
       return vars{a.value("approximate", "none") == "tanh" ? gelu_tanh(x[0]) : gelu(x[0])};
     }},
    {"leaky_relu",
     [](const vars& x, const json& a) { return vars{leaky_relu(x[0], a.at("negative_slope"))}; }},
    {"prelu",
     [](const vars& x, const json&) {
       return vars{prelu(x[0], reshape(x[1], {x[1].extent(0), 1}))};
     }},
    {"clamp",
     [](const vars& x, const json& a) { return vars{clamp(x[0], a.at("min"), a.at("max"))}; }},

    {"reduce_sum", reduce<sum>},
    {"reduce_mean", reduce<mean>},
    {"reduce_max", reduce<max>},
    {"reduce_min", reduce<min>},
    {"reduce_prod", reduce<prod>},
    {"reduce_variance", reduce<variance>},
    {"reduce_all", reduce<all>},
    {"reduce_any", reduce<any>},
    {"logsumexp", reduce<logsumexp>},
    {"l2_norm", reduce<l2_norm>},
    {"l2_normalize",
     [](const vars& x, const json& a) {
       return vars{l2_normalize(x[0], a.at("axes").get<ints>(), a.at("epsilon"))};
     }},
    {"argmax", [](const vars& x, const json& a) { return vars{argmax(x[0], a.at("axis"))}; }},
    {"argmin", [](const vars& x, const json& a) { return vars{argmin(x[0], a.at("axis"))}; }},
    {"cumsum",
     [](const vars& x, const json& a) {
       return vars{cumsum(x[0], a.at("axis"), a.at("reverse"), a.at("exclusive"))};
     }},
    {"cumprod", [](const vars& x, const json& a) { return vars{cumprod(x[0], a.at("axis"))}; }},

    {"reshape",
     [](const vars& x, const json& a) { return vars{reshape(x[0], extents(a.at("shape")))}; }},
    {"transpose",
     [](const vars& x, const json& a) {
       return vars{transpose(x[0], a.at("permutation").get<ints>())};
     }},
    {"expand_dims",
     [](const vars& x, const json& a) { return vars{expand_dims(x[0], a.at("axis"))}; }},
    {"squeeze", [](const vars& x, const json& a) { return vars{squeeze(x[0], a.at("axis"))}; }},
    {"concat", [](const vars& x, const json& a) { return vars{concat(x, a.at("axis"))}; }},
    {"stack", [](const vars& x, const json& a) { return vars{stack(x, a.at("axis"))}; }},
    {"split",
     [](const vars& x, const json& a) { return split(x[0], a.at("count"), a.at("axis")); }},
    {"unstack", [](const vars& x, const json& a) { return unstack(x[0], a.at("axis")); }},
    {"tile",
     [](const vars& x, const json& a) { return vars{tile(x[0], a.at("multiples").get<ints>())}; }},
    {"broadcast_to",
     [](const vars& x, const json& a) { return vars{broadcast_to(x[0], extents(a.at("shape")))}; }},
    {"slice",
     [](const vars& x, const json& a) {
       const ints begin = a.at("begin");
       ints end = a.at("size");
       for (std::size_t i = 0; i < end.size(); ++i) end[i] += begin[i];
       return vars{strided_slice(x[0], begin, end)};
     }},
    {"strided_slice",
     [](const vars& x, const json& a) {
       return vars{strided_slice(x[0], a.at("begin").get<ints>(), a.at("end").get<ints>(),
                                 a.at("strides").get<ints>())};
     }},
    {"reverse",
     [](const vars& x, const json& a) { return vars{reverse(x[0], a.at("axes").get<ints>())}; }},
    {"pad",
     [](const vars& x, const json& a) {
       const ints before = a.at("before"), after = a.at("after");
       if (a.at("mode") == "reflect") return vars{pad_reflect(x[0], before, after)};
       if (a.at("mode") == "replicate") return vars{pad_replicate(x[0], before, after)};
       return vars{pad(x[0], before, after, a.at("value"))};
     }},

    {"gather", [](const vars& x, const json& a) { return vars{gather(x[0], x[1], a.at("axis"))}; }},
    {"gather_elements",
     [](const vars& x, const json& a) { return vars{gather_elements(x[0], x[1], a.at("axis"))}; }},
    {"scatter_nd",
     [](const vars& x, const json& a) {
       return vars{scatter_nd(x[0], x[1], extents(a.at("shape")))};
     }},
    {"scatter_update",
     [](const vars& x, const json&) { return vars{scatter_update(x[0], x[1], x[2])}; }},
    {"scatter_add", [](const vars& x, const json&) { return vars{scatter_add(x[0], x[1], x[2])}; }},
    {"unsorted_segment_sum",
     [](const vars& x, const json& a) { return vars{scatter(x[0], x[1], a.at("num_segments"))}; }},
    {"one_hot",
     [](const vars& x, const json& a) { return vars{one_hot(x[0], a.at("depth"), dtype::f64)}; }},
    {"tril", [](const vars& x, const json& a) { return vars{tril(x[0], a.value("diagonal", 0))}; }},
    {"triu", [](const vars& x, const json& a) { return vars{triu(x[0], a.value("diagonal", 0))}; }},

    {"space_to_depth",
     [](const vars& x, const json& a) { return vars{space_to_depth(x[0], a.at("block"))}; }},
    {"depth_to_space",
     [](const vars& x, const json& a) { return vars{depth_to_space(x[0], a.at("block"))}; }},
    {"resize_nearest",
     [](const vars& x, const json& a) {
       return vars{resize_nearest(x[0], a.at("size")[0], a.at("size")[1])};
     }},
    {"resize_bilinear",
     [](const vars& x, const json& a) {
       return vars{resize_bilinear(x[0], a.at("size")[0], a.at("size")[1], a.at("align_corners"))};
     }},
    {"im2col",
     [](const vars& x, const json& a) {
       return vars{im2col(x[0], a.at("kernel"), a.at("stride"), a.at("padding"))};
     }},

    {"matmul",
     [](const vars& x, const json& a) {
       return vars{
           matmul(x[0], x[1], a.value("transpose_a", false), a.value("transpose_b", false))};
     }},
    {"batch_matmul", [](const vars& x, const json&) { return vars{matmul(x[0], x[1])}; }},
    {"tensor_dot",
     [](const vars& x, const json& a) {
       return vars{
           tensor_dot(x[0], x[1], a.at("axes")[0].get<ints>(), a.at("axes")[1].get<ints>())};
     }},
    {"conv2d",
     [](const vars& x, const json& a) { return vars{with_bias(conv2d(x[0], x[1], walk(a)), x)}; }},
    {"conv3d",
     [](const vars& x, const json& a) {
       const int p = a.at("padding");
       return vars{conv3d(x[0], x[1], {.before = {p, p, p}, .after = {p, p, p}})};
     }},
    {"inverse", [](const vars& x, const json&) { return vars{inv(x[0])}; }},
    {"cholesky",
     [](const vars& x, const json&) {
       return vars{cholesky((x[0] + transpose(x[0], {1, 0})) * 0.5)};
     }},
    {"conv2d_transpose",
     [](const vars& x, const json& a) {
       return vars{
           with_bias(conv2d_transpose(x[0], x[1], walk(a), pair(a, "output_padding", 0)), x)};
     }},
    {"conv1d",
     [](const vars& x, const json& a) {
       const var y = conv1d(x[0], x[1], a.value("stride", 1), a.value("pad_left", 0),
                            a.value("pad_right", 0), a.value("dilation", 1), a.value("groups", 1));
       return vars{with_bias(y, x)};
     }},
    {"max_pool2d",
     [](const vars& x, const json& a) {
       return vars{max_pool(x[0], a.at("kernel"), a.at("stride"), a.at("padding"))};
     }},
    {"avg_pool2d",
     [](const vars& x, const json& a) {
       return vars{average_pool(x[0], a.at("kernel"), a.at("stride"), a.at("padding"),
                                a.value("count_include_pad", true))};
     }},

    {"softmax",
     [](const vars& x, const json& a) { return vars{softmax(x[0], a.value("axis", -1))}; }},
    {"log_softmax",
     [](const vars& x, const json& a) { return vars{log_softmax(x[0], a.value("axis", -1))}; }},
    {"batch_norm",
     [](const vars& x, const json& a) {
       const double epsilon = a.at("epsilon");
       if (a.at("training")) return vars{batch_norm(x[0], x[1], x[2], epsilon).value};
       return vars{batch_norm(x[0], x[1], x[2], vector_like(x[1], a.at("running_mean")),
                              vector_like(x[1], a.at("running_variance")), epsilon)};
     }},
    {"layer_norm",
     [](const vars& x, const json& a) {
       return vars{layer_norm(x[0], x[1], x[2], {-1}, a.at("epsilon"))};
     }},
    {"rms_norm", [](const vars& x,
                    const json& a) { return vars{rms_norm(x[0], x[1], {-1}, a.at("epsilon"))}; }},
    {"group_norm",
     [](const vars& x, const json& a) {
       return vars{group_norm(x[0], x[1], x[2], a.at("groups"), a.at("epsilon"))};
     }},
    {"instance_norm",
     [](const vars& x, const json& a) { return vars{instance_norm(x[0], a.at("epsilon"))}; }},
    {"local_response_norm",
     [](const vars& x, const json& a) {
       return vars{local_response_norm(x[0], a.at("size"), a.at("alpha"), a.at("beta"), a.at("k"))};
     }},

    {"softmax_cross_entropy",
     [](const vars& x, const json& a) {
       cross_entropy_options o;
       o.label_smoothing = a.value("label_smoothing", 0.0);
       if (a.contains("ignore_index")) o.ignored_label = a.at("ignore_index").get<int>();
       return vars{softmax_cross_entropy(x[0], x[1], o)};
     }},
    {"sigmoid_cross_entropy",
     [](const vars& x, const json&) { return vars{sigmoid_cross_entropy(x[0], x[1])}; }},
    {"binary_cross_entropy",
     [](const vars& x, const json&) { return vars{binary_cross_entropy(x[0], x[1])}; }},
    {"l1_loss", [](const vars& x, const json&) { return vars{l1_loss(x[0], x[1])}; }},
    {"smooth_l1_loss",
     [](const vars& x, const json& a) { return vars{smooth_l1_loss(x[0], x[1], a.at("beta"))}; }},
    {"huber_loss",
     [](const vars& x, const json& a) { return vars{huber_loss(x[0], x[1], a.at("delta"))}; }},
    {"nll_loss", [](const vars& x, const json&) { return vars{nll_loss(x[0], x[1])}; }},
    {"ctc_loss",
     [](const vars& x, const json& a) {
       const std::vector<ints> rows = a.at("targets");
       vars targets;
       for (const ints& r : rows) targets.push_back(constant(x[0], r, {int(r.size())}, dtype::i32));
       const auto lengths = [&](const char* key) {
         const ints n = a.at(key);
         return constant(x[0], n, {int(n.size())}, dtype::i32);
       };
       return vars{ctc_loss(log_softmax(x[0], 2), stack(targets, 0), lengths("input_lengths"),
                            lengths("target_lengths"),
                            {.blank = a.at("blank"), .reduce = reduction::none})};
     }},
    {"top_k",
     [](const vars& x, const json& a) {
       const auto y = top_k(x[0], a.at("k"));
       return vars{y.values, y.indices};
     }},
    {"sort",
     [](const vars& x, const json& a) {
       const bool descending = a.at("descending");
       return vars{sort(x[0], a.at("axis"), descending), argsort(x[0], a.at("axis"), descending)};
     }},
    {"cosine_similarity",
     [](const vars& x, const json&) { return vars{cosine_similarity(x[0], x[1])}; }},
    {"scaled_dot_product_attention",
     [](const vars& x, const json& a) {
       return vars{scaled_dot_product_attention(x[0], x[1], x[2], a.at("causal"))};
     }},
};

bool known(const std::string& op) {
  return unary.contains(op) || binary.contains(op) || others.contains(op);
}
vars apply(const golden_case& c, const vars& x) {
  if (const auto f = unary.find(c.op); f != unary.end()) return {f->second(x[0])};
  if (const auto f = binary.find(c.op); f != binary.end()) {
    return {c.op == "embedding" ? embedding(x[1], x[0]) : f->second(x[0], x[1])};
  }
  return others.at(c.op)(x, c.attrs);
}

/// PyTorch's gradient of hard_sigmoid divides by six in single precision, whatever the type.
double tolerance(const golden_case& c) { return c.op == "hard_sigmoid" ? 1e-7 : 1e-10; }

using layer_function = sequence_result (*)(var, const recurrent_weights&, std::source_location);
template <layer_function Run>
vars recurrent_layer(const vars& x, const json&) {
  return {Run(x[0], {x[1], x[2], x[3], x[4]}, std::source_location::current()).outputs};
}
const std::map<std::string, golden_function> layers{
    {"rnn", recurrent_layer<&cella::rnn>},
    {"lstm", recurrent_layer<&cella::lstm>},
    {"gru", recurrent_layer<&cella::gru>},
    {"multi_head_attention",
     [](const vars& x, const json& a) {
       const var all = matmul(x[0], x[1], false, true) + x[2];
       const int width = a.at("embed");
       const auto part = [&](int i) { return slice(all, -1, i * width, (i + 1) * width); };
       const var y = multi_head_attention(part(0), part(1), part(2), a.at("heads"));
       return vars{matmul(y, x[3], false, true) + x[4]};
     }},
};

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("operations and their gradients equal PyTorch's in double") {
    const auto file = golden::open("ops");
    for (std::size_t i = 0; i < file.size(); ++i) {
      const golden_case c = load_case(file, i);
      if (known(c.op)) {
        check_golden_case(
            c, [&](const vars& x, const json&) { return apply(c, x); }, tolerance(c));
      } else {
        FAIL_CHECK("no operation for " << c.label());
      }
    }
  }
  TEST_CASE("recurrent layers and attention, and their gradients, equal PyTorch's in double") {
    const auto file = golden::open("layers");
    for (const json& entry : file.json()) {
      const std::string layer = entry.at("layer");
      if (!layers.contains(layer)) {
        FAIL_CHECK("no layer for " << layer);
        continue;
      }
      golden_case c;
      c.op = layer;
      c.attrs = entry;
      const auto take = [&](const std::string& input, const std::string& gradient) {
        c.inputs.push_back(file.tensor(layer + "." + input));
        c.input_gradients.emplace_back(file.tensor(layer + "." + gradient));
      };
      take("x", "grad.x");
      for (const std::string name : entry.at("parameters")) take(name, "grad." + name);
      c.outputs.push_back(file.tensor(layer + ".y"));
      c.cotangents.push_back(file.tensor(layer + ".ct"));
      check_golden_case(c, layers.at(layer));
    }
  }
}
