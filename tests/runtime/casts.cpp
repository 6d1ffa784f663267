// Casts between all element types, and numbers beside tensors of them.
#include <cella/ops/print.hpp>
#include <cmath>
#include <limits>

#include "element_types.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// The element types, in the order of the results below.
constexpr int type_count = int(dtype::record);

struct to_all_types {
  constexpr auto operator()(var x) const {
    std::array<var, type_count> all{};
    for (int t = 0; t < type_count; ++t) all[std::size_t(t)] = cast(x, dtype(t));
    return all;
  }
};

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// What a cast of one number is.
template <class To, class From>
To converted(From v) {
  if constexpr (is_half<From>) {
    return converted<To>(float(v));
  } else if constexpr (is_half<To>) {
    return To(float(v));
  } else if constexpr (is_complex(dtype_of<To>)) {
    return To(static_cast<typename To::value_type>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                       !std::is_same_v<To, bool>) {
    using limits = std::numeric_limits<To>;
    if (std::isnan(v)) return 0;
    const auto whole = static_cast<long double>(std::trunc(v));  // 64 binary digits hold all limits
    if (whole <= static_cast<long double>(limits::min())) return limits::min();
    if (whole >= static_cast<long double>(limits::max())) return limits::max();
    return static_cast<To>(whole);
  } else {
    return static_cast<To>(v);
  }
}

/// Fourteen numbers of a type, its ends among them.
template <class T>
std::vector<T> samples() {
  using limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return {};
  } else if constexpr (std::is_integral_v<T>) {
    return {limits::min(),
            T(limits::min() + 1),
            T(limits::max() / 2),
            T(limits::max() / 2 + 1),
            T(limits::max() - 1),
            limits::max(),
            T(0),
            T(1),
            T(-1),
            T(7),
            T(100),
            T(-100),
            T(127),
            T(-128)};
  } else {
    const auto n = [](double v) { return T(float(v)); };
    const double huge = is_half<T> ? 60000 : 1e30;
    return {n(0),  n(-0.0), n(0.75),  n(-0.75),  n(1.5),      n(-127.5),    n(255.5),
            n(-1), n(huge), n(-huge), n(0x1p15), n(HUGE_VAL), n(-HUGE_VAL), n(NAN)};
  }
}

template <class From>
void check_casts() {
  std::vector<std::byte> in;
  std::vector<From> x = samples<From>();
  constexpr int count = 14;
  if constexpr (std::is_same_v<From, bool>) {
    for (int i = 0; i < count; ++i) in.push_back(std::byte(i & 1));
  } else {
    in = bytes_of(x);
  }
  for (const typed_results& r : run_all_ways<tensor<dtype_of<From>, count>>(to_all_types{}, {in})) {
    for (int t = 0; t < type_count; ++t) {
      with_element(dtype(t), [&]<class To>() {
        REQUIRE(r.bytes[std::size_t(t)].size() == count * sizeof(To));
        for (std::size_t i = 0; i < count; ++i) {
          From v{};
          std::memcpy(&v, in.data() + i * sizeof v, sizeof v);
          To found{};
          std::memcpy(&found, r.bytes[std::size_t(t)].data() + i * sizeof found, sizeof found);
          const To expected = converted<To>(v);
          INFO("element ", i, ", ", name(dtype_of<From>), " to ", name(dtype(t)), ", ", r.way);
          if constexpr (std::is_floating_point_v<To>)
            CHECK((found == expected || (std::isnan(found) && std::isnan(expected))));
          else if constexpr (is_half<To>)
            CHECK((found == expected || (std::isnan(float(found)) && std::isnan(float(expected)))));
          else if constexpr (is_complex(dtype_of<To>))
            CHECK((found == expected ||
                   (std::isnan(found.real()) && found.imag() == 0 && std::isnan(expected.real()))));
          else
            CHECK(found == expected);
        }
      });
    }
  }
}

struct beside_numbers {
  constexpr auto operator()(var x) const {
    return std::array{x + 9223372036854775808u, maximum(x, 18446744073709549568.0),
                      select(x > 9007199254740992, x, 3)};
  }
};

}  // namespace

TEST_SUITE("runtime/casts") {
  TEST_CASE_TEMPLATE("casts are those of the language, and keep to the type's range", T, float,
                     double, float16, bfloat16, std::int8_t, std::int16_t, std::int32_t,
                     std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                     bool) {
    check_casts<T>();
  }
  TEST_CASE("numbers beside a tensor of 64 bits are exact") {
    const std::vector<std::uint64_t> x{0, std::uint64_t{1} << 53, (std::uint64_t{1} << 53) + 1,
                                       std::numeric_limits<std::uint64_t>::max()};
    for (const typed_results& r :
         run_all_ways<tensor<dtype::u64, 4>>(beside_numbers{}, {bytes_of(x)})) {
      INFO(r.way);
      const auto sum = r.as<std::uint64_t>(0), largest = r.as<std::uint64_t>(1),
                 chosen = r.as<std::uint64_t>(2);
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(sum[i] == x[i] + (std::uint64_t{1} << 63));
        CHECK(largest[i] == std::max(x[i], std::uint64_t{18446744073709549568u}));
        CHECK(chosen[i] == (i > 1 ? x[i] : 3));
      }
    }
  }
  TEST_CASE("integers of 64 bits are printed to the last digit") {
    std::vector<std::uint64_t> all{std::numeric_limits<std::uint64_t>::max(), 9007199254740993u};
    CHECK(to_string(tensor_ref{reinterpret_cast<std::byte*>(all.data()), {dtype::u64, {2}}}) ==
          "u64[2] {18446744073709551615, 9007199254740993}");
    std::vector<std::int64_t> least{std::numeric_limits<std::int64_t>::min()};
    CHECK(to_string(tensor_ref{reinterpret_cast<std::byte*>(least.data()), {dtype::i64, {}}}) ==
          "i64[] -9223372036854775808");
  }
  TEST_CASE("a constant of an integer type is what the type holds of it, also where it folds") {
    builder b;
    const var x = constant(b, -1, {dtype::u8, {}}), y = constant(b, 300, {dtype::i8, {}});
    CHECK(b.g.nodes[std::size_t(x.id)].attributes.as<constant_op::options>().value == 0);
    CHECK(b.g.nodes[std::size_t(y.id)].attributes.as<constant_op::options>().value == 127);
  }
}
