// Layers and losses against PyTorch's values and gradients (tests/golden/vocabulary.py), in double:
// eagerly, through a graph traced at run time, and planned on kernels.
#include <cella/nn/activations.hpp>
#include <cella/nn/classification_losses.hpp>
#include <cella/nn/convolutions.hpp>
#include <cella/nn/ctc_loss.hpp>
#include <cella/nn/embedding_bag.hpp>
#include <cella/nn/embedding_losses.hpp>
#include <cella/nn/norms.hpp>
#include <cella/nn/pooling.hpp>
#include <cella/nn/positions.hpp>
#include <cella/nn/recurrent_net.hpp>
#include <cella/nn/regression_losses.hpp>
#include <cella/nn/transformer.hpp>
#include <cella/transform/gradient.hpp>
#include <map>
#include <string>
#include <vector>

#include "support/golden_runs.hpp"

using namespace cella;
using namespace cella::test;
using nlohmann::json;

namespace {

/// f(cell), where the parameters of the cell are the vars behind its arguments.
template <class Cell, class F>
vars with_parameters(Cell cell, const vars& x, const json& a, F f) {
  builder& b = *x[0].b;
  std::size_t next = a.at("arguments");
  for_each_parameter(cell, [&](std::string_view path, parameter_base& p) {
    INFO(path);
    REQUIRE(next < x.size());
    REQUIRE(x[next].shape() == p.extents);
    b.cells.bind(&p, x[next++].id);
    p.traced_by = &b;
  });
  REQUIRE(next == x.size());
  return f(cell);
}
/// The cell's result for its arguments.
template <class Cell>
vars call_cell(Cell cell, const vars& x, const json& a) {
  return with_parameters(cell, x, a, [&](const Cell& c) -> vars { return {c(x[0])}; });
}
template <class Cell>
vars plain_cell(const vars& x, const json& a) {
  return call_cell(Cell{}, x, a);
}
/// Outputs, hidden states and, of LSTMs, cells.
template <class Net>
vars run_net(const vars& x, const json& a) {
  const int n = a.at("arguments");
  return with_parameters(Net{}, x, a, [&](const Net& net) {
    recurrent_state first{};
    if (n > 2) first.hidden = x[2];
    if (n > 3) first.cell = x[3];
    const recurrent_result r = n > 1 ? net(x[0], x[1], first) : net(x[0]);
    vars all{r.outputs, r.last.hidden};
    if (r.last.cell.b) all.push_back(r.last.cell);
    return all;
  });
}
constexpr recurrent_form deep{.layers = 2, .bidirectional = true};

reduction reduction_of(const json& a) {
  const std::string r = a.value("reduction", "mean");
  return r == "sum" ? reduction::sum : r == "none" ? reduction::none : reduction::mean;
}
cross_entropy_options options_of(const json& a) {
  cross_entropy_options o;
  o.label_smoothing = a.value("label_smoothing", 0.0);
  if (a.contains("ignore_index")) o.ignored_label = a.at("ignore_index").get<int>();
  return o;
}
bag_mode mode_of(const json& a) {
  return a.at("mode") == "max"   ? bag_mode::max
         : a.at("mode") == "sum" ? bag_mode::sum
                                 : bag_mode::mean;
}

const std::map<std::string, golden_function> functions{
    {"celu", [](const vars& x, const json& a) { return vars{celu(x[0], a.at("alpha"))}; }},
    {"hard_tanh",
     [](const vars& x, const json& a) { return vars{hard_tanh(x[0], a.at("low"), a.at("high"))}; }},
    {"hard_shrink",
     [](const vars& x, const json& a) { return vars{hard_shrink(x[0], a.at("bound"))}; }},
    {"soft_shrink",
     [](const vars& x, const json& a) { return vars{soft_shrink(x[0], a.at("bound"))}; }},
    {"tanh_shrink", [](const vars& x, const json&) { return vars{tanh_shrink(x[0])}; }},
    {"threshold",
     [](const vars& x, const json& a) {
       return vars{threshold(x[0], a.at("bound"), a.at("otherwise"))};
     }},
    {"glu", [](const vars& x, const json& a) { return vars{nn::glu{.axis = a.at("axis")}(x[0])}; }},
    {"prelu_cell", plain_cell<nn::prelu<3>>},
    {"swiglu_cell", plain_cell<nn::swiglu<4, 6>>},
    {"feed_forward_cell", plain_cell<nn::feed_forward<4, 6>>},

    {"weight_norm", [](const vars& x, const json&) { return vars{weight_norm(x[0], x[1])}; }},
    {"spectral_norm",
     [](const vars& x, const json& a) {
       return vars{
           spectral_norm(x[0], stop_gradient(x[1]), stop_gradient(x[2]), a.at("steps")).value};
     }},
    {"spectral_norm_cell",
     [](const vars& x, const json& a) {
       return plain_cell<nn::spectral_norm_dense<4, 3>>(
           {x[0], x[1], x[2], stop_gradient(x[3]), stop_gradient(x[4])}, a);
     }},
    {"weight_norm_cell", plain_cell<nn::weight_norm_dense<4, 3>>},
    {"rms_norm_cell", plain_cell<nn::rms_norm<6>>},
    {"group_norm_cell", plain_cell<nn::group_norm<6, 3>>},
    {"instance_norm_cell", plain_cell<nn::instance_norm<3>>},
    {"local_response_norm_cell",
     [](const vars& x, const json& a) {
       return call_cell(nn::local_response_norm{.size = 3, .alpha = 0.5, .k = 2}, x, a);
     }},

    {"sinusoidal_encoding",
     [](const vars& x, const json& a) {
       return vars{sinusoidal_encoding(x[0], a.at("width"), a.at("base"))};
     }},
    {"sinusoidal_position_cell", plain_cell<nn::sinusoidal_position>},
    {"rotary",
     [](const vars& x, const json& a) {
       const auto pairs = a.at("neighbours") ? rotary_pairs::neighbours : rotary_pairs::halves;
       return vars{rotary(x[0], x[1], a.at("base"), pairs)};
     }},

    {"grouped_query_attention",
     [](const vars& x, const json& a) {
       return vars{grouped_query_attention(
           x[0], x[1], x[2], {.heads = a.at("heads"), .key_value_heads = a.at("key_value_heads")},
           x[3])};
     }},
    {"attention_cell",
     [](const vars& x, const json& a) {
       const nn::attention<8, 2> cell{.causal = a.value("causal", false),
                                      .window = a.value("window", 0)};
       return with_parameters(cell, x, a, [&](const auto& c) -> vars {
         return {a.at("arguments") == 3 ? c(x[0], x[1], x[2]) : c(x[0])};
       });
     }},
    {"encoder_block_cell",
     [](const vars& x, const json& a) {
       return call_cell(nn::encoder_block<8, 2, 12>{.options = {.norm_first = a.at("norm_first")}},
                        x, a);
     }},
    {"decoder_block_cell",
     [](const vars& x, const json& a) {
       const nn::decoder_block<8, 2, 12> cell{.options = {.norm_first = a.at("norm_first")}};
       return with_parameters(cell, x, a, [&](const auto& c) -> vars { return {c(x[0], x[1])}; });
     }},

    {"adaptive_average_pool",
     [](const vars& x, const json& a) {
       return vars{nn::adaptive_average_pool{a.at("size")[0], a.at("size")[1]}(x[0])};
     }},
    {"adaptive_max_pool",
     [](const vars& x, const json& a) {
       return vars{nn::adaptive_max_pool{a.at("size")[0], a.at("size")[1]}(x[0])};
     }},
    {"global_max_pool",
     [](const vars& x, const json&) { return vars{nn::global_max_pool{}(x[0])}; }},
    {"conv1d_cell",
     [](const vars& x, const json& a) {
       return call_cell(nn::conv1d<3, 4, 3>{.stride = a.value("stride", 1),
                                            .padding = a.value("padding", 0),
                                            .dilation = a.value("dilation", 1),
                                            .causal = a.value("causal", false)},
                        x, a);
     }},
    {"conv2d_transpose_cell",
     [](const vars& x, const json& a) {
       return call_cell(
           nn::conv2d_transpose<3, 4, 3>{.stride = 2, .padding = 1, .output_padding = 1}, x, a);
     }},
    {"separable_conv2d_cell", plain_cell<nn::separable_conv2d<3, 4, 3>>},
    {"embedding_bag",
     [](const vars& x, const json& a) {
       nn::embedding_bag<6, 3> bag{.mode = mode_of(a), .padding = a.value("padding", -1)};
       builder& b = *x[0].b;
       b.cells.bind(&bag.weight, x[1].id);
       bag.weight.traced_by = &b;
       return vars{bag(x[0], x.size() > 2 ? x[2] : var{})};
     }},

    {"lstm_net_cell",
     [](const vars& x, const json& a) {
       if (a.at("form") == "deep") return run_net<nn::lstm_net<4, 5, deep>>(x, a);
       if (a.at("form") == "projected")
         return run_net<nn::lstm_net<4, 5, recurrent_form{.layers = 2, .projection = 3}>>(x, a);
       if (a.at("form") == "peepholes")
         return run_net<nn::lstm_net<4, 5, recurrent_form{.peepholes = true}>>(x, a);
       return run_net<nn::lstm_net<4, 5>>(x, a);
     }},
    {"gru_net_cell",
     [](const vars& x, const json& a) {
       return a.at("form") == "deep" ? run_net<nn::gru_net<4, 5, deep>>(x, a)
                                     : run_net<nn::gru_net<4, 5>>(x, a);
     }},
    {"rnn_net_cell", run_net<nn::rnn_net<4, 5, deep>>},

    {"log_cosh_loss", [](const vars& x, const json&) { return vars{log_cosh_loss(x[0], x[1])}; }},
    {"quantile_loss",
     [](const vars& x, const json& a) { return vars{quantile_loss(x[0], x[1], a.at("q"))}; }},
    {"poisson_nll_loss",
     [](const vars& x, const json& a) {
       return vars{
           poisson_nll_loss(x[0], x[1], {.log_rate = a.at("log_rate"), .full = a.at("full")})};
     }},
    {"gaussian_nll_loss",
     [](const vars& x, const json& a) {
       return vars{gaussian_nll_loss(x[0], x[1], x[2], a.at("full"))};
     }},
    {"weighted_cross_entropy",
     [](const vars& x, const json& a) {
       return vars{weighted_cross_entropy(x[0], x[1], x[2], options_of(a))};
     }},
    {"weighted_sigmoid_cross_entropy",
     [](const vars& x, const json&) {
       return vars{weighted_sigmoid_cross_entropy(x[0], x[1], x[2])};
     }},
    {"focal_loss",
     [](const vars& x, const json& a) {
       return vars{focal_loss(x[0], x[1], a.at("alpha"), a.at("gamma"))};
     }},
    {"hinge_loss", [](const vars& x, const json&) { return vars{hinge_loss(x[0], x[1])}; }},
    {"squared_hinge_loss",
     [](const vars& x, const json&) { return vars{squared_hinge_loss(x[0], x[1])}; }},
    {"soft_margin_loss",
     [](const vars& x, const json&) { return vars{soft_margin_loss(x[0], x[1])}; }},
    {"multi_margin_loss",
     [](const vars& x, const json& a) {
       return vars{multi_margin_loss(x[0], x[1], 1, a.at("power"))};
     }},
    {"multilabel_margin_loss",
     [](const vars& x, const json&) { return vars{multilabel_margin_loss(x[0], x[1])}; }},
    {"dice_loss",
     [](const vars& x, const json& a) { return vars{dice_loss(x[0], x[1], a.at("smooth"))}; }},
    {"pairwise_distance",
     [](const vars& x, const json&) { return vars{pairwise_distance(x[0], x[1])}; }},
    {"triplet_margin_loss",
     [](const vars& x, const json& a) {
       return vars{triplet_margin_loss(x[0], x[1], x[2], a.at("margin"), reduction_of(a))};
     }},
    {"contrastive_loss",
     [](const vars& x, const json& a) {
       return vars{contrastive_loss(x[0], x[1], x[2], a.at("margin"))};
     }},
    {"cosine_embedding_loss",
     [](const vars& x, const json& a) {
       return vars{cosine_embedding_loss(x[0], x[1], x[2], a.at("margin"))};
     }},
    {"hinge_embedding_loss",
     [](const vars& x, const json& a) {
       return vars{hinge_embedding_loss(x[0], x[1], a.at("margin"))};
     }},
    {"margin_ranking_loss",
     [](const vars& x, const json& a) {
       return vars{margin_ranking_loss(x[0], x[1], x[2], a.at("margin"))};
     }},
    {"info_nce_loss",
     [](const vars& x, const json& a) {
       return vars{info_nce_loss(x[0], x[1], a.at("temperature"))};
     }},
    {"ctc_loss",
     [](const vars& x, const json& a) {
       return vars{ctc_loss(log_softmax(x[0], 2), x[1], x[2], x[3],
                            {.blank = a.at("blank"),
                             .reduce = reduction_of(a),
                             .zero_infinity = a.value("zero_infinity", false)})};
     }},
};

}  // namespace

