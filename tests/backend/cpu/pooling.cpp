#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cella/backend/cpu/convolution/pooling.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/pooling.hpp>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

constexpr int samples = 2, channels = 3;

/// Few different numbers, so that many are equal; some are infinite, some are no number, some are
/// negative zeros.
template <class T>
std::vector<T> numbers(std::int64_t count, unsigned seed) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  std::mt19937 random(seed);
  std::vector<T> v;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto r = random() % 64;
    v.push_back(r < 8    ? -infinity
                : r == 8 ? std::numeric_limits<T>::quiet_NaN()
                : r == 9 ? T(-0.0)
                         : T(r % 7) / T(3) - T(1));
  }
  return v;
}
template <class T>
tensor_ref as_tensor(std::vector<T>& v, const shape& s) {
  return {reinterpret_cast<std::byte*>(v.data()), {dtype_of<T>, s}};
}
/// Any NaN equals any other, all else bit for bit.
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return a.size() == b.size();
}
/// Runs units one by one in any order, so that none may count on another.
template <class F>
void in_units(const pooling_extents& e, F f) {
  for (int u = e.planes; u-- > 0;) f(work_range{u, u + 1});
}

/// The kernels beside the operations' own computation.
template <class T>
void check(const shape& image, const pooling_options& o) {
  const tensor_type type{dtype_of<T>, image};
  const shape windows = cella::detail::pooled(type, o).shape;
  const pooling_extents e{samples * channels,  image[2],          image[3],
                          windows[2],          windows[3],        o.kernel,
                          o.window.stride,     o.window.dilation, o.window.before,
                          o.count_padding != 0};
  std::vector<T> x = numbers<T>(image.size(), 5), dy = numbers<T>(windows.size(), 6);
  std::vector<T> y(dy.size(), T(9)), right_y(y), dx(x.size(), T(9)), right_dx(dx);
  std::vector<std::uint8_t> at(y.size(), 99), right_at(at);
  const std::array pools{as_tensor(right_y, windows), as_tensor(right_at, windows)};
  const auto right = [&](const op_info& op, std::span<const tensor_ref> in,
                         std::span<const tensor_ref> out) { cella::compute(op, o, in, out); };

  right(info_of<max_pool_op>, std::array{as_tensor(x, image)}, pools);
  in_units(e, [&](work_range u) { max_pool_planes(u, e, x.data(), y.data(), at.data()); });
  CHECK(same(y, right_y));
  CHECK(same(at, right_at));
  y.assign(y.size(), T(9));
  in_units(e, [&](work_range u) { max_pool_planes<T>(u, e, x.data(), y.data(), nullptr); });
  CHECK(same(y, right_y));

  // Positions that no maximum has may lie in the padding, or beyond the window.
  for (std::size_t i = 0; i < at.size(); i += 5) at[i] = std::uint8_t(i % 11);
  const std::array values{as_tensor(dy, windows), as_tensor(at, windows)};
  right(info_of<unpool_op>, values, std::array{as_tensor(right_dx, image)});
  in_units(e, [&](work_range u) { unpool_planes(u, e, dy.data(), at.data(), dx.data()); });
  CHECK(same(dx, right_dx));

  right_y.assign(y.size(), T(0));
  right(info_of<pool_gather_op>, std::array{as_tensor(x, image), as_tensor(at, windows)},
        std::span(pools).first(1));
  in_units(e, [&](work_range u) { pool_gather_planes(u, e, x.data(), at.data(), y.data()); });
  CHECK(same(y, right_y));

  right(info_of<average_pool_op>, std::array{as_tensor(x, image)}, std::span(pools).first(1));
  in_units(e, [&](work_range u) { average_pool_planes(u, e, x.data(), y.data()); });
  CHECK(same(y, right_y));

  right(info_of<average_spread_op>, std::array{as_tensor(dy, windows)},
        std::array{as_tensor(right_dx, image)});
  in_units(e, [&](work_range u) { average_spread_planes(u, e, dy.data(), dx.data()); });
  CHECK(same(dx, right_dx));
}

}  // namespace

TEST_CASE_TEMPLATE("pooling of plain images equals the operations bit for bit", T, float, double) {
  int checked = 0;
  for (const auto& [height, width] :
       {std::array{1, 1}, {2, 2}, {4, 5}, {5, 4}, {7, 9}, {8, 8}, {11, 34}, {6, 67}}) {
    for (const auto& kernel : {std::array{1, 1}, {2, 2}, {3, 3}, {1, 3}, {3, 2}, {5, 4}}) {
      for (const auto& stride : {std::array{1, 1}, {2, 2}, {3, 1}, {2, 5}}) {
        for (int padding = 0; padding <= 2; ++padding) {
          for (const auto& dilation : {std::array{1, 1}, {2, 1}, {2, 3}}) {
            pooling_options o;
            o.kernel = kernel;
            o.extents = {height, width};
            o.window.stride = stride;
            o.window.dilation = dilation;
            for (std::size_t d = 0; d < 2; ++d) {
              o.window.before[d] = std::min(padding, kernel[d] / 2);
              o.window.after[d] = std::min(padding - padding / 2, kernel[d] / 2);
            }
            o.count_padding = (height + padding) % 2;
            const auto fits = [&](std::size_t d, int size) {
              return o.window.padded(size, d) >= o.window.dilated(kernel[d], d);
            };
            if (!fits(0, height) || !fits(1, width)) continue;
            CAPTURE(height);
            CAPTURE(width);
            CAPTURE(kernel[0]);
            CAPTURE(kernel[1]);
            CAPTURE(padding);
            CAPTURE(stride[0]);
            CAPTURE(dilation[0]);
            check<T>({samples, channels, height, width}, o);
            ++checked;
          }
        }
      }
    }
  }
  CHECK(checked > 500);
}
