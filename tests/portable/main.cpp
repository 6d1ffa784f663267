// A portable program: what was chosen, that it is right, and that variants share nothing. This file
// is compiled for any machine.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <array>
#include <cella/backend/cpu/simd/instruction_sets.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../support/command.hpp"
#include "lenet.hpp"

// Every variant under its own name, to compare them in one process.
extern "C" {
Lenet *make_lenet_sse4_2(std::uint64_t), *make_lenet_avx2(std::uint64_t),
    *make_lenet_avx512(std::uint64_t);
int lenet_vector_bytes_sse4_2(), lenet_vector_bytes_avx2(), lenet_vector_bytes_avx512();

// Of another set of variants: 0 without a matrix unit, else what its product of two tiles sums up
// to.
int product_on_unit();
}

namespace {

using namespace cella::cpu;
using cella::test::run_command;

struct variant {
  Lenet* (*make)(std::uint64_t);
  int (*bytes)();
};
/// Those that this processor can run, in the order of `instruction_sets`.
std::vector<variant> variants() {
  const std::array<variant, 3> all{variant{make_lenet_sse4_2, lenet_vector_bytes_sse4_2},
                                   {make_lenet_avx2, lenet_vector_bytes_avx2},
                                   {make_lenet_avx512, lenet_vector_bytes_avx512}};
  const int best = best_instruction_set(7u, extensions_of_processor());
  return {all.begin(), all.begin() + best + 1};
}

/// What a network says in 10 steps of training and of one image afterwards.
std::vector<float> trained(Lenet* made) {
  const std::unique_ptr<Lenet> net(made);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> images(std::size_t(Lenet::batch * Lenet::pixels));
  for (float& x : images) x = uniform(random);
  std::vector<std::int32_t> labels;
  for (int i = 0; i < Lenet::batch; ++i) labels.push_back(i % Lenet::classes);
  std::vector<float> said;
  for (int i = 0; i < 10; ++i) said.push_back(net->train(images.data(), labels.data()));
  std::array<float, Lenet::classes> y{};
  net->scores(images.data(), y.data());
  said.insert(said.end(), y.begin(), y.end());
  return said;
}

}  // namespace

TEST_CASE("the best variant that the process may use is chosen, and its static objects live") {
  const std::unique_ptr<Lenet> net(make_lenet(1));
  constexpr int bits[] = {128, 256, 512};
  const int best = best_instruction_set(7u, permitted_extensions());
  REQUIRE(best >= 0);
  CHECK(lenet_vector_bytes() * 8 == bits[best]);
  CHECK(net->instructions() == std::to_string(bits[best]) + " bits");
}

TEST_CASE("an inline function has a copy of its own in every variant and in the rest") {
  CHECK(vector_bytes() == 16);
  CHECK(lenet_vector_bytes_sse4_2() == 16);
  CHECK(lenet_vector_bytes_avx2() == 32);
  CHECK(lenet_vector_bytes_avx512() == 64);
}

TEST_CASE("a variant for the matrix unit is chosen where there is one, and may use it") {
  const bool has_unit = best_instruction_set(9u, permitted_extensions()) == 3;
  CHECK(product_on_unit() == (has_unit ? 16 * 16 * 64 * 3 * -5 : 0));
}

TEST_CASE("variants agree in training and inference") {
  const auto all = variants();
  REQUIRE(all.size() >= 1);
  const std::vector<float> first = trained(all[0].make(5));
  CHECK(first[0] == doctest::Approx(std::log(10.0)).epsilon(0.05));
  CHECK(first[9] < first[0]);
  CHECK(trained(make_lenet(5)).size() == first.size());
  for (std::size_t k = 1; k < all.size(); ++k) {
    const std::vector<float> other = trained(all[k].make(5));
    for (std::size_t i = 0; i < first.size(); ++i)
      CHECK(std::abs(other[i] - first[i]) < 1e-4f * std::max(1.0f, std::abs(first[i])));
  }
}

TEST_CASE(
    "a program for a newer processor ends with a sentence instead of an illegal instruction") {
  const auto alone = run_command("env -u CELLA_INSTRUCTIONS '" CELLA_NEWER_PROGRAM "'");
  const bool runs = best_instruction_set(7u, extensions_of_processor()) >= 1;
  CHECK((alone.status == 0) == runs);
  const auto limited = run_command("CELLA_INSTRUCTIONS=sse4.2 '" CELLA_NEWER_PROGRAM "'");
  CHECK(limited.status == 1);
  CHECK(limited.out.find("this program was compiled for instructions that this processor lacks: "
                         "avx, avx2, fma, f16c, bmi, bmi2, lzcnt, movbe\n") != std::string::npos);
  CHECK(limited.out.find("cella_portable_sources") != std::string::npos);
}

TEST_CASE("an instruction set that does not exist is refused with the names of those that do") {
  const auto r = run_command("CELLA_INSTRUCTIONS=avx9 '" CELLA_NEWER_PROGRAM "'");
  CHECK(r.status == 1);
  CHECK(r.out == "cella: CELLA_INSTRUCTIONS is avx9, which is none of sse4.2 avx2 avx512 amx\n");
}
