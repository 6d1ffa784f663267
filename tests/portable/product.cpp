// Compiled for processors with and without a matrix unit.
#include <array>
#include <cella/backend/cpu/simd/matrix_unit.hpp>
#include <numeric>
#include <type_traits>

namespace {

template <class Unit>
int sum_of_product() {
  if constexpr (std::is_void_v<Unit>) {
    return 0;
  } else {
    std::array<std::uint8_t, cella::unit_rows * cella::unit_words * 4> a;
    std::array<std::int8_t, cella::unit_rows * cella::unit_words * 4> b;
    std::array<std::int32_t, cella::unit_rows * cella::unit_words> c;
    a.fill(3);
    b.fill(-5);
    Unit unit;
    unit.template zero<0>();
    unit.template load<1>(a.data(), 64);
    unit.template load<2>(b.data(), 64);
    unit.template add_bytes<0, 1, 2>();
    unit.template store<0>(c.data(), 64);
    return std::accumulate(c.begin(), c.end(), 0);
  }
}

}  // namespace

extern "C" int product_on_unit() { return sum_of_product<cella::cpu::matrix_unit>(); }
