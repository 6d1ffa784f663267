// A GRU reads sequences of different lengths: it learns whether the brackets of a line fit
// together. Lines are padded to one length, and the net is told how long each is.  Cho et al. 2014
#include <cella/data/dataset.hpp>
#include <cella/nn/recurrent_net.hpp>
#include <cella/train/model.hpp>
#include <string>
#include <vector>

#include "report.hpp"

using namespace cella;

constexpr int longest = 20;

struct line {
  tokens<longest> letters;
  integers<> length;
};
struct Reader {
  nn::embedding<3, 8> letters;  // nothing, ( and )
  nn::gru_net<8, 32> memory;
  nn::dense<32, 2> out;

  constexpr var operator()(const line& x) const {
    const var last = memory(letters(x.letters), x.length).last.hidden;  // [1, N, 32]
    return out(reshape(last, {-1, 32}));
  }
};

using judge = model<Reader, line, cross_entropy_loss{}, optim::adam{}, model_options{.batch = 64}>;

/// Whether each bracket that is opened is closed, and none before.
bool fits_together(const std::string& s) {
  int open = 0;
  for (char c : s)
    if ((open += c == '(' ? 1 : -1) < 0) return false;
  return open == 0;
}

/// Lines of 2 to 20 brackets; half of them fit together, as those do that are one swap from it.
auto lines(int count, std::uint64_t seed) {
  generator random(seed);
  std::vector<std::int32_t> letters, lengths, fits;
  while (lengths.size() < std::size_t(count)) {
    const int pairs = 1 + int(random.uniform() * longest / 2);
    std::string s;
    for (int open = 0, left = pairs; open || left;) {
      const bool opens = left && (!open || random.uniform() < 0.5);
      s += opens ? '(' : ')';
      open += opens ? 1 : -1;
      left -= opens;
    }
    if (random.uniform() < 0.5)
      std::swap(s[std::size_t(random.uniform() * double(s.size()))],
                s[std::size_t(random.uniform() * double(s.size()))]);
    if (fits_together(s) != (fits.size() % 2 == 0))
      continue;  // as many of one kind as of the other
    lengths.push_back(int(s.size()));
    fits.push_back(fits_together(s));
    s.resize(longest);
    for (char c : s) letters.push_back(c == '(' ? 1 : c == ')' ? 2 : 0);
  }
  return data::tensor_dataset(data::column<std::int32_t>({count, longest}, std::move(letters)),
                              data::column<std::int32_t>({count}, std::move(lengths)),
                              data::column<std::int32_t>({count}, std::move(fits)));
}

int main(int argc, char** argv) {
  return report(argc, argv, [] {
    judge m({.seed = 1});
    m.fit(lines(4000, 1).shuffle(1), {.epochs = 12, .learning_rate = 0.005});
    return nlohmann::ordered_json{
        {"accuracy", m.evaluate(lines(1000, 2), metrics::accuracy{})["accuracy"]}};
  });
}
