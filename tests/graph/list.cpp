#include <doctest/doctest.h>

#include <array>
#include <cella/graph/list.hpp>
#include <cella/graph/random.hpp>
#include <cella/graph/span.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace cella;

namespace {

/// The same operations, drawn at random, on a list and on the standard's vector.
template <class T, class Make>
void behaves_like_a_vector(std::uint64_t seed, Make make) {
  generator random(seed);
  list<T> x;
  std::vector<T> y;
  const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
  for (int step = 0; step < 2000; ++step) {
    const T value = make(random());
    const std::size_t at = below(y.size() + 1);
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        x.push_back(value), y.push_back(value);
        break;
      case 3:
        x.emplace_back(value), y.emplace_back(value);
        break;
      case 4:
        x.insert(x.begin() + at, value), y.insert(y.begin() + std::ptrdiff_t(at), value);
        break;
      case 5: {
        const std::array<T, 3> more{value, make(1), make(2)};
        x.insert(x.begin() + at, more.begin(), more.end());
        y.insert(y.begin() + std::ptrdiff_t(at), more.begin(), more.end());
        break;
      }
      case 6:
        if (at < y.size()) x.erase(x.begin() + at), y.erase(y.begin() + std::ptrdiff_t(at));
        break;
      case 7:
        x.erase(x.begin() + at / 2, x.begin() + at);
        y.erase(y.begin() + std::ptrdiff_t(at / 2), y.begin() + std::ptrdiff_t(at));
        break;
      case 8:
        x.resize(at, value), y.resize(at, value);
        break;
      case 9:
        CHECK(erase_if(x, [&](const T& t) { return t < value; }) ==
              std::erase_if(y, [&](const T& t) { return t < value; }));
        break;
      case 10:
        if (!y.empty()) x.push_back(x[at / 2]), y.push_back(T(y[at / 2]));
        break;
      case 11: {
        list<T> copy(x);
        x = list<T>{value};
        CHECK(x.size() == 1);
        x = std::move(copy);
        break;
      }
    }
    REQUIRE(std::vector<T>(x) == y);
    CHECK(x.empty() == y.empty());
    if (!y.empty()) CHECK((x.front() == y.front() && x.back() == y.back()));
  }
}

constexpr int sum_of_squares(int n) {
  list<list<int>> rows;
  for (int i = 0; i < n; ++i) rows.push_back(list<int>(std::size_t(i), i));
  int sum = 0;
  for (const list<int>& row : rows)
    for (int x : span(row)) sum += x;
  return sum;
}

}  // namespace

TEST_CASE("a list does what the standard's vector does") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    behaves_like_a_vector<int>(seed, [](std::uint64_t r) { return int(r % 100); });
    behaves_like_a_vector<std::string>(seed, [](std::uint64_t r) {
      return "a string of more than 15 characters " + std::to_string(r % 100);
    });
  }
}

TEST_CASE("a list takes its own elements as values") {
  list<std::string> x{"one", "two"};
  for (int i = 0; i < 30; ++i) x.push_back(x[0]);
  CHECK(x.back() == "one");
  x.assign(100, x[1]);
  CHECK(x[99] == "two");
  x.insert(x.begin(), x[50]);
  CHECK((x.size() == 101 && x[0] == "two"));
}

TEST_CASE("elements that only move") {
  list<std::unique_ptr<int>> x;
  for (int i = 0; i < 20; ++i) x.push_back(std::make_unique<int>(i));
  list<std::unique_ptr<int>> y = std::move(x);
  CHECK(y.size() == 20);
  CHECK(*y[19] == 19);
}

TEST_CASE("lists work in constant evaluation") {
  static_assert(sum_of_squares(10) == 285);
  static_assert(list<int>{1, 2} == list<int>{1, 2});
  static_assert(!(list<int>{1, 2} == list<int>{1, 3}));
  CHECK(sum_of_squares(4) == 14);
}

TEST_CASE("spans convert to and from the standard's") {
  std::array<int, 4> x{1, 2, 3, 4};
  const span<int> a(x);
  const std::span<int> b = a;
  const span<const int> c(b);
  CHECK((b.data() == x.data() && c.data() == x.data() && c.size() == 4));
  CHECK((a.first(1).back() == 1 && a.last(2).front() == 3 && a.subspan(1, 2)[1] == 3));
  CHECK(a.subspan(4).empty());
  int sum = 0;
  for (int v : c) sum += v;
  CHECK(sum == 10);
}
