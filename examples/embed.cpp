// A trained network inside an ordinary program: one image in, one digit out, through plain memory.
// After construction nothing is allocated, nothing throws, and the time of a call hardly varies.
//
//   lenet5 --save lenet5.safetensors && embed lenet5.safetensors
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cella/data/digits.hpp>
#include <cella/interop/safetensors.hpp>
#include <cella/models/lenet.hpp>
#include <cella/runtime/executable.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

/// What the rest of the program sees.
class digit_reader {
 public:
  /// `weights` is a file that a model saved. Throws `cella::file_error`.
  explicit digit_reader(const std::filesystem::path& weights) {
    const auto file = cella::interop::safetensors_file::open(weights);
    for (const auto& p : parameters_.entries()) {
      const auto values = reinterpret_cast<float*>(parameters_.value(p).data);
      file.at(p.name).copy_to(std::span(values, std::size_t(p.type.size())));
    }
    parameters_.touch();
  }
  /// Untrained.
  digit_reader() = default;

  /// The digit in a picture whose pixels are normalised as in training.
  int operator()(std::span<const float, 28 * 28> pixels) noexcept {
    run_(pixels);
    const std::span<const float> scores = run_.result();
    return int(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }

 private:
  using program = cella::inference_program<cella::models::lenet5,
                                           cella::tensor<cella::dtype::f32, 1, 1, 28, 28>>;
  static_assert(program::plan.arena_bytes < 32 * 1024, "all intermediate values fit the L1 cache");

  cella::models::lenet5 net_;
  cella::parameter_store parameters_{net_, 0};
  cella::executable<program> run_{parameters_};
};

int main(int argc, char** argv) try {
  std::string weights, json;
  CLI::App app("Reads digits with a saved LeNet-5, one at a time.");
  app.add_option("weights", weights, "What lenet5 saved; without it the net is untrained");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  digit_reader read = weights.empty() ? digit_reader() : digit_reader(weights);
  const auto digits = cella::data::digits(2000, 2).to_memory();
  const auto images = digits.column<0>();
  const auto labels = digits.column<1>();

  const auto began = std::chrono::steady_clock::now();
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < digits.size(); ++i) {
    right += read(images.row(i).span().first<28 * 28>()) == labels[std::size_t(i)];
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - began;
  const double accuracy = double(right) / double(digits.size());
  const double each = time.count() / double(digits.size());
  std::cout << "accuracy " << accuracy << " on " << digits.size() << " digits, " << each
            << " microseconds each\n";

  if (!json.empty()) {
    const nlohmann::ordered_json figures{{"accuracy", accuracy}, {"microseconds", each}};
    cella::interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
} catch (const std::exception& e) {
  std::cerr << "embed: " << e.what() << '\n';
  return 2;
}
