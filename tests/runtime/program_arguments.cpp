// What the caller of a program hands over is compared with what it takes.
#include <doctest/doctest.h>

#include <cella/data/xtensor.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/runtime/compile.hpp>
#include <string>
#include <vector>

using namespace cella;

namespace {

/// x + y, one of them converted, and 2 x.
struct sums {
  constexpr std::array<var, 2> operator()(var x, var y) const {
    return {x + cast(y, dtype::f32), 2 * x};
  }
};
using P = inference_program<sums, tensor<dtype::f32, 2, 3>, tensor<dtype::i32, 2, 3>>;
using bound_program = with_bound_results<P>;
using floats = std::vector<float>;
using whole_numbers = std::vector<std::int32_t>;

template <class... A>
std::string_view fault_of() {
  return detail::arguments_text<P, A...>.view();
}
template <int K, class A>
std::string_view fault_of_place() {
  return detail::place_text<bound_program, K, A>.view();
}
template <class T>
std::string name_of() {
  return std::string(detail::type_name<T>());
}

}  // namespace

TEST_CASE("arrays of any library are arguments, and addresses where that is asked for") {
  sums cell;
  parameter_store store(cell, 1);
  executable<P> run(store);
  const floats x{1, 2, 3, 4, 5, 6}, expected{2, 4, 6, 8, 10, 12};
  const whole_numbers y{1, 2, 3, 4, 5, 6};
  const auto check = [&] { CHECK(std::ranges::equal(run.result(), expected)); };
  run(x, y);
  check();
  run(std::span(x), data::tensor_view<const std::int32_t>(y.data(), {2, 3}));
  check();
  run(xt::xtensor<float, 2>{{1, 2, 3}, {4, 5, 6}}, xt::xarray<std::int32_t>{{1, 2, 3}, {4, 5, 6}});
  check();
  const float in_the_language[] = {1, 2, 3, 4, 5, 6};
  run(in_the_language, std::array{1, 2, 3, 4, 5, 6});
  check();
  run.call_unchecked(x.data(), y.data());
  check();
}

TEST_CASE("a wrong size, rank or order names the argument, and nothing runs") {
  sums cell;
  parameter_store store(cell, 1);
  executable<P> run(store);
  const floats x(6, 1);
  const whole_numbers y(6, 1);
  run(x, y);
  const auto refused = [&](const auto& a, const auto& b, const char* sentence) {
    CHECK_THROWS_WITH_AS(run(a, b), sentence, error);
    CHECK(run.result()[0] == 2);
  };
  refused(floats(5, 3), y,
          "argument 1 (x) has 5 elements, but the program's is f32[2,3], which has 6; hand over as "
          "many");
  refused(floats(7, 3), whole_numbers(7),
          "argument 1 (x) has 7 elements, but the program's is f32[2,3], which has 6; hand over as "
          "many");
  refused(x, std::array{1, 2, 3, 4, 5, 6, 7},
          "argument 2 (y) has 7 elements, but the program's is i32[2,3], which has 6; hand over as "
          "many");
  refused(x, data::tensor_view<const std::int32_t>(y.data(), {3, 2}),
          "argument 2 (y) is [3,2], but the program's is i32[2,3]; hand over an array of these "
          "extents");
  refused(xt::xtensor<float, 1>{1, 2, 3, 4, 5, 6}, y,
          "argument 1 (x) is [6], but the program's is f32[2,3]; hand over an array of these "
          "extents");
  refused(xt::xtensor<float, 2, xt::layout_type::column_major>{{1, 2, 3}, {4, 5, 6}}, y,
          "argument 1 (x) is not dense and row-major; hand over a row-major copy");
}

TEST_CASE("another element type, an address or another number of arrays is a fault") {
  CHECK(fault_of<floats, whole_numbers>() == "");
  CHECK(fault_of<floats, floats>() ==
        "the elements of argument 2 (y) are float, but the program's is i32[2,3], of int; convert "
        "them");
  CHECK(fault_of<std::vector<double>, floats>() ==
        "the elements of argument 1 (x) are double, but the program's is f32[2,3], of float; "
        "convert them");
  CHECK(fault_of<const float*, whole_numbers>() ==
        "argument 1 (x) is " + name_of<const float*>() +
            ", an address, which does not say how many elements there "
            "are; hand "
            "over a vector, an array or a span, or call call_unchecked");
  CHECK(fault_of<floats, int>() ==
        "argument 2 (y) is int, no array; hand over a vector, an array or a span");
  CHECK(fault_of<floats>() ==
        "the program takes 2 arguments: f32[2,3], i32[2,3]; 1 is handed over");
  CHECK(fault_of<floats, whole_numbers, floats>() ==
        "the program takes 2 arguments: f32[2,3], i32[2,3]; 3 are handed over");
}

TEST_CASE("places of results are checked like arguments") {
  sums cell;
  parameter_store store(cell, 1);
  executable<bound_program> run(store);
  floats sum(6), twice(7);
  run.bind(sum);
  CHECK_THROWS_WITH_AS(run.bind<1>(twice),
                       "the place of result 1 has 7 elements, but the program's is f32[2,3], which "
                       "has 6; hand over as many",
                       error);
  run.bind<1>(std::span(twice).first(6));
  run(floats{1, 2, 3, 4, 5, 6}, whole_numbers(6, 1));
  CHECK(sum == floats{2, 3, 4, 5, 6, 7});
  CHECK(twice == floats{2, 4, 6, 8, 10, 12, 0});
  run.bind_unchecked<1>(twice.data() + 1);
  run(floats{1, 2, 3, 4, 5, 6}, whole_numbers(6, 1));
  CHECK(twice == floats{2, 2, 4, 6, 8, 10, 12});

  CHECK(fault_of_place<0, floats&>() == "");
  CHECK(fault_of_place<0, std::span<float>>() == "");
  CHECK(fault_of_place<1, std::vector<double>&>() ==
        "the elements of the place of result 1 are double, but the program's is f32[2,3], of "
        "float; convert them");
  CHECK(fault_of_place<0, float*>() ==
        "the place of result 0 is " + name_of<float*>() +
            ", an address, which does not say how many elements there "
            "are; "
            "hand over a vector, an array or a span, or call bind_unchecked");
  CHECK(fault_of_place<0, std::span<const float>>() == "the place of result 0 is " +
                                                           name_of<std::span<const float>>() +
                                                           ", which cannot be written to");
  CHECK(fault_of_place<0, floats>() ==
        "the place of result 0 is gone before the first call; hand over memory that outlives the "
        "calls");
}

TEST_CASE("what compile returns checks in the same way") {
  auto run = compile<tensor<dtype::f64, 3>>([](var x) { return 2 * x; });
  CHECK(run(std::array{1.0, 2.0, 3.0})[2] == 6);
  CHECK(run.call_unchecked(std::array{1.0, 2.0, 4.0}.data())[2] == 8);
  CHECK_THROWS_WITH_AS(run(std::array{1.0, 2.0}),
                       "argument 1 (x) has 2 elements, but the program's is f64[3], which has 3; "
                       "hand over as many",
                       error);
}
