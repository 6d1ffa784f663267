// Several labels of a model: structs, against the same training written by hand.
#include <doctest/doctest.h>

#include <cella/data/csv.hpp>
#include <cella/data/dataset.hpp>
#include <cella/nn/layers.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <string>
#include <vector>

using namespace cella;

/// What is known of a fruit, and what it is and weighs.
struct fruit {
  features<2> size;
  features<1> colour;
};
struct truth {
  integers<> kind;
  features<1> weight;
};
struct guesses {
  var kind, weight;
};
/// Two heads on one body; no biases, so that the truth below stays short.
struct two_heads {
  parameter<3, 3> kind{initializer::constant(0.25)};
  parameter<3, 1> weight{initializer::constant(0.5)};
  constexpr guesses operator()(const fruit& f) const {
    const var x = concat({f.size, f.colour}, 1);
    return {matmul(x, kind), matmul(x, weight)};
  }
};
inline constexpr auto both = [](const guesses& y, const truth& t) {
  return softmax_cross_entropy(y.kind, t.kind) + 0.5 * mean_squared_error(y.weight, t.weight);
};
/// The squared error, weighted by an input. Losses of all headers come with model.hpp.
inline constexpr auto by_colour = [](const guesses& y, const fruit& f, const truth& t) {
  return mean(2 * huber_loss(y.weight, t.weight, 100, reduction::none) * f.colour);
};
/// A function as a loss.
constexpr var by_function(const guesses& y, const truth& t) { return both(y, t); }

/// Of samples, in double precision: steps by plain gradients, written by hand.
struct by_hand {
  double kind[3][3], weight[3];
  by_hand() {
    for (auto& row : kind) std::fill_n(row, 3, 0.25);
    std::fill_n(weight, 3, 0.5);
  }
  struct outcome {
    double p[3], loss, error;  ///< of a sample
  };
  outcome see(const double* x, int label, double grams) const {
    outcome o{};
    double sum = 0;
    for (int c = 0; c < 3; ++c) {
      for (int k = 0; k < 3; ++k) o.p[c] += x[k] * kind[k][c];
      sum += std::exp(o.p[c]);
    }
    o.error = -grams;
    for (int k = 0; k < 3; ++k) o.error += x[k] * weight[k];
    for (double& p : o.p) p = std::exp(p) / sum;
    o.loss = -std::log(o.p[label]) + 0.5 * o.error * o.error;
    return o;
  }
  /// One step on a batch; its mean loss before.
  template <class Batch>
  double step(const Batch& b, double rate) {
    const by_hand before = *this;
    const auto size = b.template column<0>(), colour = b.template column<1>();
    const auto label = b.template column<2>();
    const auto grams = b.template column<3>();
    const auto n = std::size_t(b.size());
    double loss = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double x[]{double(size[2 * i]), double(size[2 * i + 1]), double(colour[i])};
      const outcome o = before.see(x, int(label[i]), double(grams[i]));
      loss += o.loss / double(n);
      for (int k = 0; k < 3; ++k) {
        for (int c = 0; c < 3; ++c)
          kind[k][c] -= rate * x[k] * (o.p[c] - (c == int(label[i]))) / double(n);
        weight[k] -= rate * x[k] * o.error / double(n);
      }
    }
    return loss;
  }
};

namespace {

constexpr model_options small{.batch = 4};
template <auto Loss, model_options Options = small>
using scale = model<two_heads, fruit, Loss, optim::sgd{}, Options>;
const std::vector<execution> modes = [] {
  std::vector all{execution::graph, execution::eager};
  if (has_compiled_kernels) all.push_back(execution::runtime);
  return all;
}();

/// A table of fruits, of as many as 11.
data::csv_table table() {
  std::string lines = "width,height,colour,kind,weight\n";
  for (int i = 0; i < 11; ++i) {
    const int kind = i * 5 % 3;
    for (double x : {0.5 + 0.25 * kind, 1 - 0.125 * (i % 4), 0.25 * (i % 5)})
      lines += std::to_string(x) + ",";
    lines += kind == 0 ? "apple," : kind == 1 ? "pear," : "plum,";
    lines += std::to_string(1 + kind - 0.25 * (i % 3)) + "\n";
  }
  return data::parse_csv(lines, "fruits.csv", {});
}
auto fruits() {
  const data::csv_table t = table();
  return data::tensor_dataset(t.values({"width", "height"}), t.values({"colour"}),
                              t.labels("kind", {"apple", "pear", "plum"}), t.values({"weight"}));
}
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const error& e) { return e.what(); }
  return "";
}
template <class Model>
void check_weights(Model& m, const by_hand& expected) {
  const auto kind = m.parameters().template values<float>("kind"),
             weight = m.parameters().template values<float>("weight");
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t c = 0; c < 3; ++c)
      CHECK(double(kind[3 * k + c]) == doctest::Approx(expected.kind[k][c]).epsilon(1e-4));
    CHECK(double(weight[k]) == doctest::Approx(expected.weight[k]).epsilon(1e-4));
  }
}

}  // namespace

