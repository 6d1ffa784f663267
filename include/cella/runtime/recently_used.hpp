// A bounded memory of what is slow to make: plans of the shapes that a program meets.
#pragma once

#include <cstddef>
#include <list>
#include <utility>

namespace cella {

/// Made things by keys, as many as were used last. What is asked for again is not made again;
/// beyond the limit the one that was not asked for the longest goes. Serves one thread at a time.
template <class Key, class Made>
class recently_used {
 public:
  explicit recently_used(std::size_t most) : most_(most) {}

  /// What belongs to `key`, else what `make()` returns, once. Valid until `get` makes another.
  /// Searched from front to back: the limit is small, and what is asked for is mostly in front.
  template <class Make>
  Made& get(const Key& key, Make make) {
    auto found = known_.begin();
    while (found != known_.end() && found->first != key) ++found;
    if (found == known_.end()) {
      // Made before another goes: if that fails, all is as it was.
      known_.emplace_front(key, make());
      if (known_.size() > most_) known_.pop_back();
    } else {
      known_.splice(known_.begin(), known_, found);
    }
    return known_.front().second;
  }
  std::size_t size() const { return known_.size(); }

 private:
  std::size_t most_;
  std::list<std::pair<Key, Made>> known_;
};

}  // namespace cella
