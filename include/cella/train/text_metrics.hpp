// Metrics of texts: perplexity and BLEU.
#pragma once

#include <cella/train/metrics.hpp>
#include <map>
#include <vector>

namespace cella::metrics {

/// e^loss, for losses that are the mean cross-entropy of a word: as many words are as likely as the
/// right one.
struct perplexity {
  static std::string name() { return "perplexity"; }
  void reset() { mean_ = {}; }
  void update(double mean, std::int64_t rows) {
    mean_.sum += mean * double(rows);
    mean_.count += rows;
  }
  double value() const { return std::exp(mean_.value()); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

/// How many of the runs of 1 to `Order` words of the predictions are in their targets: the
/// geometric mean of these shares over the whole set, times e^(1 - target words / predicted words)
/// where fewer are predicted. Words [N,T] of integers; predictions may be scores [N,T,C]. A
/// sentence ends before the first word `end`; -1: none does.  Papineni et al. 2002, with one
/// reference, not smoothed
template <int Order = 4>
struct bleu {
  static_assert(Order > 0, "bleu: runs have at least one word");
  std::int64_t end = -1;

  static std::string name() { return "bleu"; }
  void reset() {
    matches_ = {};
    runs_ = {};
    words_ = {};
  }
  template <class P, class_label T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    const shape& e = target.extents();
    const std::size_t each = target.size() ? prediction.size() / target.size() : 1;
    if (e.rank != 2 || prediction.size() != target.size() * each || each < 1) {
      throw error(text("metrics: bleu: predictions ")
                  << prediction.extents() << " and targets " << e
                  << " do not match; it takes words [N,T], or scores [N,T,C], and words [N,T]");
    }
    const auto length = std::size_t(e[1]);
    for (std::size_t n = 0; n < std::size_t(e[0]); ++n) {
      sentence found, wanted;
      for (std::size_t t = 0; t < length; ++t) {
        const std::size_t i = n * length + t;
        found.push_back(each == 1 ? std::int64_t(prediction[i])
                                  : argmax(std::span<const P>(prediction.data() + i * each, each)));
        wanted.push_back(std::int64_t(target[i]));
      }
      compare(cut(found), cut(wanted));
    }
  }
  double value() const {
    double logs = 0;
    for (std::size_t k = 0; k < std::size_t(Order); ++k) {
      if (matches_[k] == 0) return 0;
      logs += std::log(double(matches_[k]) / double(runs_[k])) / Order;
    }
    const double ratio = double(words_[1]) / double(words_[0]);
    return std::exp(logs + std::min(0.0, 1 - ratio));
  }
  void state(auto& visitor) {
    visitor("matches", matches_);
    visitor("runs", runs_);
    visitor("words", words_);
  }

  std::array<std::int64_t, std::size_t(Order)> matches_{}, runs_{};
  std::array<std::int64_t, 2> words_{};  // of predictions, of targets

 private:
  using sentence = std::vector<std::int64_t>;
  sentence cut(sentence s) const {
    if (end >= 0) s.erase(std::find(s.begin(), s.end(), end), s.end());
    return s;
  }
  static std::map<sentence, std::int64_t> runs_of(const sentence& s, std::size_t length) {
    std::map<sentence, std::int64_t> all;
    for (std::size_t i = 0; i + length <= s.size(); ++i)
      ++all[sentence(s.begin() + std::ptrdiff_t(i), s.begin() + std::ptrdiff_t(i + length))];
    return all;
  }
  void compare(const sentence& found, const sentence& wanted) {
    words_[0] += std::int64_t(found.size());
    words_[1] += std::int64_t(wanted.size());
    for (std::size_t k = 0; k < std::size_t(Order); ++k) {
      const auto there = runs_of(wanted, k + 1);
      for (const auto& [run, count] : runs_of(found, k + 1)) {
        runs_[k] += count;
        if (const auto it = there.find(run); it != there.end())
          matches_[k] += std::min(count, it->second);
      }
    }
  }
};

}  // namespace cella::metrics
