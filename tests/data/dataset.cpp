#include <doctest/doctest.h>

#include <algorithm>
#include <cella/data/dataset.hpp>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using namespace cella;
using namespace cella::data;

namespace {

/// Sample i has image {i, i + 0.5} and label i.
auto counting(int n) {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < n; ++i) {
    images.insert(images.end(), {float(i), float(i) + .5f});
    labels.push_back(i);
  }
  return tensor_dataset(column<float>({n, 1, 2}, images), column<std::int32_t>(labels));
}

template <class D>
std::vector<std::int32_t> labels_of(const D& d, std::int64_t epoch = 0) {
  std::vector<std::int32_t> labels;
  for (auto& b : d.batch(7).epoch(epoch)) {
    for (auto l : b.template column<1>()) labels.push_back(l);
    CHECK(b.template column<0>().size() == 2 * b.template column<1>().size());
  }
  return labels;
}

std::vector<std::int32_t> range(int first, int last) {
  std::vector<std::int32_t> r(static_cast<std::size_t>(last - first), 0);
  std::iota(r.begin(), r.end(), first);
  return r;
}

/// A data set of a user: it computes its samples.
struct squares : composable<squares> {
  using sample = data::sample<double>;
  std::int64_t size() const { return 5; }
  sample_shapes<1> shapes() const { return {shape{}}; }
  void read(position at, const sample& out) const {
    out.column<0>()[0] = static_cast<double>(at.index * at.index);
  }
};

}  // namespace

TEST_CASE("columns of different lengths are refused with both figures") {
  CHECK_THROWS_WITH_AS(
      tensor_dataset(column<float>({3, 2}, std::vector<float>(6)),
                     column<std::int32_t>(std::vector<std::int32_t>(4))),
      "tensor_dataset: column 0 has 3 samples, but column 1 has 4; all need the same number.",
      error);
}

TEST_CASE("a column whose extents do not match its values is refused") {
  CHECK_THROWS_AS(column<float>({3, 2}, std::vector<float>(5)), error);
  CHECK_THROWS_AS(column<float>(shape{}, std::vector<float>(1)), error);
  CHECK_THROWS_WITH_AS(column<float>({-3, 2}, std::vector<float>(6)),
                       "column: the extents [-3,2] are not all 0 or more.", error);
}

TEST_CASE("samples of all columns stay together in any order") {
  for (auto& b : counting(100).shuffle(1).batch(9).epoch(4)) {
    for (std::size_t i = 0; i < b[1_c].size(); ++i) {
      CHECK(b[0_c][2 * i] == float(b[1_c][i]));
      CHECK(b[0_c][2 * i + 1] == float(b[1_c][i]) + .5f);
    }
  }
}

TEST_CASE("shuffle is a permutation that depends on seed and epoch only") {
  const auto d = counting(200);
  const auto first = labels_of(d.shuffle(1), 0);
  CHECK(first == labels_of(d.shuffle(1), 0));
  CHECK(first != range(0, 200));
  CHECK(first != labels_of(d.shuffle(1), 1));
  CHECK(first != labels_of(d.shuffle(2), 0));
  auto sorted = first;
  std::ranges::sort(sorted);
  CHECK(sorted == range(0, 200));
}

TEST_CASE("a shuffle that never reshuffles keeps its order in all epochs") {
  const auto d = counting(50).shuffle(3, reshuffle::never);
  CHECK(labels_of(d, 0) == labels_of(d, 5));
  CHECK(labels_of(d, 0) != range(0, 50));
}

TEST_CASE("take, skip and split cut where they are told") {
  const auto d = counting(10);
  CHECK(labels_of(d.take(3)) == range(0, 3));
  CHECK(labels_of(d.take(30)) == range(0, 10));
  CHECK(labels_of(d.skip(7)) == range(7, 10));
  CHECK(labels_of(d.skip(70)).empty());
  CHECK(labels_of(d.skip(2).take(3)) == range(2, 5));
  const auto [train, valid] = d.split(0.75);
  CHECK(labels_of(train) == range(0, 8));
  CHECK(labels_of(valid) == range(8, 10));
  CHECK_THROWS_AS(d.take(-1), error);
  CHECK_THROWS_AS(d.split(1.5), error);
}

