#include <cella/graph/check.hpp>
#include <cella/graph/copy.hpp>
#include <cella/graph/freeze.hpp>
#include <cella/graph/print.hpp>
#include <cella/ops/constant.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "../passes/expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Three tensors, of which the second is equal to the first, and the last is not used.
constexpr var scaled(var x) {
  (void)constant(x, {9.f, 8.f, 7.f});
  const var a = constant(x, {1.f, 2.f, 3.f});
  const var b = constant(x, {1.f, 2.f, 3.f});
  const var c = constant(x, {1.f, 2.f, 4.f});
  return x * a + b * c;
}
struct make_scaled {
  constexpr graph operator()() const { return graph_of(scaled); }
};
constexpr auto& g = frozen<make_scaled>;

/// Whether elements of T are read and written by their bits as they are by their type.
template <class T>
constexpr bool same_bits(std::initializer_list<T> values) {
  const word_list words = packed(values.begin(), values.size());
  element_packer packer(sizeof(T));
  std::size_t i = 0;
  for (T v : values) {
    const std::uint64_t bits = element_at(words, i++, sizeof(T));
    if (bits != cella::detail::bits_of_number(dtype_of<T>, double(v)) ||
        cella::detail::number_of_bits(dtype_of<T>, bits) != double(v))
      return false;
    packer.put(bits);
  }
  return packer.words() == words;
}
static_assert(same_bits<float>({1.5f, -2, 3}) && same_bits<double>({1, -0.5}));
static_assert(same_bits<std::int8_t>({-1, 2, -128, 5, 4, 3, 2, 1, -9}));
static_assert(same_bits<std::uint16_t>({65535, 1, 2}) && same_bits<std::int64_t>({-5, 7}));
static_assert(same_bits<bool>({true, false, true}));
static_assert(same_bits<float16>({float16(1.5f), float16(-2.f), float16(0.1f)}));
static_assert(same_bits<bfloat16>({bfloat16(1.5f)}));

/// More words than a draft of a frozen graph has room for.
constexpr std::size_t large_count = 40000;
constexpr auto counted = [] {
  std::array<double, large_count> all{};
  std::iota(all.begin(), all.end(), 0);
  return all;
}();
struct make_large {
  constexpr graph operator()() const {
    return graph_of([](var x) { return constant(x, counted); });
  }
};

template <class T>
std::vector<T> elements(span<const std::uint64_t> words, std::size_t count) {
  std::vector<T> all(count);
  std::memcpy(all.data(), words.data(), count * sizeof(T));
  return all;
}

}  // namespace