TEST_CASE("two heads learn from two labels, shuffled, with a smaller last batch, as by hand") {
  const auto samples = fruits();
  const auto shuffled = samples.shuffle(3);
  by_hand expected;
  std::vector<double> losses;
  for (int epoch = 0; epoch < 3; ++epoch) {
    double sum = 0;
    for (auto& b : data::loader(shuffled, 4).epoch(epoch))
      sum += expected.step(b, 0.1) * double(b.size());
    losses.push_back(sum / 11);
  }
  double loss = 0, error = 0;
  int right = 0;
  std::vector<by_hand::outcome> outcomes;
  for (std::size_t i = 0; i < 11; ++i) {
    const auto size = samples.column<0>(), colour = samples.column<1>();
    const double x[]{double(size[2 * i]), double(size[2 * i + 1]), double(colour[i])};
    const int label = int(samples.column<2>()[i]);
    const auto o = expected.see(x, label, double(samples.column<3>()[i]));
    loss += o.loss / 11;
    error += std::abs(o.error) / 11;
    right += std::max_element(o.p, o.p + 3) - o.p == label;
    outcomes.push_back(o);
  }
  for (execution how : modes) {
    CAPTURE(int(how));
    scale<both> m({.mode = how});
    const auto h = m.fit(shuffled, {.epochs = 3, .learning_rate = 0.1},
                         metrics::of<0>(metrics::accuracy{}, "kind"));
    REQUIRE(h.size() == 3);
    for (std::size_t e = 0; e < 3; ++e) {
      CHECK(h[e].samples == 11);
      CHECK(h[e]["loss"] == doctest::Approx(losses[e]).epsilon(1e-5));
      CHECK(h[e].contains("kind"));
    }
    check_weights(m, expected);
    const auto scores =
        m.evaluate(samples, metrics::loss{}, metrics::of<0>(metrics::accuracy{}, "kind"),
                   metrics::of<1>(metrics::mean_absolute_error{}));
    CHECK(scores["loss"] == doctest::Approx(loss).epsilon(1e-5));
    CHECK(scores["kind"] == doctest::Approx(right / 11.0));
    CHECK(scores["1.mae"] == doctest::Approx(error).epsilon(1e-4));
    const auto [kind, weight] = m.predict(samples.column<0>(), samples.column<1>());
    REQUIRE(kind.shape() == shape{11, 3});
    for (std::size_t i = 0; i < 11; ++i) {
      CHECK(double(weight[i]) - double(samples.column<3>()[i]) ==
            doctest::Approx(outcomes[i].error).epsilon(1e-3).scale(1e-2));
      const double odds = std::exp(double(kind[3 * i]) - double(kind[3 * i + 1]));
      CHECK(odds == doctest::Approx(outcomes[i].p[0] / outcomes[i].p[1]).epsilon(1e-4));
    }
  }
}

TEST_CASE("a step takes the labels one by one; a loss may see the inputs, or be a function") {
  constexpr model_options uncompiled{.batch = 4, .compiled = false};
  const auto samples = fruits();
  const auto size = samples.column<0>(), colour = samples.column<1>();
  const auto kind = samples.column<2>();
  const auto grams = samples.column<3>();
  scale<both, uncompiled> m({.mode = execution::eager});
  scale<by_function, uncompiled> other({.mode = execution::eager});
  by_hand expected;
  const data::loader first(samples, 4);
  for (auto& b : first.epoch(0)) {
    const double loss = expected.step(b, 0.1);
    CHECK(m.train_step({size.data(), colour.data()}, {kind.data(), grams.data()}, 4, 0.1) ==
          doctest::Approx(loss));
    CHECK(other.train_step({size.data(), colour.data()}, {kind.data(), grams.data()}, 4, 0.1) ==
          doctest::Approx(loss));
    break;
  }
  check_weights(m, expected);
  check_weights(other, expected);

  scale<by_colour, uncompiled> weighted({.mode = execution::eager});
  double loss = 0;
  for (std::size_t i = 0; i < 11; ++i) {
    const double x[]{double(size[2 * i]), double(size[2 * i + 1]), double(colour[i])};
    const double e = by_hand().see(x, 0, double(grams[i])).error;
    loss += e * e * x[2] / 11;
  }
  CHECK(weighted.evaluate(samples)["loss"] == doctest::Approx(loss).epsilon(1e-5));
}

TEST_CASE("labels that do not fit are named by their member") {
  constexpr model_options uncompiled{.batch = 4, .compiled = false};
  using engine = scale<both, uncompiled>::engine_type;
  CHECK(detail::find_columns_fault<engine, data::batch<float, float, float, float>>().view() ==
        "the data's \"kind\" (column 2) are numbers, but the model's are integers");
  CHECK(detail::find_columns_fault<engine, data::batch<float, float, std::int32_t>>().view() ==
        "the data have 3 columns, but the model takes 4: \"size\" (column 0), \"colour\" (column "
        "1), \"kind\" (column 2), \"weight\" (column 3)");
  CHECK(detail::columns_fault<engine, data::batch<float, float, std::int32_t, float>>.empty());
  scale<both, uncompiled> m({.mode = execution::eager});
  const data::csv_table t = table();
  const data::tensor_dataset wide(t.values({"width", "height"}), t.values({"colour"}),
                                  t.labels("kind", {"apple", "pear", "plum"}),
                                  t.values({"weight", "weight"}));
  CHECK(message_of([&] { m.evaluate(wide); }) ==
        "the data's \"weight\" (column 3) are [2] per sample, but the model's [1]; reshape the "
        "data, or change the model's input or loss");
  constexpr auto of_vars = [](const guesses& y, const guesses& z) {
    return mean_squared_error(y.weight, z.weight);
  };
  CHECK(detail::model_fault<two_heads, fruit, of_vars, optim::sgd{}, small>.view() ==
        std::string(detail::type_name<guesses>()) +
            ": a model's labels are a var, or a struct of features<...> and integers<...>");
}
