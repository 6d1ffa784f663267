// What a running program has besides its arena: memory whose size only the data decide, and
// threads.
#pragma once

#include <algorithm>
#include <cella/backend/host/buffer.hpp>
#include <cella/backend/host/threads.hpp>
#include <cella/graph/list.hpp>
#include <cella/plan/memory.hpp>
#include <cstdint>

namespace cella::cpu {

/// A stack of frames for what runs inside a control node: its body's arena, deeper with each level
/// of a recursion. It grows on first use and keeps its memory, so that later calls allocate
/// nothing.
class frame_stack {
 public:
  struct mark {
    std::size_t chunk{};
    std::int64_t used{};
  };

  /// Memory of `bytes` bytes, aligned to 64, until `release` goes back behind it.
  std::byte* take(std::int64_t bytes) {
    bytes = align_up(bytes);
    if (top_.chunk == chunks_.size() ||
        top_.used + bytes > std::int64_t(chunks_[top_.chunk].size())) [[unlikely]]
      next_chunk(bytes);
    std::byte* p = chunks_[top_.chunk].data() + top_.used;
    top_.used += bytes;
    return p;
  }
  mark top() const { return top_; }
  void release(mark to) { top_ = to; }

 private:
  [[gnu::noinline]] void next_chunk(std::int64_t bytes) {
    while (top_.chunk < chunks_.size() &&
           top_.used + bytes > std::int64_t(chunks_[top_.chunk].size()))
      top_ = {top_.chunk + 1, 0};
    if (top_.chunk == chunks_.size())
      chunks_.emplace_back(std::size_t(std::max(bytes, std::int64_t{1} << 18)));
  }

  list<aligned_buffer> chunks_;
  mark top_;
};

/// What CELLA_DEBUG=nan remembers of a call: which values hold an infinity, by node.
struct number_watch {
  list<char> infinite;
};

struct run_context {
  frame_stack frames;
  /// Values that the steps of a loop store for its backward pass; released when a call begins.
  frame_stack records;
  thread_pool* threads{};  ///< null: everything runs on the calling thread
  number_watch* watch{};   ///< null: nobody looks for NaN
};

}  // namespace cella::cpu