TEST_CASE("equal tensors of one type are one entry of the pool") {
  const graph traced = graph_of(scaled);
  REQUIRE(traced.constants.tensors.size() == 3);
  CHECK(traced.constants.tensors[1].type == tensor_type{dtype::f32, {3}});
  CHECK(traced.constants.tensors[1].hash != traced.constants.tensors[2].hash);

  constant_pool pool;
  const std::array<std::uint64_t, 2> a{1, 2}, b{2, 1};
  CHECK(pool.add({dtype::f64, {2}}, a) == 0);
  CHECK(pool.add({dtype::f64, {2}}, b) == 1);
  CHECK(pool.add({dtype::i64, {2}}, a) == 2);
  CHECK(pool.add({dtype::f64, {1, 2}}, a) == 3);
  CHECK(pool.add({dtype::f64, {2}}, a) == 0);
  CHECK(pool.tensors.size() == 4);
}
TEST_CASE("tensors with equal hashes are told apart by their bytes") {
  constant_pool pool;
  const std::array<std::uint64_t, 1> a{1}, b{2};
  pool.add({dtype::f64, {1}}, a);
  pool.add({dtype::f64, {1}}, b);
  pool.tensors[0].hash = pool.tensors[1].hash;  // as if both had this one
  CHECK(pool.add({dtype::f64, {1}}, b) == 1);
}
TEST_CASE("words have the elements as they lie in memory") {
  CHECK(elements<float>(packed(std::array{1.f, 2.f, 3.f}.data(), 3), 3) ==
        std::vector{1.f, 2.f, 3.f});
  const std::array<std::uint8_t, 11> bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const word_list words = packed(bytes.data(), bytes.size());
  REQUIRE(words.size() == 2);
  std::vector<std::uint8_t> found(bytes.size());
  std::memcpy(found.data(), words.data(), bytes.size());
  CHECK(std::equal(found.begin(), found.end(), bytes.begin()));
  std::size_t seen = 0;
  for_each_element<std::uint8_t>(words, bytes.size(),
                                 [&](std::size_t i, std::uint8_t x) { seen += x == bytes[i]; });
  CHECK(seen == bytes.size());
}
TEST_CASE("a frozen graph has the tensors of live nodes, each at a multiple of 64 bytes") {
  static_assert(g.sizes.constants == 2 && g.sizes.constant_words == 16);
  static_assert(g.constants[0].offset == 0 && g.constants[1].offset == 64);
  for (node_id n = 0; n < g.sizes.nodes; ++n) {
    if (!is<values_op>(g.nodes[std::size_t(n)])) continue;
    const auto values = elements<float>(g.values_of(n), 3);
    CHECK((values == std::vector{1.f, 2.f, 3.f} || values == std::vector{1.f, 2.f, 4.f}));
  }
  const graph again = thaw(g);
  CHECK(check(again).view() == "");
  CHECK(again.constants.tensors.size() == 2);
  CHECK(std::equal(again.constants.words.begin(), again.constants.words.end(),
                   g.constant_words.begin()));
}
TEST_CASE("a tensor that a draft has no room for is frozen all the same") {
  static constexpr auto& large = frozen<make_large>;
  static_assert(large.sizes.constant_words == large_count);
  const auto values = elements<double>(large.values_of(large.region_outputs(0)[0]), large_count);
  CHECK(std::equal(values.begin(), values.end(), counted.begin()));
}
TEST_CASE("a graph that is copied into another brings its tensors") {
  builder b;
  const var x{&b, b.input({dtype::f32, {2, 3}}, input_role::argument, "x")};
  (void)constant(x, {5.f, 6.f});
  const graph from = graph_of(scaled);
  for (node_id n : from.regions[0].nodes) {
    if (is<values_op>(from.nodes[std::size_t(n)])) graph_importer(b, from).copy(n, {});
  }
  CHECK(b.g.constants.tensors.size() == 4);
  CHECK(elements<float>(b.g.values_of(node_id(b.g.nodes.size()) - 1), 3) ==
        std::vector{1.f, 2.f, 4.f});
  const std::array out{x.id};
  b.end(out);
  b.g.outputs.push_back({});
  CHECK(check(b.g).view() == "");
}
TEST_CASE("a printed constant tensor shows a few values and how many there are") {
  const print_options bare{.source = false, .cells = false};
  auto printed = [&](auto make) {
    const std::string s = to_string(graph_of(make), bare);
    return s.substr(s.find("%1"), s.find("\noutput") - s.find("%1"));
  };
  CHECK(printed([](var x) {
          return constant(x, {0.1f, 1.f, -2.f});
        }) == "%1: f32[3] = values() {0.1, 1, -2}");
  CHECK(printed([](var x) {
          return constant(x, {true, false});
        }) == "%1: bool[2] = values() {1, 0}");
  CHECK(printed([](var x) { return constant(x, counted); }) ==
        "%1: f64[40000] = values() {0, 1, 2, 3, 4, 5, 6, 7, ... 40000 values}");
  std::ostringstream json;
  print_json(json, graph_of([](var x) {
               return constant(x, {1., std::numeric_limits<double>::infinity(), 0.5});
             }));
  const auto node = nlohmann::json::parse(json.str())["nodes"][1];
  CHECK(node["count"] == 3);
  CHECK(node["first_values"] == nlohmann::json::parse(R"([1, "inf", 0.5])"));
}
TEST_CASE("a damaged pool is a fault that names the tensor") {
  auto fault_of = [](auto damage) {
    graph d = graph_of([](var x) { return constant(x, {1.f, 2.f, 3.f}); });
    damage(d);
    return std::string(check(d).view());
  };
  CHECK(fault_of([](graph&) {}).empty());
  CHECK(fault_of([](graph& d) {
          d.constants.tensors.clear();
        }).find("the graph has no constant tensor 0") != std::string::npos);
  CHECK(fault_of([](graph& d) {
          d.constants.tensors[0].type.element = dtype::i32;
        }).find("constant tensor 0 is i32[3]") != std::string::npos);
  CHECK(fault_of([](graph& d) {
          d.constants.words.clear();
        }).find("constant tensor 0 lies beyond the pool") != std::string::npos);
}
