#include <doctest/doctest.h>

#include <cella/backend/cpu/lanes/layout.hpp>

#include "lanes_reference.hpp"

using namespace cella;
using namespace cella::cpu;
using namespace reference;

TEST_CASE_TEMPLATE("pack and unpack agree with plain loops", T, float, double) {
  const std::vector<lanes_image_extents> images{
      {0, 1, 28, 28, 2, 2}, {0, 3, 5, 7, 1, 1}, {0, 6, 5, 5, 0, 0},  {0, 1, 1, 1, 0, 0},
      {0, 17, 1, 1, 0, 0},  {0, 400, 1, 1},     {0, 2, 3, 40, 1, 0}, {0, 2, 9, 2, 0, 3},
  };
  for (auto e : images) {
    for (int n : batches<T>()) {
      e.samples = n;
      CAPTURE(n);
      CAPTURE(e.channels);
      CAPTURE(e.height);
      CAPTURE(e.width);
      // One element off alignment, as a user's buffer may be.
      const auto plain = integers<T>(std::int64_t{n} * e.channels * e.height * e.width, 1);
      aligned<T> shifted(plain.size() + 1);
      std::copy(plain.begin(), plain.end(), shifted.begin() + 1);
      const auto expected = to_lanes<T>(plain, n, e.channels, e.height, e.width, e.padding_height,
                                        e.padding_width, T{0});
      aligned<T> packed(expected.size(), poison<T>);
      run(pack_lanes_units<T>(e), 3,
          [&](work_range r) { pack_lanes(r, e, shifted.data() + 1, packed.data()); });
      CHECK(packed == expected);

      const auto poisoned = to_lanes<T>(plain, n, e.channels, e.height, e.width, e.padding_height,
                                        e.padding_width, poison<T>);
      aligned<T> unpacked(shifted.size(), poison<T>);
      run(pack_lanes_units<T>(e), 3,
          [&](work_range r) { unpack_lanes(r, e, poisoned.data(), unpacked.data() + 1); });
      CHECK(std::equal(plain.begin(), plain.end(), unpacked.begin() + 1));
      CHECK(std::isnan(unpacked[0]));
    }
  }
}

TEST_CASE_TEMPLATE("a partial store leaves its neighbours alone", T, float, double) {
  for (int count = 0; count <= lanes<T>; ++count) {
    aligned<T> to(2 * static_cast<std::size_t>(lanes<T>), T{9});
    store_plain<T>{to.data()}(vec<T>(T{4}), 1, count);
    for (int i = 0; i < static_cast<int>(to.size()); ++i) {
      CHECK(to[static_cast<std::size_t>(i)] == (i >= 1 && i <= count ? T{4} : T{9}));
    }
  }
}
