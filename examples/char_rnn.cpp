// A character RNN: it reads a text one character at a time and says which comes next. Without a
// file it learns to add, from lines such as `7+5=12`; with --text it learns the text and writes
// some. Ctrl-C saves; --resume goes on.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cella/interop/file.hpp>
#include <cella/nn/layers.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/train/interrupt.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace cella;

constexpr int characters = 128;  // ASCII; others become `?`
constexpr int batch = 32;
constexpr int length = 56;  // characters per sequence: eight lines of sums

/// Characters [N, T] -> scores of the next one, [N T, characters].
struct reader {
  nn::embedding<characters, 32> letters;
  nn::gru<32, 128> memory;
  nn::dense<128, characters> out;

  constexpr var operator()(var text) const {
    const var y = memory(letters(text)).outputs;
    return out(reshape(y, {y.extent(0) * y.extent(1), 128}));
  }
};

using text_model = model<reader, tokens<length>, cross_entropy_loss{}, optim::adam{},
                         model_options{.batch = batch}>;

constexpr std::size_t line = 7;

/// `a+b=cd`, one sum of two digits per line.
std::string sums(int count, std::uint64_t seed) {
  generator random(seed, 2);
  std::string text;
  for (int i = 0; i < count; ++i) {
    const int a = int(random.uniform() * 10);
    const int b = int(random.uniform() * 10);
    for (int c :
         {'0' + a, int('+'), '0' + b, int('='), '0' + (a + b) / 10, '0' + (a + b) % 10, int('\n')})
      text += char(c);
  }
  return text;
}

std::int32_t code(char c) { return c >= 0 ? c : '?'; }

/// The scores of what follows the last `length` characters of `text`.
std::vector<float> ask(text_model& m, const std::string& text) {
  std::array<std::int32_t, length> x{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t behind = x.size() - i;
    x[i] = behind <= text.size() ? code(text[text.size() - behind]) : '\n';
  }
  const auto scores = m.predict(x.data(), 1);
  return {scores.end() - characters, scores.end()};
}

int main(int argc, char** argv) try {
  std::string json;
  std::string file;
  std::string resume;
  int iterations = 600;
  std::uint64_t seed = 1;
  CLI::App app("Learns a text character by character.");
  app.add_option("--text", file, "A text to learn, instead of sums")->type_name("FILE");
  app.add_option("--iterations", iterations, "Training steps")->check(CLI::Range(1, 1000000));
  app.add_option("--seed", seed, "Seed of everything random");
  app.add_option("--resume", resume, "Go on with what Ctrl-C saved")->type_name("FILE");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  std::string text = sums(20000, seed);
  if (!file.empty()) {
    const auto bytes = interop::read_file(file, std::size_t{1} << 30);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.size() <= length) throw error("the text must have more than 56 characters");
  }

  text_model m({.seed = seed, .mode = execution::graph});
  if (!resume.empty()) m.load(resume, {.optimizer = true});
  if (m.steps() >= iterations)
    throw error("it has made " + std::to_string(m.steps()) +
                " steps already; give more --iterations");
  std::vector<std::int32_t> x(batch * length);
  std::vector<std::int32_t> y(batch * length);
  double loss = 0;
  {
    const train::interruption ctrl_c;
    for (std::int64_t i = m.steps(); i < iterations; ++i) {
      if (ctrl_c.happened()) {
        m.save("char_rnn.resume.safetensors", {.optimizer = true});
        std::cout << "interrupted after step " << i
                  << "; go on with the same options and --resume char_rnn.resume.safetensors\n";
        return 130;
      }
      generator random(fold_in(seed, std::uint64_t(i)), 1);  // a resumed step draws the same
      for (std::size_t n = 0; n < batch; ++n) {
        const auto at = std::size_t(random.uniform() * double(text.size() - length));
        for (std::size_t t = 0; t < length; ++t) {
          x[n * length + t] = code(text[at + t]);
          y[n * length + t] = code(text[at + t + 1]);
        }
      }
      loss = m.train_step(x.data(), y.data(), batch, 0.005 / (1 + 0.002 * double(i)));
      if (i % (iterations / 10 + 1) == 0)
        std::cout << "step " << i << ": " << loss / std::log(2) << " bits per character\n"
                  << std::flush;
    }
  }

  nlohmann::ordered_json figures{{"bits_per_character", loss / std::log(2)}};
  if (file.empty()) {
    // Sums that it has to finish by itself.
    int right = 0;
    constexpr int asked = 200;
    const std::string fresh = sums(asked + 8, seed + 1);
    for (std::size_t i = 0; i < asked; ++i) {
      std::string known = fresh.substr(0, (i + 8) * line + 4);
      for (int digit = 0; digit < 2; ++digit) {
        const auto scores = ask(m, known);
        known += char(std::max_element(scores.begin(), scores.end()) - scores.begin());
      }
      right += known == fresh.substr(0, known.size());
      if (i < 5) std::cout << known.substr(known.size() - line + 1) << '\n';
    }
    const double accuracy = double(right) / asked;
    std::cout << "sums that are right: " << 100 * accuracy << " %\n";
    figures["accuracy"] = accuracy;
  } else {
    std::string written = text.substr(0, length);
    generator random(seed, 1);
    for (int i = 0; i < 300; ++i) {
      const auto scores = ask(m, written);
      std::vector<double> weights;
      for (float s : scores) weights.push_back(std::exp(double(s)));
      double total = 0;
      for (double w : weights) total += w;
      double left = random.uniform() * total;
      std::size_t next = 0;
      while (next + 1 < weights.size() && (left -= weights[next]) > 0) ++next;
      written += char(next);
    }
    std::cout << written.substr(length) << '\n';
  }
  if (!json.empty())
    interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
} catch (const std::exception& e) {
  std::cerr << "char_rnn: " << e.what() << '\n';
  return 2;
}