TEST_CASE("what stands behind the labels of a sequence changes neither its loss nor the gradient") {
  const auto sounds = f64({2, 1, 3}, {-1, -2, -0.5, -0.7, -1.5, -1.2});
  const auto steps = i64({1}, {2}), lengths = i64({1}, {1});
  const auto loss = [](var x, var labels, var of_sounds, var of_labels) {
    return ctc_loss(x, labels, of_sounds, of_labels, {.reduce = reduction::sum});
  };
  const auto slope = [loss](var x, var y, var s, var l) { return grad(loss)(x, y, s, l); };
  const auto alone = eval(slope, sounds, i64({1, 1}, {2}), steps, lengths).values;
  CHECK(eval(slope, sounds, i64({1, 3}, {2, 1, 2}), steps, lengths).values == alone);
  CHECK(eval(slope, sounds, i64({1, 3}, {2, -1, -100}), steps, lengths).values == alone);
  CHECK(alone[2] < 0);
}

TEST_CASE("a loss that is no number is not taken for one that no alignment yields") {
  auto sounds = f64({1, 1, 2}, {not_a_number, not_a_number});
  const auto y = eval(
      [](var x, var labels, var lengths) {
        return ctc_loss(x, labels, lengths, lengths, {.zero_infinity = true});
      },
      sounds, i64({1, 1}, {1}), i64({1}, {1}));
  CHECK(std::isnan(y.values[0]));
}

