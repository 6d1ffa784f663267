// Messages from one thread to another, which wait until they are asked for.
#pragma once

#include <atomic>
#include <cella/graph/error.hpp>
#include <cella/graph/op_info.hpp>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

namespace cella::parallel::detail {

/// One thread puts messages in, another one takes them. The memory of what was taken serves what
/// comes next.
class mailbox {
 public:
  void put(int tag, const tensor_ref& in) {
    const std::scoped_lock guard(lock_);
    letter* one = nullptr;
    for (letter& l : letters_)
      if (l.tag == nobody && !one) one = &l;
    if (!one) one = &letters_.emplace_back();
    one->tag = tag;
    one->number = put_.load(std::memory_order_relaxed);
    one->bytes.assign(in.data, in.data + in.type.bytes());
    put_.store(one->number + 1, std::memory_order_release);
  }
  /// Takes the oldest message of a tag; false if there is none. `seen` is how many messages there
  /// were when it was last looked for, -1 at first: as long as no other comes, nothing is locked.
  bool take(int tag, const tensor_ref& out, std::int64_t& seen) {
    const std::int64_t now = put_.load(std::memory_order_acquire);
    if (now == seen) return false;
    seen = now;
    const std::scoped_lock guard(lock_);
    letter* one = nullptr;
    for (letter& l : letters_)
      if (l.tag == tag && (!one || l.number < one->number)) one = &l;
    if (!one) return false;
    if (std::int64_t(one->bytes.size()) != out.type.bytes())
      throw error(text() << "receive: a message has " << std::int64_t(one->bytes.size())
                         << " bytes, but " << out.type
                         << " is expected; all ranks have to run the same plan");
    if (!one->bytes.empty()) std::memcpy(out.data, one->bytes.data(), one->bytes.size());
    one->tag = nobody;
    return true;
  }

 private:
  static constexpr int nobody = -1;
  struct letter {
    int tag = nobody;
    std::int64_t number{};
    std::vector<std::byte> bytes;
  };

  std::mutex lock_;
  std::deque<letter> letters_;
  std::atomic<std::int64_t> put_{0};
};

}  // namespace cella::parallel::detail
