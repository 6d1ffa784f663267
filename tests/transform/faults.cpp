#include <cella/ops/functions.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>

#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// The sentence of a fault while `f` is traced, without its place, which must be in this file.
template <class F>
std::string refused(F f, const std::vector<tensor_type>& types = {{dtype::f64, {2}},
                                                                  {dtype::f64, {3}}}) {
  try {
    const traced_function g(f, types);
  } catch (const model_error& e) {
    const std::string s = e.what();
    if (!s.starts_with("faults.cpp:")) return "no place in this file: " + s;
    return s.substr(s.find(": ") + 2);
  }
  return "no fault";
}

}  // namespace

TEST_CASE("cond names the types of branches that differ") {
  CHECK(refused([](const vars& x) {
          return vars{cond(
              sum(x[0]) > 0, [&] { return x[0]; }, [&] { return x[1]; })};
        }) ==
        "cond: the result if the condition holds is f64[2], the other one is f64[3]; both "
        "branches must return the same types");
}

TEST_CASE("a condition is one bool") {
  for (const std::string& s : {refused([](const vars& x) {
                                 return vars{cond(
                                     x[0] > 0, [&] { return x[0]; }, [&] { return x[0]; })};
                               }),
                               fault(
                                   [](const vars& x) {
                                     cond(
                                         x[0] > 0, [&] { return x[0]; }, [&] { return x[0]; });
                                   },
                                   {{dtype::f64, {2}}})})
    CHECK(s ==
          "cond: the condition greater result is bool[2]; it must be one bool (compare with "
          ">, ==, ...; any() or all() make one of many)");
  CHECK(refused([](const vars& x) {
          return vars{while_loop([](var v) { return sum(v); }, [](var v) { return v; }, x[0])};
        }) ==
        "while_loop: the condition sum result is f64[]; it must be one bool (compare with >, "
        "==, ...; any() or all() make one of many)");
}

TEST_CASE("a loop that changes the type of its state is refused") {
  CHECK(refused([](const vars& x) {
          return vars{
              while_loop([](var v) { return sum(v) > 0; }, [](var v) { return sum(v); }, x[0])};
        }) ==
        "while_loop: the state is f64[2], what the body makes of it is f64[]; a loop keeps "
        "the types of its state");
  CHECK(refused([](const vars& x) {
          const auto [s, y] = scan(
              [](var v, var u) {
                return std::pair{v + u, concat({v, v}, 0)};
              },
              x[0], x[1]);
          return vars{s, y};
        }) == "no fault");
  CHECK(refused([](const vars& x) {
          const auto [s, y] = scan(
              [](var v, var u) {
                return std::pair{concat({v, v}, 0), u};
              },
              x[0], x[1]);
          return vars{s, y};
        }) ==
        "scan: the state is f64[2], what the body makes of it is f64[4]; a loop keeps the "
        "types of its state");
}

TEST_CASE("what is gone along together has one leading extent") {
  CHECK(refused([](const vars& x) {
          return vars{
              map([](auto p) { return std::get<0>(p) + std::get<1>(p); }, std::tuple{x[0], x[1]})};
        }) == "scan: x1 is f64[3], x0 is f64[2]; their leading extents must be equal");
  CHECK(refused([](const vars& x) {
          return vars{vmap([](var p, var q) { return p + q; })(x[0], sum(x[1]))};
        }) == "vmap: sum result is f64[], which has no leading axis to go along");
}

TEST_CASE("recursion tells when its result is not what was declared") {
  CHECK(refused([](const vars& x) {
          return vars{recursive([](auto, var v) { return v; }, {dtype::f64, {}}, x[0])};
        }) ==
        "recursive: what the function returns is f64[2], its declared result is f64[]; they "
        "must be equal");
}

TEST_CASE("derivatives tell what does not fit") {
  CHECK(refused([](const vars& x) {
          return vars{jvp([](var v) { return v; }, x[0], x[1]).second};
        }) == "jvp: the argument is f64[2], its tangent is f64[3]; they must be equal");
  CHECK(refused([](const vars& x) {
          return vars{
              custom_vjp([](var v) { return v; }, [](var, var, var dy) { return sum(dy); })(x[0])};
        }) ==
        "custom_vjp: the argument is f64[2], the cotangent that the rule returns is f64[]; "
        "they must be equal");
  CHECK(refused([](const vars& x) { return vars{jacobian([](var v) { return v * v; })(x[0])}; },
                {{dtype::f64, {1, 1, 1, 1, 1}}}) ==
        "jacobian: the argument has 5 axes, the result 5; a tensor has at most 8");
  CHECK(refused([](const vars& x) {
          return vars{jacobian_forward([&](var) {
            return reshape(x[1], {1, 1, 1, 1, 1, 1, 1, 3});
          })(x[0])};
        }) == "jacobian: the argument has 1 axes, the result 8; a tensor has at most 8");
}

TEST_CASE("a value of a body that leaves it by another way than its results is refused") {
  try {
    const traced_function g(
        [](const vars& x) {
          var leaked{};
          cond(
              sum(x[0]) > 0, [&] { return leaked = x[0] * 2; }, [&] { return x[0]; });
          return vars{leaked + 1};
        },
        {{dtype::f64, {2}}});
    CHECK(false);
  } catch (const model_error& e) {
    CHECK(std::string(e.what()).find("a value of a closed region (a loop body or a branch) is "
                                     "used outside it; return it from the body") !=
          std::string::npos);
  }
}