TEST_CASE("split refuses an order that changes, because samples would wander") {
  const auto d = counting(10);
  CHECK_THROWS_WITH_AS(d.shuffle(1).take(5).split(0.5), doctest::Contains("wander"), error);
  const auto [train, valid] = d.shuffle(1, reshuffle::never).split(0.5);
  std::set<std::int32_t> all;
  for (auto l : labels_of(train, 1)) all.insert(l);
  for (auto l : labels_of(valid, 2)) all.insert(l);
  CHECK(all.size() == 10);
}

TEST_CASE("each pass of repeat is an epoch of its source") {
  const auto d = counting(20).shuffle(1);
  auto both = labels_of(d, 4);
  for (auto l : labels_of(d, 5)) both.push_back(l);
  CHECK(labels_of(d.repeat(2), 2) == both);
  CHECK_THROWS_AS(d.repeat(0), error);
  CHECK(d.repeat(0x7fffffff).size() == 20 * std::int64_t{0x7fffffff});
  CHECK_THROWS_AS(d.repeat(0x7fffffff).repeat(0x7fffffff), error);
}

TEST_CASE("map changes samples in place, and one column alone") {
  const auto d = counting(4)
                     .map([](auto s) { s[1_c][0] += 10; })
                     .template map<0>([](tensor_view<float> image) { image[0] = -1; })
                     .to_memory();
  CHECK(std::ranges::equal(d.column<1>(), range(10, 14)));
  CHECK(d.column<0>()[2] == -1);
  CHECK(d.column<0>()[3] == 1.5f);
}

TEST_CASE("random changes depend on seed, epoch, index and stage, and on nothing else") {
  const auto noise = [](tensor_view<float> image, generator& random) {
    for (float& x : image) x = random.uniform();
  };
  const auto images = [](const auto& d, std::int64_t epoch) {
    const auto kept = d.to_memory(epoch);
    const auto all = kept.template column<0>();
    return std::vector<float>(all.begin(), all.end());
  };
  const auto d = counting(8);
  const auto once = images(d.map<0>(noise, 1), 0);
  CHECK(once == images(d.map<0>(noise, 1), 0));
  CHECK(once != images(d.map<0>(noise, 2), 0));
  CHECK(once != images(d.map<0>(noise, 1), 1));
  CHECK(std::set<float>(once.begin(), once.end()).size() == 16);
  CHECK(once != images(d.map<0>(noise, 1).map<0>(noise, 1), 0));
  // A shuffle after the map moves the samples, but does not change them.
  const auto shuffled = images(d.map<0>(noise, 1).shuffle(5), 0);
  CHECK(std::set<float>(once.begin(), once.end()) ==
        std::set<float>(shuffled.begin(), shuffled.end()));
}

TEST_CASE("map_to makes columns of other types and extents") {
  const auto d = counting(3).map_to<double, std::int64_t, std::uint8_t>(
      {shape{}, shape{2}, shape{}}, [](auto from, auto to) {
        to[0_c][0] = double(from[0_c][0]) + double(from[0_c][1]);
        to[1_c][0] = to[1_c][1] = from[1_c][0];
        to[2_c][0] = 1;
      });
  const auto kept = d.shuffle(0).shuffle(1).take(3).to_memory();
  CHECK(kept.column<1>().extents() == shape{3, 2});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(kept.column<0>()[i] == 2 * double(kept.column<1>()[2 * i]) + .5);
    CHECK(kept.column<2>()[i] == 1);
  }
}

TEST_CASE("a user's data set has all views") {
  static_assert(dataset<squares>);
  const auto kept = squares{}.skip(1).repeat(2).to_memory();
  CHECK(std::ranges::equal(kept.column<0>(), std::vector<double>{1, 4, 9, 16, 1, 4, 9, 16}));
}
