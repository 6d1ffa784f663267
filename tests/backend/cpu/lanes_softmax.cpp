#include <doctest/doctest.h>

#include <cella/backend/cpu/lanes/softmax.hpp>

#include "lanes_reference.hpp"

using namespace cella;
using namespace cella::cpu;
using namespace reference;

namespace {

/// What one call gives: total loss, hits, and the gradient as a plain [n][classes].
template <class T>
struct outcome {
  T loss{};
  int hits{};
  aligned<T> gradient, lanes_gradient;
};

template <class T>
outcome<T> evaluate(const aligned<T>& z, const std::vector<std::int32_t>& labels, int classes,
                    T scale, int parts, T dead) {
  const int n = static_cast<int>(labels.size());
  const lanes_softmax_extents e{n, classes};
  const auto blocks = static_cast<std::size_t>(lane_blocks<T>(n));
  const auto lanes_z = to_lanes<T>(z, n, classes, 1, 1, 0, 0, dead);
  outcome<T> result;
  result.lanes_gradient.assign(lanes_z.size(), poison<T>);
  std::vector<T> loss(blocks, poison<T>);
  std::vector<std::int32_t> hits(blocks, -1);
  run(lanes_softmax_units<T>(e), parts, [&](work_range r) {
    lanes_softmax_cross_entropy(r, e, lanes_z.data(), labels.data(), scale,
                                result.lanes_gradient.data(), loss.data(), hits.data());
  });
  for (std::size_t b = 0; b < blocks; ++b) result.loss += loss[b], result.hits += hits[b];
  result.gradient = from_lanes(result.lanes_gradient, n, classes, 1, 1);
  return result;
}

}  // namespace

TEST_CASE_TEMPLATE("cross-entropy agrees with a double-precision loop", T, float, double) {
  for (int classes : {1, 2, 10, 17}) {
    for (int n : batches<T>()) {
      CAPTURE(classes);
      CAPTURE(n);
      auto z = integers<T>(n * classes, 1, 30);
      for (auto& v : z) v /= 4;
      std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
      for (int s = 0; s < n; ++s) labels[static_cast<std::size_t>(s)] = (s * 7 + 3) % classes;
      // Labels that name no class: such samples count for nothing.
      if (n > 3) labels[1] = -100, labels[2] = classes;
      const double scale = 1.0 / n;
      double loss = 0;
      int hits = 0;
      std::vector<double> gradient(z.size());
      for (int s = 0; s < n; ++s) {
        const int label = labels[static_cast<std::size_t>(s)];
        if (label < 0 || label >= classes) continue;
        const T* row = &z[static_cast<std::size_t>(s * classes)];
        double total = 0;
        for (int c = 0; c < classes; ++c) total += std::exp(double{row[c]});
        loss += scale * (std::log(total) - double{row[label]});
        hits += std::max_element(row, row + classes) - row == label;
        for (int c = 0; c < classes; ++c) {
          gradient[static_cast<std::size_t>(s * classes + c)] =
              scale * (std::exp(double{row[c]}) / total - (c == label));
        }
      }
      const double tolerance = 32 * static_cast<double>(std::numeric_limits<T>::epsilon());
      for (int parts : {1, 3}) {
        const auto got = evaluate<T>(z, labels, classes, static_cast<T>(scale), parts, poison<T>);
        CHECK(std::abs(double{got.loss} - loss) <= tolerance * (1 + loss));
        CHECK(got.hits == hits);
        double worst = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          REQUIRE(std::isfinite(got.gradient[i]));
          worst = std::max(worst, std::abs(double{got.gradient[i]} - gradient[i]));
        }
        CHECK(worst <= tolerance * scale);
        // Dead lanes had NaN logits and must have a gradient of zero.
        CHECK(got.lanes_gradient == to_lanes<T>(got.gradient, n, classes, 1, 1, 0, 0, T{0}));
      }
    }
  }
}

TEST_CASE_TEMPLATE("large logits neither overflow nor lose the loss", T, float, double) {
  const aligned<T> z{T{1000}, T{0}, T{-1000}, T{1000}};
  const auto got = evaluate<T>(z, {1, 1}, 2, T{1}, 1, T{0});
  CHECK(got.loss == doctest::Approx(1000));
  CHECK(got.hits == 1);
  CHECK(got.gradient == aligned<T>{T{1}, T{-1}, T{0}, T{0}});
}

TEST_CASE_TEMPLATE("the gradient may replace the logits, or be left out", T, float, double) {
  const int n = lanes<T> + 2, classes = 5;
  const auto z = integers<T>(n * classes, 3);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(n), 2);
  const auto expected = evaluate<T>(z, labels, classes, T{1}, 1, T{0});
  auto in_place = to_lanes<T>(z, n, classes, 1, 1, 0, 0, T{0});
  const lanes_softmax_extents e{n, classes};
  T loss[2]{}, loss_only[2]{};
  lanes_softmax_cross_entropy<T>({0, 2}, e, in_place.data(), labels.data(), T{1}, nullptr,
                                 loss_only);
  lanes_softmax_cross_entropy<T>({0, 2}, e, in_place.data(), labels.data(), T{1}, in_place.data(),
                                 loss);
  CHECK(in_place == expected.lanes_gradient);
  CHECK(loss[0] + loss[1] == expected.loss);
  CHECK(loss_only[0] + loss_only[1] == expected.loss);
}
