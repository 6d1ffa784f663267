#include <cella/ops/padding.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input matrix{.extents = {3, 4}};
constexpr gradient_case cases[] = {
    {"pad",
     [](var x) {
       return pad(x, {1, 0}, {0, 2});
     },
     {matrix}},
    {"pad with a value",
     [](var x) {
       return pad(x, {1, 0}, {0, 2}, 0.5) * 2;
     },
     {matrix}},
    {"pad_reflect",
     [](var x) {
       return pad_reflect(x, {1, 3}, {2, 0});
     },
     {matrix}},
    {"pad_replicate",
     [](var x) {
       return pad_replicate(x, {1, 3}, {2, 0});
     },
     {matrix}},
    {"tile",
     [](var x) {
       return tile(x, {2, 3});
     },
     {matrix}},
    {"tile of rank 8",
     [](var x) {
       return tile(x, {2, 1, 1, 1, 1, 1, 1, 3});
     },
     {{.extents = {1, 1, 2, 1, 1, 1, 1, 2}}}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }
template <class F>
reals line(F g) {
  return eval(g, f64({3}, {1, 2, 3})).values;
}

}  // namespace

TEST_CASE("making larger: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("each kind of padding fills with its own elements") {
  CHECK(line([](var x) { return pad(x, {2}, {1}); }) == reals{0, 0, 1, 2, 3, 0});
  CHECK(line([](var x) { return pad(x, {2}, {1}, infinity); }) ==
        reals{infinity, infinity, 1, 2, 3, infinity});
  CHECK(line([](var x) { return pad_reflect(x, {2}, {1}); }) == reals{3, 2, 1, 2, 3, 2});
  CHECK(line([](var x) { return pad_replicate(x, {2}, {1}); }) == reals{1, 1, 1, 2, 3, 3});
  CHECK(line([](var x) { return tile(x, {2}); }) == reals{1, 2, 3, 1, 2, 3});
  CHECK(line([](var x) { return pad(x, {0}, {0}); }) == reals{1, 2, 3});
}

TEST_CASE("an infinite element is padded without becoming NaN") {
  const auto y = eval([](var x) { return pad(x, {1}, {0}, 2); }, f64({1}, {infinity}));
  CHECK(y.values == reals{2, infinity});
}

TEST_CASE("widths that are missing, negative or too large are refused") {
  CHECK(fault(
            [](const vars& v) {
              return pad(v[0], {1}, {1, 1});
            },
            {f({3, 4})}) ==
        "pad: needs one width before and one after for each axis of x0 [3,4], none negative");
  CHECK(fault(
            [](const vars& v) {
              return pad(v[0], {-1, 0}, {1, 1});
            },
            {f({3, 4})}) ==
        "pad: needs one width before and one after for each axis of x0 [3,4], none negative");
  CHECK(fault([](const vars& v) { return pad_replicate(v[0], {1}, {-1}); }, {f({3})}) ==
        "pad_replicate: needs one width before and one after for each axis of x0 [3], none "
        "negative");
  CHECK(fault([](const vars& v) { return pad_reflect(v[0], {1}, {3}); }, {f({3})}) ==
        "pad_reflect: needs one width before and one after for each axis of x0 [3], each less "
        "than the extent");
  CHECK(fault([](const vars& v) { return tile(v[0], {2}); }, {f({3, 4})}) ==
        "tile: needs one positive multiple for each axis of x0 [3,4]");
  CHECK(fault(
            [](const vars& v) {
              return tile(v[0], {2, 0});
            },
            {f({3, 4})}) == "tile: needs one positive multiple for each axis of x0 [3,4]");
}
