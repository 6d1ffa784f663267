// Values of a store by name, and stores that follow others.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/nn/layers.hpp>
#include <cella/runtime/executable.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using namespace cella;

namespace {

struct net {
  nn::dense<3, 4> a{};
  nn::dense<4, 2> b{};
  state<2> seen{initializer::constant(1)};
  constexpr var operator()(var x) const { return b(a(x)); }
};
struct other_net {
  nn::dense<3, 4> a{};
  nn::dense<4, 3> b{};
};
struct shorter_net {
  nn::dense<3, 4> a{};
};

/// First values of 16 bits are those of a store in single precision, rounded.
template <class T>
void begins_rounded() {
  net narrow, wide;
  const parameter_store stored(narrow, 7, dtype_of<T>), known(wide, 7);
  const auto w = stored.values<T>("a.weight");
  const auto v = known.values<float>("a.weight");
  for (std::size_t i = 0; i < w.size(); ++i) {
    CHECK(v[i] != 0);
    CHECK(float(w[i]) == float(T(v[i])));
  }
  CHECK(float(stored.values<T>("seen")[0]) == 1);
}

template <class T>
void follows() {
  net first, second;
  parameter_store target(first, 1, dtype_of<T>), source(second, 2, dtype_of<T>);
  const auto w = target.mutable_values<T>("a.weight");
  const auto v = source.mutable_values<T>("a.weight");
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = T(float(i));
    v[i] = T(float(i) * 5);
  }
  target.mutable_values<T>("seen")[1] = T(1.f);
  source.mutable_values<T>("seen")[1] = T(9.f);
  const std::uint64_t before = target.version();
  target.lerp(source, 0.25);
  CHECK(target.version() != before);
  // i + (5 i - i) / 4 is exact in all element types.
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(float(w[i]) == float(2 * i));
  CHECK(float(target.values<T>("seen")[1]) == 3);
  target.lerp(source, 1);
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(float(w[i]) == float(v[i]));
}

}  // namespace

TEST_CASE("a store is gone over in the order of reflection") {
  net cell;
  const parameter_store store(cell, 1);
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const named_parameter& p : store) {
    names.push_back(p.name);
    elements += std::int64_t(store.values<float>(p.name).size());
  }
  CHECK(names == std::vector<std::string>{"a.weight", "a.bias", "b.weight", "b.bias", "seen"});
  CHECK(elements == store.trainable_count() + 2);
}

TEST_CASE("values are asked for by name, and what is written reaches programs") {
  net cell;
  parameter_store store(cell, 1);
  executable<inference_program<net, tensor<dtype::f32, 1, 3>>> run(store);
  const parameter_store& constant = store;
  CHECK(constant.values<float>("a.weight").data() == cell.a.weight.values().data());
  CHECK(constant.values<float>("a.weight").size() == 12);
  CHECK(constant.values<float>("seen")[1] == 1);
  const std::uint64_t before = store.version();
  constant.values<float>("b.bias");
  store.values<float>("b.bias");
  CHECK(store.version() == before);

  const std::array<float, 3> x{};
  run(x);
  for (float& v : store.mutable_values<float>("a.bias")) v = 0;
  for (float& v : store.mutable_values<float>("b.weight")) v = 2;
  for (float& v : store.mutable_values<float>("a.weight")) v = 1;
  for (float& v : store.mutable_values<float>("b.bias")) v = 3;
  CHECK(store.version() != before);
  const std::array<float, 3> ones{1, 1, 1};
  run(ones);
  CHECK(run.result()[0] == 4 * 3 * 2 + 3);
}

TEST_CASE("a wrong name is an error with near names, a wrong type one with both types") {
  net cell;
  parameter_store store(cell, 1);
  CHECK_THROWS_WITH_AS(store.values<float>("a.wieght"),
                       "parameter_store: there is no \"a.wieght\"; near names: \"a.weight\", "
                       "\"b.weight\", \"a.bias\"",
                       error);
  CHECK_THROWS_WITH_AS(
      store.mutable_values<double>("b.bias"),
      "parameter_store: \"b.bias\" is f32[2], but was asked for as f64; ask for its "
      "own type",
      error);
}

TEST_CASE("a store follows another in every floating-point type") {
  follows<float>();
  follows<double>();
  follows<float16>();
  follows<bfloat16>();
}

TEST_CASE("a copy takes all values over and leaves the random state") {
  net first, second;
  parameter_store target(first, 1), source(second, 2);
  target.copy_from(source);
  for (const auto& e : source.entries()) {
    const auto a = target.values<float>(e.name), b = source.values<float>(e.name);
    CHECK(std::ranges::equal(a, b));
  }
  CHECK(target.random_state()[0] == 1);
}

TEST_CASE("stores that differ are refused with the first difference, and nothing changes") {
  net cell;
  other_net other;
  shorter_net shorter;
  parameter_store store(cell, 1);
  const parameter_store source(other, 2), less(shorter, 3);
  const float before = store.values<float>("a.weight")[0];
  CHECK_THROWS_WITH_AS(store.copy_from(source),
                       "copy_from: the stores differ: \"b.weight\" f32[2,4] here, \"b.weight\" "
                       "f32[3,4] there; stores of one net are alike, and copy_part takes a part",
                       error);
  CHECK_THROWS_WITH_AS(
      store.lerp(less, 0.5),
      doctest::Contains("lerp: the stores differ: only the first has \"b.weight\"; "), error);
  CHECK_THROWS_WITH_AS(store.lerp(store, 1.5), "lerp: t is 1.5; it must lie between 0 and 1",
                       error);
  CHECK(store.values<float>("a.weight")[0] == before);
}

TEST_CASE("a part is taken over under another name, or nothing is") {
  struct pair {
    shorter_net left{}, right{};
  } both;
  net whole;
  shorter_net alone;
  parameter_store two(both, 1), all(whole, 2), one(alone, 3);
  const auto same = [](const parameter_store& s, const char* name, const parameter_store& t,
                       const char* other) {
    return std::ranges::equal(s.values<float>(name), t.values<float>(other));
  };
  one.copy_part(two, "right");
  CHECK(same(one, "a.weight", two, "right.a.weight"));
  CHECK(same(one, "a.bias", two, "right.a.bias"));
  two.copy_part(all, "a", "left.a");
  CHECK(same(two, "left.a.weight", all, "a.weight"));
  CHECK(same(two, "right.a.weight", one, "a.weight"));
  const std::uint64_t version = all.version();
  CHECK_THROWS_WITH_AS(all.copy_part(two, "left"),
                       "copy_part: the stores differ: \"b.weight\" is f32[2,4] here, and there is "
                       "no \"left.b.weight\" there",
                       error);
  CHECK_THROWS_WITH_AS(all.copy_part(two, "left.a", "b"),
                       "copy_part: the stores differ: \"b.weight\" is f32[2,4] here, and there is "
                       "\"left.a.weight\" f32[4,3] there",
                       error);
  CHECK_THROWS_WITH_AS(all.copy_part(two, "left", "c"), "copy_part: nothing here is called \"c.*\"",
                       error);
  CHECK(all.version() == version);
}

TEST_CASE("parameters of 16 bits are initialized") {
  begins_rounded<element<dtype::f16>>();
  begins_rounded<element<dtype::bf16>>();
}
