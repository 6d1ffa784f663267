#include <doctest/doctest.h>

#include <cella/backend/cpu/plan/layout.hpp>
#include <cella/models/lenet.hpp>
#include <cella/models/resnet.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/trace.hpp>

using namespace cella;

namespace {

constexpr convolution_shape square(int samples, int channels, int size, int filters, int kernel,
                                   int stride = 1, int lanes = 16) {
  const int p = kernel / 2;
  return {samples,
          channels,
          size,
          size,
          filters,
          {kernel, kernel},
          {{stride, stride}, {p, p}, {p, p}, {1, 1}, 1},
          lanes == 8 ? dtype::f64 : dtype::f32,
          lanes};
}

template <class Cell, std::size_t N>
layout layout_of(const std::array<tensor_type, N>& arguments, bool training,
                 convolution_algorithm forced = convolution_algorithm::modelled) {
  Cell cell{};
  const graph g = optimize(trace(cell, arguments, {.training = training}));
  return choose_layout(g, dtype::f32, 16, forced);
}

/// Two convolutions of odd numbers of channels, which have no kernel in blocks.
template <int Channels>
struct small_layer {
  nn::conv2d<Channels, Channels, 3> a{.padding = 1}, b{.padding = 1};
  constexpr var operator()(var x) const { return b(relu(a(x))); }
};
template <int N, int Channels>
constexpr std::array image{tensor<dtype::f32, N, Channels, 16, 16>::type};

using enum convolution_algorithm;

}  // namespace

TEST_CASE("a convolution has those kernels that its window, channels and groups allow") {
  constexpr convolution_shape wide = square(8, 64, 14, 32, 3);
  for (const auto a : {plain, lanes, direct, minimal}) CHECK(has_kernel(a, wide));
  convolution_shape s = square(8, 64, 14, 32, 3, 2);
  CHECK(has_kernel(direct, s));
  CHECK(!has_kernel(minimal, s));
  s = square(8, 64, 14, 33, 3);
  CHECK(has_kernel(lanes, s));
  CHECK(!has_kernel(direct, s));
  s = square(8, 3, 14, 32, 3);
  CHECK(has_kernel(direct, s));
  CHECK(!has_kernel(direct, s, convolution_pass::image_gradient));
  s = wide;
  s.walk.dilation = {2, 2};
  CHECK(has_kernel(plain, s));
  CHECK(!has_kernel(lanes, s));
  CHECK(!has_kernel(direct, s));
  s = wide;
  s.walk.after = {0, 0};
  CHECK(!has_kernel(direct, s));
  s = wide;
  s.element = dtype::i32;
  CHECK(!has_kernel(direct, s));
}

TEST_CASE("Winograd's filtering is chosen where tiles are many, and not where filters are large") {
  for (int p = 0; p < convolution_passes; ++p) {
    const auto chosen = [&](const convolution_shape& s) {
      return choose_in_blocks(s, convolution_pass(p), modelled);
    };
    CHECK(chosen(square(8, 64, 56, 64, 3)) == minimal);
    CHECK(chosen(square(8, 256, 14, 256, 3)) == minimal);
    CHECK(chosen(square(1, 64, 56, 64, 3)) == minimal);
    CHECK(chosen(square(8, 32, 28, 32, 3, 1, 8)) == minimal);
    CHECK(chosen(square(1, 512, 7, 512, 3)) == direct);
    CHECK(chosen(square(8, 128, 56, 128, 3, 2)) == direct);
  }
}

TEST_CASE("filters that are kept from call to call cost Winograd's filtering less") {
  const auto chosen = [](convolution_shape s, bool keeps_filters) {
    s.keeps_filters = keeps_filters;
    return choose_in_blocks(s, convolution_pass::forward, modelled);
  };
  const convolution_shape late = square(1, 256, 14, 256, 3), last = square(1, 512, 7, 512, 3);
  CHECK(chosen(late, false) == direct);
  CHECK(chosen(late, true) == minimal);
  // Four tiles are not worth 37 MB of transformed filters.
  CHECK(chosen(last, true) == direct);
  convolution_shape kept = late;
  kept.keeps_filters = true;
  for (const auto a : {plain, direct})
    CHECK(convolution_cost(a, kept, convolution_pass::forward) ==
          convolution_cost(a, late, convolution_pass::forward));
}

TEST_CASE("the matrix unit's products of bf16 are chosen before Winograd's filtering in f32") {
  for (int p = 0; p < convolution_passes; ++p) {
    for (const auto& [channels, size] : {std::array{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
      convolution_shape s = square(8, channels, size, channels, 3);
      s.summands = 2;
      const double pairs = convolution_cost(direct, s, convolution_pass(p));
      s.by_unit = true;
      CHECK(choose_in_blocks(s, convolution_pass(p), modelled) == direct);
      CHECK(convolution_cost(direct, s, convolution_pass(p)) < pairs);
    }
  }
  CHECK(square(8, 64, 56, 48, 3).whole_unit_rows(convolution_pass::forward));
  CHECK(!square(8, 64, 56, 48, 3).whole_unit_rows(convolution_pass::image_gradient));
  CHECK(square(8, 48, 56, 48, 3).whole_unit_rows(convolution_pass::filter_gradient));
}

TEST_CASE("a forced choice holds where there is such a kernel") {
  const convolution_shape many = square(8, 64, 56, 64, 3), few = square(1, 512, 7, 512, 3);
  const auto p = convolution_pass::forward;
  CHECK(choose_in_blocks(many, p, direct) == direct);
  CHECK(choose_in_blocks(few, p, minimal) == minimal);
  CHECK(choose_in_blocks(square(8, 128, 56, 128, 3, 2), p, minimal) == direct);
  CHECK(layout_of<small_layer<6>>(image<32, 6>, false, plain) == layout::plain);
  CHECK(layout_of<small_layer<6>>(image<1, 6>, false, convolution_algorithm::lanes) ==
        layout::lanes);
  CHECK(layout_of<small_layer<16>>(image<1, 16>, false, direct) == layout::blocked);
  CHECK(layout_of<small_layer<6>>(image<1, 6>, false, direct) == layout::plain);
}

TEST_CASE("layouts of known nets") {
  CHECK(layout_of<models::lenet5>(std::array{tensor<dtype::f32, 32, 1, 28, 28>::type}, false) ==
        layout::lanes);
  CHECK(layout_of<models::lenet5>(std::array{tensor<dtype::f32, 1, 1, 28, 28>::type}, false) ==
        layout::plain);
  CHECK(layout_of<models::resnet20<10>>(std::array{tensor<dtype::f32, 32, 3, 32, 32>::type},
                                        true) == layout::blocked);
  CHECK(layout_of<small_layer<6>>(image<32, 6>, true) == layout::lanes);
  CHECK(layout_of<small_layer<6>>(image<7, 6>, true) == layout::plain);
}

TEST_CASE("a layer's cost grows with its samples, its pixels and its channels") {
  for (const auto a : {plain, lanes, direct, minimal}) {
    for (int p = 0; p < convolution_passes; ++p) {
      const auto cost = [&](const convolution_shape& s) {
        return modelled_nanoseconds(a, s, convolution_pass(p));
      };
      const double one = cost(square(16, 32, 16, 32, 3));
      CHECK(one > 0);
      CHECK(cost(square(32, 32, 16, 32, 3)) > one);
      CHECK(cost(square(16, 64, 16, 32, 3)) > one);
      CHECK(cost(square(16, 32, 16, 64, 3)) > one);
      CHECK(cost(square(16, 32, 32, 32, 3)) > one);
    }
  }
}
