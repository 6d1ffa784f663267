#include <cella/ops/color.hpp>
#include <cella/ops/regions.hpp>
#include <cella/ops/resampling.hpp>
#include <cella/ops/sampling.hpp>

#include "support/gradient_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input image{.extents = {2, 2, 4, 3}};
constexpr case_input grid{.extents = {2, 2, 2, 2}, .low = -1.2, .high = 1.2};
constexpr case_input colors{.extents = {2, 3, 2, 2}, .low = 0.1, .high = 0.9};
constexpr case_input of_two{.extents = {3}, .low = 0, .high = 2, .element = dtype::i64};
constexpr case_input pixels{.extents = {1, 1, 12, 11}, .low = 0.2, .high = 0.8};
/// Boxes whose first corner lies before the second.
constexpr var ordered(var x) {
  const var first = slice(x, 1, 0, 2);
  return concat({first, first + square(slice(x, 1, 2, 4)) + 0.3}, 1);
}

constexpr gradient_case cases[] = {
    {"resize, linear",
     [](var x) {
       return resize(x, {2, 3}, {7, 2});
     },
     {image}},
    {"resize, nearest",
     [](var x) { return resize(x, {-1}, {5}, {.mode = resize_mode::nearest}) * 2; },
     {image}},
    {"resize, cubic",
     [](var x) {
       return resize(
           x, {2}, {3},
           {.mode = resize_mode::cubic, .coordinates = resize_coordinates::align_corners});
     },
     {image}},
    {"resize, antialias",
     [](var x) {
       return resize(x, {2, 3}, {2, 2}, {.antialias = true});
     },
     {image}},
    {"grid_sample", [](var x, var g) { return grid_sample(x, g); }, {image, grid}},
    {"grid_sample, cubic and mirrored",
     [](var x, var g) {
       return grid_sample(x, g, {sample_mode::cubic, sample_padding::reflection, true});
     },
     {{.extents = {2, 1, 4, 3}}, {.extents = {2, 1, 2, 2}, .low = -1.2, .high = 1.2}}},
    {"affine_grid",
     [](var t) {
       return square(affine_grid(t, {2, 3}));
     },
     {{.extents = {2, 2, 3}}}},
    {"crop_and_resize",
     [](var x, var box, var of) { return crop_and_resize(x, box, of, 3, 2); },
     {image, {.extents = {3, 4}, .low = 0.05, .high = 0.95}, of_two}},
    {"roi_align",
     [](var x, var r, var of) {
       return roi_align(x, ordered(r), of, {2, 2, 2});
     },
     {image, {.extents = {3, 4}, .low = 0.3, .high = 1.4}, of_two}},
    {"box_iou",
     [](var x, var y) { return box_iou(ordered(x), ordered(y)); },
     {{.extents = {2, 4}, .low = 0}, {.extents = {3, 4}, .low = 0}}},
    {"encode_boxes",
     [](var x, var y) {
       return encode_boxes(ordered(x), ordered(y), {10, 10, 5, 5});
     },
     {{.extents = {3, 4}, .low = 0.3, .high = 1.4}, {.extents = {3, 4}, .low = 0.3, .high = 1.4}}},
    {"decode_boxes",
     [](var x, var y) {
       return decode_boxes(x, ordered(y), {10, 10, 5, 5});
     },
     {{.extents = {3, 4}}, {.extents = {3, 4}, .low = 0.3, .high = 1.4}}},
    {"rgb_to_grayscale", [](var x) { return square(rgb_to_grayscale(x)); }, {colors}},
    {"rgb_to_ycbcr", [](var x) { return square(rgb_to_ycbcr(x)); }, {colors}},
    {"ycbcr_to_rgb", [](var x) { return square(ycbcr_to_rgb(x)); }, {colors}},
    {"rgb_to_hsv", [](var x) { return rgb_to_hsv(x); }, {colors}},
    {"hsv_to_rgb", [](var x) { return hsv_to_rgb(x); }, {colors}},
    {"psnr", [](var x, var y) { return psnr(x, y); }, {pixels, pixels}},
    {"ssim", [](var x, var y) { return ssim(x, y); }, {pixels, pixels}},
    {"image_gradients",
     [](var x) { return square(image_gradients(x).vertical) + image_gradients(x).horizontal; },
     {image}},
};

}  // namespace

TEST_CASE("sampled images: values, traces and derivatives of both orders agree") {
  for (const gradient_case& c : cases) check_gradient(c, {1e-6, 3e-6, 1e-5});
}

