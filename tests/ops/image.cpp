#include <algorithm>
#include <cella/ops/convolution.hpp>
#include <cella/ops/image.hpp>
#include <tuple>
#include <utility>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input image{.extents = {1, 2, 4, 3}};
constexpr gradient_case cases[] = {
    {"space_to_depth", [](var x) { return space_to_depth(x, 2); }, {{.extents = {2, 2, 4, 2}}}},
    {"depth_to_space", [](var x) { return depth_to_space(x, 2); }, {{.extents = {2, 4, 2, 3}}}},
    {"resize_nearest", [](var x) { return resize_nearest(x, 6, 2); }, {image}},
    {"resize_bilinear", [](var x) { return resize_bilinear(x, 7, 2); }, {image}},
    {"resize_bilinear, rows in phases", [](var x) { return resize_bilinear(x, 8, 5); }, {image}},
    {"resize_bilinear, three phases", [](var x) { return resize_bilinear(x, 12, 3); }, {image}},
    {"resize_bilinear, corners", [](var x) { return resize_bilinear(x, 1, 5, true); }, {image}},
    {"im2col", [](var x) { return im2col(x, 2, 2, 1); }, {image}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("images: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("depth_to_space is the inverse of space_to_depth") {
  eager_session s;
  const var x = s(case_input{.extents = {2, 3, 4, 6}}.sample(1));
  CHECK(s.value(depth_to_space(space_to_depth(x, 2), 2)).values == s.value(x).values);
}

TEST_CASE("resizing to the same size changes nothing, and down by half takes pixels or means") {
  eager_session s;
  const var x = s(f64({1, 1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}));
  CHECK(s.value(resize_nearest(x, 2, 4)).values == s.value(x).values);
  CHECK(s.value(resize_bilinear(x, 2, 4)).values == s.value(x).values);
  CHECK(s.value(resize_bilinear(x, 2, 4, true)).values == s.value(x).values);
  CHECK(s.value(resize_nearest(x, 1, 2)).values == reals{0, 2});
  CHECK(s.value(resize_bilinear(x, 1, 2)).values == reals{2.5, 4.5});
}

TEST_CASE("images that become several times as large are what the formula says") {
  eager_session s;
  const int height = 3, width = 4;
  const var x = s(case_input{.extents = {1, 2, height, width}}.sample(1));
  const reals pixels = s.value(x).values;
  for (const auto& [to_height, to_width] :
       {std::pair{6, 8}, std::pair{9, 4}, std::pair{12, 6}, std::pair{15, 4}, std::pair{3, 12}}) {
    // PyTorch's interpolate(mode="bilinear"): place (i + 1/2) from / to - 1/2, inside the image.
    const auto beside = [](int i, int from, int to) {
      const double at = std::clamp((i + 0.5) * from / to - 0.5, 0.0, double(from - 1));
      const int first = int(at);
      return std::tuple{first, std::min(first + 1, from - 1), at - first};
    };
    reals expected;
    for (int c = 0; c < 2; ++c) {
      for (int i = 0; i < to_height; ++i) {
        for (int j = 0; j < to_width; ++j) {
          const auto [top, bottom, down] = beside(i, height, to_height);
          const auto [left, right, along] = beside(j, width, to_width);
          const auto pixel = [&](int row, int column) {
            return pixels[std::size_t((c * height + row) * width + column)];
          };
          expected.push_back(
              (1 - down) * ((1 - along) * pixel(top, left) + along * pixel(top, right)) +
              down * ((1 - along) * pixel(bottom, left) + along * pixel(bottom, right)));
        }
      }
    }
    check_close(s.value(resize_bilinear(x, to_height, to_width)).values, expected, 1e-14);
  }
}

TEST_CASE("a convolution is a product of its filters with the columns of im2col") {
  eager_session s;
  const var x = s(case_input{.extents = {2, 3, 5, 4}}.sample(1));
  const var w = s(case_input{.extents = {4, 3, 3, 3}}.sample(2));
  const var y = conv2d(x, w, {.stride = {2, 2}, .before = {1, 1}, .after = {1, 1}});
  const var product = matmul(reshape(w, {4, 27}), im2col(x, 3, 2, 1));
  check_close(s.value(product).values, s.value(y).values, 1e-14);
}

TEST_CASE("the faults of images name the image and what does not fit") {
  CHECK(fault([](const vars& v) { return space_to_depth(v[0], 2); }, {f({1, 1, 4, 3})}) ==
        "space_to_depth: the block does not divide the image: x0 is [1,1,4,3]");
  CHECK(fault([](const vars& v) { return depth_to_space(v[0], 2); }, {f({1, 6, 4, 3})}) ==
        "depth_to_space: the block does not divide the channels: x0 is [1,6,4,3]");
  CHECK(fault([](const vars& v) { return depth_to_space(v[0], 0); }, {f({1, 6, 4, 3})}) ==
        "depth_to_space: the block does not divide the channels: x0 is [1,6,4,3]");
  CHECK(fault([](const vars& v) { return resize_nearest(v[0], 0, 1); }, {f({1, 6, 4, 3})}) ==
        "resize_nearest: the size is empty: x0 is [1,6,4,3]");
  CHECK(fault([](const vars& v) { return resize_bilinear(v[0], 1, 1); }, {f({6, 4, 3})}) ==
        "resize_bilinear: the image must have rank 4: x0 is [6,4,3]");
  CHECK(fault([](const vars& v) { return im2col(v[0], 5); }, {f({1, 6, 4, 3})}) ==
        "im2col: the window does not fit the padded image: x0 is [1,6,4,3]");
}