TEST_CASE("a focal loss has derivatives where the prediction is certain, whatever its power") {
  const auto z = f64({3}, {60, -800, 0}), t = f64({3}, {1, 0, 1});
  for (const double gamma : {0.0, 0.5, 1.0, 2.0}) {
    const auto loss = [&](var x, var y) { return focal_loss(x, y, -1, gamma, reduction::sum); };
    const auto d = eval([&](var x, var y) { return grad(loss)(x, y); }, z, t).values;
    CHECK(d[0] == 0);
    CHECK(d[1] == 0);
    // p^gamma ln(1 + e^-z) at z = 0, by z: -gamma p^(gamma + 1) ln 2 - p^(gamma + 1).
    CHECK(d[2] == doctest::Approx(-std::pow(0.5, gamma + 1) * (gamma * std::log(2) + 1)));
  }
}

TEST_CASE("where no sample has a weight the weighted cross-entropy is 0") {
  const auto loss = [](var z, var y, var w) {
    return weighted_cross_entropy(z, y, w, {.label_smoothing = 0.1, .ignored_label = -100});
  };
  const auto z = f64({2, 3}, {1, 2, 3, 3, 2, 1});
  const auto y = i64({2}, {2, -100});
  const auto w = f64({3}, {1, 1, 0});
  CHECK(eval([&](var a, var b, var c) { return grad(loss)(a, b, c); }, z, y, w).values ==
        reals{0, 0, 0, 0, 0, 0});
  CHECK(eval(loss, z, i64({2}, {-100, -100}), w).values[0] == 0);
}

TEST_CASE("layers and losses have PyTorch's values and gradients") {
  const golden file = golden::open_own("vocabulary");
  for (std::size_t i = 0; i < file.size(); ++i) {
    const golden_case c = load_case(file, i);
    const auto f = functions.find(c.op);
    if (f == functions.end())
      FAIL_CHECK(c.label() << " is not here");
    else
      check_golden_case(c, f->second);
  }
}