TEST_CASE("an axis of another size is what the formula says, if the ratio is no binary fraction") {
  // 11 times 15 / 11 is less than 15.
  reals squares, wanted;
  for (int i = 0; i < 11; ++i) squares.push_back(i * i);
  for (int i = 0; i < 15; ++i) {
    const double at = std::clamp((i + 0.5) * 11 / 15 - 0.5, 0.0, 10.0);
    const int below = int(at), above = std::min(below + 1, 10);
    wanted.push_back(below * below + (at - below) * (above * above - below * below));
  }
  const auto x = f64({11}, squares);
  const auto resized = [&](const resize_form& form) {
    return eval([&](var v) { return resize(v, {0}, {15}, form); }, x).values;
  };
  check_close(resized({}), wanted, 1e-14);
  check_close(resized({.coordinates = resize_coordinates::half_pixel_symmetric}), wanted, 1e-14);
}

TEST_CASE("smaller images without aliases are PyTorch's, in the form that its docstring names") {
  const auto x = f64({7}, {1, 4, -2, 0.5, 3, 7, -1});
  const auto resized = [&](resize_mode mode) {
    const resize_form form{
        .mode = mode, .cubic = -0.5, .excludes_outside = true, .antialias = true};
    return eval([&](var v) { return resize(v, {0}, {3}, form); }, x).values;
  };
  check_close(resized(resize_mode::linear),
              reals{1.642857142857143, 1.0882352941176472, 3.285714285714285}, 1e-14);
  check_close(resized(resize_mode::cubic),
              reals{1.5887096774193556, 0.9822954822954822, 3.3830645161290316}, 1e-14);
}

TEST_CASE("a cubic beyond the border goes on, of the elements there, as PyTorch's does") {
  eager_session s;
  const var x = s(f64({1, 1, 2, 3}, {1, 2, 3, 4, 6, 9}));
  const var g = s(f64({1, 1, 3, 2}, {-1.3, 0.4, 0.9, 1.2, 1.5, -1.4}));
  const auto sampled = [&](bool corners) {
    return s.value(grid_sample(x, g, {sample_mode::cubic, sample_padding::border, corners})).values;
  };
  check_close(sampled(true), reals{2.97325975, 9.1224470625, 2.49975}, 1e-12);
  check_close(sampled(false), reals{3.7505835625, 9.626699390625, 2.9595}, 1e-12);
}

TEST_CASE("an affine grid of the identity samples the image itself, and a box of all of it is it") {
  eager_session s;
  const auto x = image.sample(4);
  for (bool corners : {false, true}) {
    const var theta = s(f64({2, 2, 3}, {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0}));
    for (sample_mode mode : {sample_mode::nearest, sample_mode::linear, sample_mode::cubic})
      check_close(s.value(grid_sample(s(x), affine_grid(theta, {4, 3}, corners),
                                      {mode, sample_padding::border, corners}))
                      .values,
                  x.values, 1e-14);
  }
  const var box = s(f64({2, 4}, {0, 0, 1, 1, 0, 0, 1, 1}));
  check_close(s.value(crop_and_resize(s(x), box, s(i64({2}, {0, 1})), 4, 3)).values, x.values,
              1e-14);
  // Twice the width: half of it is outside.
  const var wide = s(f64({1, 4}, {0, 0, 1, 2}));
  const auto y = s.value(crop_and_resize(s(x), wide, s(i64({1}, {0})), 4, 5, -7)).values;
  for (int row = 0; row < 8; ++row) {
    for (int k = 0; k < 3; ++k)
      CHECK(y[std::size_t(5 * row + k)] == doctest::Approx(x.values[std::size_t(3 * row + k)]));
    CHECK(y[std::size_t(5 * row + 3)] == -7);
  }
}

TEST_CASE("colours are what Python's colorsys says, and come back") {
  const auto of = [](auto f, reals x) {
    return eval([f](var v) { return f(v); }, f64({1, 3, 1}, x)).values;
  };
  check_close(of([](var v) { return rgb_to_hsv(v); }, {0.2, 0.4, 0.4}), reals{0.5, 0.5, 0.4},
              1e-15);
  check_close(of([](var v) { return hsv_to_rgb(v); }, {0.5, 0.5, 0.4}), reals{0.2, 0.4, 0.4},
              1e-15);
  check_close(of([](var v) { return rgb_to_hsv(v); }, {0.9, 0.1, 0.5}),
              reals{11.0 / 12, 8.0 / 9, 0.9}, 1e-15);
  CHECK(of([](var v) { return rgb_to_hsv(v); }, {0.3, 0.3, 0.3}) == reals{0, 0, 0.3});
  check_close(of([](var v) { return rgb_to_ycbcr(v); }, {1, 0, 0}),
              reals{0.299, 0.5 - 0.299 / 1.772, 1}, 1e-15);
  const auto x = colors.sample(3);
  check_close(eval([](var v) { return hsv_to_rgb(rgb_to_hsv(v)); }, x).values, x.values, 1e-15);
  check_close(eval([](var v) { return ycbcr_to_rgb(rgb_to_ycbcr(v)); }, x).values, x.values, 1e-15);
}

