// A U-Net marks the discs in noisy pictures of discs and squares, pixel by pixel.  Ronneberger et
// al. 2015
#include <cella/data/dataset.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/image.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/train/mask_metrics.hpp>
#include <cella/train/model.hpp>
#include <vector>

#include "report.hpp"

using namespace cella;

template <int In, int Out>
struct twice {
  nn::conv2d<In, Out, 3> first{.padding = 1};
  nn::conv2d<Out, Out, 3> second{.padding = 1};

  constexpr var operator()(var x) const { return relu(second(relu(first(x)))); }
};

constexpr var enlarge(var x) { return resize_nearest(x, 2 * x.extent(2), 2 * x.extent(3)); }

struct UNet {
  twice<1, 8> fine;
  twice<8, 16> coarse;
  twice<16, 32> bottom;
  twice<48, 16> to_coarse;
  twice<24, 8> to_fine;
  nn::conv2d<8, 1, 1> mask;

  /// Pictures [N, 1, H, W] -> how likely each pixel is part of a disc, as logits.
  constexpr var operator()(var x) const {
    const var a = fine(x);
    const var b = coarse(max_pool(a, 2));
    x = bottom(max_pool(b, 2));
    x = to_coarse(concat({enlarge(x), b}, 1));
    return mask(to_fine(concat({enlarge(x), a}, 1)));
  }
};

inline constexpr auto pixelwise = [](var logits, var truth) {
  return sigmoid_cross_entropy(logits, truth);
};

constexpr int side = 32;
using segmenter =
    model<UNet, image<1, side, side>, pixelwise, optim::adam{}, model_options{.batch = 16}>;

/// Pictures with two discs and two squares, and the masks of the discs.
auto pictures(int count, std::uint64_t seed) {
  generator random(seed);
  const auto pixels = std::size_t(count) * side * side;
  std::vector<float> seen(pixels), truth(pixels);
  for (int n = 0; n < count; ++n) {
    for (int shape = 0; shape < 4; ++shape) {
      const bool disc = shape < 2;
      const float radius = random.uniform(4.f, 7.f);
      const float cx = random.uniform(7.f, 25.f), cy = random.uniform(7.f, 25.f);
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
          const float dx = float(x) - cx, dy = float(y) - cy;
          const bool inside = disc ? dx * dx + dy * dy < radius * radius
                                   : std::abs(dx) < 0.85f * radius && std::abs(dy) < 0.85f * radius;
          if (!inside) continue;
          const auto at = std::size_t((n * side + y) * side + x);
          seen[at] = 1;
          truth[at] = float(disc);
        }
      }
    }
  }
  for (float& v : seen) v += 0.1f * float(random.normal());
  return data::tensor_dataset(data::column<float>({count, 1, side, side}, std::move(seen)),
                              data::column<float>({count, 1, side, side}, std::move(truth)));
}

int main(int argc, char** argv) {
  return report(argc, argv, [] {
    segmenter m({.seed = 1});
    m.fit(pictures(800, 1).shuffle(1), {.epochs = 12, .learning_rate = 0.003});
    return nlohmann::ordered_json{
        {"dice", m.evaluate(pictures(200, 2), metrics::dice{.threshold = 0})["dice"]}};
  });
}
