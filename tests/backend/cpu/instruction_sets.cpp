#include <cella/backend/cpu/simd/instruction_sets.hpp>
#if defined(__x86_64__)
#include <doctest/doctest.h>

#include <string_view>

using namespace cella::cpu;

namespace {

constexpr extensions sse = instruction_sets[0].needs, avx2 = instruction_sets[1].needs,
                     avx512 = instruction_sets[2].needs, amx = instruction_sets[3].needs,
                     all = (1u << extension_count) - 1;

extensions bit(std::string_view name) {
  for (int i = 0; i < extension_count; ++i) {
    if (extension_names[i] == name) return 1u << i;
  }
  return 0;
}
std::string_view said(const start_message& m) { return {m.text, std::size_t(m.size)}; }

}  // namespace

TEST_CASE("each instruction set has what the one before has, and its own") {
  CHECK(sse == (bit("sse3") | bit("ssse3") | bit("sse4.1") | bit("sse4.2") | bit("popcnt")));
  CHECK((avx2 & sse) == sse);
  CHECK((avx2 & (bit("avx2") | bit("fma"))) == (bit("avx2") | bit("fma")));
  CHECK((avx2 & bit("avx512f")) == 0);
  CHECK((avx512 & avx2) == avx2);
  CHECK((avx512 & bit("avx512dq")) == bit("avx512dq"));
  CHECK((avx512 & bit("avx512vbmi")) == 0);
  CHECK((amx & avx512) == avx512);
  CHECK((amx & bit("avx512bf16")) == bit("avx512bf16"));
  CHECK((amx & matrix_unit_extension) == bit("amx-tile"));
}

TEST_CASE("a build lacks what it uses and the processor does not have") {
  CHECK(missing_extensions(avx2, all) == 0);
  CHECK(missing_extensions(avx2, avx2) == 0);
  CHECK(missing_extensions(0, 0) == 0);
  CHECK(missing_extensions(avx2, avx2 & ~bit("fma")) == bit("fma"));
  CHECK(missing_extensions(sse | bit("avx512bf16"), avx512) == bit("avx512bf16"));
}

TEST_CASE("the strongest set is taken of which the processor lacks nothing") {
  CHECK(best_instruction_set(7, all) == 2);
  CHECK(best_instruction_set(7, avx512) == 2);
  CHECK(best_instruction_set(7, avx512 & ~bit("avx512vl")) == 1);
  CHECK(best_instruction_set(7, avx2 & ~bit("fma")) == 0);
  CHECK(best_instruction_set(3, all) == 1);
  CHECK(best_instruction_set(5, avx2) == 0);
  CHECK(best_instruction_set(6, sse) == -1);
  CHECK(best_instruction_set(7, 0) == -1);
  CHECK(best_instruction_set(15, all) == 3);
  CHECK(best_instruction_set(15, all & ~matrix_unit_extension) == 2);
}

TEST_CASE("sets are found by name, and by no other") {
  CHECK(find_instruction_set("sse4.2") == 0);
  CHECK(find_instruction_set("avx2") == 1);
  CHECK(find_instruction_set("avx512") == 2);
  CHECK(find_instruction_set("amx") == 3);
  for (const char* name : {"", "avx", "avx51", "avx512f", "AVX2"})
    CHECK(find_instruction_set(name) == -1);
}

TEST_CASE("the message names what is missing and the remedies") {
  start_message m;
  explain_missing(m, avx2, sse | bit("avx") | bit("bmi"));
  CHECK(said(m).starts_with(
      "cella: this program was compiled for instructions that this processor lacks: avx2, fma, "
      "f16c, bmi2, lzcnt, movbe\nCompile it on this machine, or "));
  CHECK(said(m).find("cella_portable_sources (docs/embedding.md)") != std::string_view::npos);
}

TEST_CASE("the longest message fits, and a longer one is cut") {
  start_message m;
  explain_missing(m, all, 0);
  CHECK(m.size < int(sizeof(m.text)) - 100);
  for (int i = 0; i < 10; ++i) m << all;
  CHECK(m.size == int(sizeof(m.text)));
}

TEST_CASE("what this build uses, the processor that runs it has") {
  CHECK(missing_extensions(extensions_of_build, extensions_of_processor()) == 0);
#if defined(__AVX2__)
  CHECK((extensions_of_build & bit("avx2")) != 0);
#endif
}
#endif