TEST_CASE("how alike images are: of equal ones all, otherwise as the definition says") {
  const auto x = case_input{.extents = {1, 1, 11, 11}, .low = 0, .high = 255}.sample(1);
  const auto y = case_input{.extents = {1, 1, 11, 11}, .low = 0, .high = 255}.sample(2);
  check_close(eval([](var v) { return ssim(v, v, 255); }, x).values, reals{1}, 1e-14);
  CHECK(eval([](var v) { return psnr(v, v); }, x).values == reals{infinity});
  CHECK(eval([](var v) { return psnr(v, v + 5, 255); }, x).values[0] ==
        doctest::Approx(20 * std::log10(51)));
  double total = 0, mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
  for (int i = 0; i < 11; ++i)
    for (int j = 0; j < 11; ++j) total += std::exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / 4.5);
  for (int i = 0; i < 11; ++i) {
    for (int j = 0; j < 11; ++j) {
      const double w = std::exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / 4.5) / total;
      const double a = x.values[std::size_t(11 * i + j)], b = y.values[std::size_t(11 * i + j)];
      mx += w * a, my += w * b, xx += w * a * a, yy += w * b * b, xy += w * a * b;
    }
  }
  const double c1 = std::pow(0.01 * 255, 2), c2 = std::pow(0.03 * 255, 2);
  const double wanted = (2 * mx * my + c1) * (2 * (xy - mx * my) + c2) /
                        ((mx * mx + my * my + c1) * (xx - mx * mx + yy - my * my + c2));
  check_close(eval([](var v, var u) { return ssim(v, u, 255); }, x, y).values, reals{wanted},
              1e-12);
}

TEST_CASE("of boxes that overlap the best is kept, in the order of scores") {
  const auto boxes =
      f64({5, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 1, 101, 0, 100});
  const auto scores = f64({5}, {0.9, 0.75, 0.6, 0.95, 0.3});
  const auto chosen = [&](int size, double overlap, double least) {
    return eval([=](var b, var s) { return non_max_suppression(b, s, size, overlap, least); },
                boxes, scores)
        .values;
  };
  CHECK(chosen(5, 0.5, 0) == reals{3, 0, 4, -1, -1});
  CHECK(chosen(2, 0.5, 0) == reals{3, 0});
  CHECK(chosen(4, 0.5, 0.4) == reals{3, 0, -1, -1});
  CHECK(chosen(5, 0.85, 0) == reals{3, 0, 1, 2, 4});
  check_close(
      eval([](var b) { return box_iou(b, b); }, f64({2, 4}, {0, 0, 2, 2, 1, 1, 3, 3})).values,
      reals{1, 1.0 / 7, 1.0 / 7, 1}, 1e-15);
}

TEST_CASE("codes of boxes are distances of centers and quotients of extents, and mean the boxes") {
  const auto boxes = f64({2, 4}, {1, 1, 3, 3, -1, 0, 5, 2});
  const auto anchors = f64({2, 4}, {0, 0, 2, 4, 0, 0, 3, 1});
  const auto codes = [](var x, var a) { return encode_boxes(x, a, {1, 2, 3, 4}); };
  check_close(eval(codes, boxes, anchors).values,
              reals{0.5, 0, 0, 4 * std::log(0.5), 0.5 / 3, 1, 3 * std::log(2), 4 * std::log(2)},
              1e-15);
  check_close(eval(
                  [codes](var x, var a) {
                    return decode_boxes(codes(x, a), a, {1, 2, 3, 4});
                  },
                  boxes, anchors)
                  .values,
              boxes.values, 1e-14);
  // Growth is bounded.
  CHECK(eval([](var a) { return decode_boxes(full_like(a, 100), a); }, anchors).values[2] ==
        doctest::Approx(201 + 62.5));
  CHECK_THROWS_WITH_AS(eval([](var a) { return encode_boxes(a, sum(a, {1})); }, anchors),
                       doctest::Contains("encode_boxes: needs boxes [...,4]"), model_error);
}

TEST_CASE("the faults of images name what does not fit") {
  const auto x = f64({1, 2, 2, 2}, reals(8, 1.0));
  const auto fails = [&](auto f, const char* why) {
    CHECK_THROWS_WITH_AS(eval([f](var v) { return f(v); }, x), doctest::Contains(why), model_error);
  };
  fails([](var v) { return resize(v, {2}, {0}); }, "resize: the size 0 of axis 2 is not positive");
  fails([](var v) { return resize(v, {2, 3}, {1}); }, "one size for each axis");
  fails([](var v) { return grid_sample(v, cast(v, dtype::f32)); }, "grid_sample: ");
  fails([](var v) { return rgb_to_hsv(v); }, "needs images [N,3,...]");
  fails([](var v) { return ssim(v, v); }, "11 pixels wide");
  fails([](var v) { return box_area(v); }, "needs boxes [...,4]");
}
