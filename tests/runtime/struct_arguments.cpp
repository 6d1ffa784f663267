// compile with structs of tensors as arguments.
#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/gradient.hpp>
#include <vector>

using namespace cella;

struct body {
  tensor<dtype::f64, 2> position;
  tensor<dtype::f64, 2> velocity;
  tensor<dtype::f64> mass;
};
/// Kinetic energy and that of a spring of this stiffness.
constexpr var energy_of(const body& b, var stiffness) {
  return (b.mass * sum(square(b.velocity)) + stiffness * sum(square(b.position))) / 2;
}
struct moved {
  var position, velocity;
};
struct step {
  constexpr moved operator()(const body& b, var stiffness, var time) const {
    const var force = -stiffness * b.position;
    const var velocity = b.velocity + time * force / b.mass;
    return {b.position + time * velocity, velocity};
  }
};

/// A cell with parameters of its own.
struct described {
  tensor<dtype::f32, 2, 3> values;
  tensor<dtype::i32, 2> kinds;
};
struct scored {
  nn::dense<3, 1> fit{};
  constexpr var operator()(const described& d) const {
    return fit(d.values) + reshape(cast(d.kinds, dtype::f32), {2, 1});
  }
};

namespace {
using number = tensor<dtype::f64>;
template <class F, class... A>
std::string_view fault_of() {
  return freeze_fault<typename compiled<F, A...>::program::make>.view();
}
}  // namespace

TEST_CASE("a function of a struct is called with its members, and its result has members") {
  auto move = compile<body, number, number>(step{});
  const std::array position{1.0, -2.0}, velocity{0.5, 0.25};
  const std::array mass{2.0}, stiffness{3.0}, time{0.1};
  const auto p = move(position, velocity, mass, stiffness, time);
  const auto v = move.result<1>();
  for (std::size_t i = 0; i < 2; ++i) {
    const double expected = velocity[i] - 0.1 * 3 * position[i] / 2;
    CHECK(v[i] == doctest::Approx(expected));
    CHECK(p[i] == doctest::Approx(position[i] + 0.1 * expected));
  }
  auto energy = compile<body, number>([](const body& b, var k) { return energy_of(b, k); });
  CHECK(energy(position, velocity, mass, stiffness)[0] ==
        doctest::Approx((2 * (0.25 + 0.0625) + 3 * 5) / 2));
}

TEST_CASE("derivatives go through a struct's members") {
  auto force = compile<body, number>([](const body& b, var stiffness) {
    const auto energy = [&](var x) {
      body moved = b;
      static_cast<var&>(moved.position) = x;
      return energy_of(moved, stiffness);
    };
    return -grad(energy)(b.position);
  });
  const auto f =
      force(std::array{1.0, -2.0}, std::array{0.0, 0.0}, std::array{1.0}, std::array{3.0});
  CHECK(f[0] == doctest::Approx(-3));
  CHECK(f[1] == doctest::Approx(6));
}

TEST_CASE("parameters of a cell that takes a struct keep their names") {
  auto run = compile<described>(scored{}, 4);
  const std::span<float> w = run.parameters().mutable_values<float>("fit.weight");
  CHECK(w.data() == run.cell().fit.weight.values().data());
  std::ranges::copy(std::array{1.f, 2.f, 3.f}, w.begin());
  run.parameters().mutable_values<float>("fit.bias")[0] = 0;
  const auto y = run(std::vector<float>{1, 1, 1, 0, 0, 2}, std::vector{10, 20});
  CHECK(y[0] == 16);
  CHECK(y[1] == 26);
}

TEST_CASE("messages name the member") {
  auto run = compile<described>(scored{});
  CHECK_THROWS_WITH_AS(run(std::vector<float>(6), std::vector{1}),
                       "argument 2 (kinds) has 1 elements, but the program's is i32[2], which has "
                       "2; hand over as many",
                       error);
  using program = decltype(run)::program;
  CHECK(detail::arguments_text<program, std::vector<float>, std::vector<float>>.view() ==
        "the elements of argument 2 (kinds) are float, but the program's is i32[2], of int; "
        "convert them");
  struct other {
    tensor<dtype::f32, 2, 4> values;
    tensor<dtype::i32, 2> kinds;
  };
  const std::string_view fault = fault_of<scored, other>();
  CHECK(fault == std::string(detail::type_name<scored>()) + ": is given (" +
                     std::string(detail::type_name<other>()) +
                     "), but its call operator takes something else");
  struct wide {
    tensor<dtype::f64, 3> position;
  };
  const std::string_view bounds =
      fault_of<decltype([](const wide& w) { return slice(w.position, 0, 0, 9); }), wide>();
  CAPTURE(bounds);
  CHECK(bounds.find("axis 0 of position [3]") != bounds.npos);
  CHECK(fault_of<decltype([](const wide&) { return 1; }), wide>().find("returns int; a cell") !=
        std::string_view::npos);
  static_assert(!detail::compiled_argument<int>);
  static_assert(!detail::compiled_argument<moved>);
}
