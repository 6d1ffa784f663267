#include <cella/models/gpt_decoder.hpp>

#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int words = 20, width = 16, heads = 2, layers = 2, places = 6;
using net = models::gpt<words, width, heads, layers, places>;
using decoder = models::gpt_decoder<words, width, heads, layers, places>;
using whole = inference_program<net, tensor<dtype::i32, 1, places>>;
using writing = inference_program<decoder, tensor<dtype::i32, 1, 1>, tensor<dtype::i32>>;

}  // namespace

TEST_CASE("a decoder's logits, word by word, are those of all words at once") {
  const reals text{3, 19, 0, 7, 7, 12};
  const ways<whole> reader(5);
  const reals wanted = reader.traced({text}).results[0];

  decoder cell;
  parameter_store store(cell, 1);
  store.copy_part(reader.make_store(), "", "net");
  executable<writing> write(store);
  for (int turn = 0; turn < 2; ++turn) {  // a second text finds the cache of the first
    reals logits;
    for (int at = 0; at < places; ++at) {
      write(std::array{std::int32_t(text[std::size_t(at)])}, std::array{std::int32_t(at)});
      for (float v : write.result<0>()) logits.push_back(double(v));
    }
    check_close(logits, wanted, 2e-5);
  }
}

TEST_CASE("the first words of a text, or one alone, have the logits that they have in the whole") {
  const reals text{3, 19, 0, 7, 7, 12};
  const reals wanted = ways<whole>(5).traced({text}).results[0];
  const auto check = [&](const reals& found, std::size_t length) {
    const std::size_t each = wanted.size() / places;
    check_close(found, reals(wanted.begin(), wanted.begin() + std::ptrdiff_t(length * each)), 1e-6);
  };
  using four = inference_program<net, tensor<dtype::i32, 1, 4>>;
  check(ways<four>(5).check({reals(text.begin(), text.begin() + 4)}, 1, 1e-5).results[0], 4);
  using one = inference_program<net, tensor<dtype::i32, 1, 1>>;
  check(ways<one>(5).check({{text[0]}}, 1, 1e-5).results[0], 1);
}

TEST_CASE("a decoder writes each word's keys and values into the cache where it lies") {
  int kept = 0;
  for (const plan_step& s : writing::plan.steps) {
    kept += s.kind == step_kind::put_rows && s.in[0] == s.outputs[0].at;
    CHECK(s.kind != step_kind::copy);
  }
  CHECK(kept == 2 * layers);
}

TEST_CASE("a decoder yields the same in every way to run it") {
  ways<writing>(3).check({{4}, {2}}, 2, 1e-5);
}
