// The epilogue of a kernel as data: see loops/sink.hpp for what kernels ask of a sink.
#pragma once

#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cstdint>

namespace cella::cpu {

/// Gathers the vectors that a kernel hands over until they fill a block, then runs the line on it.
/// What is left is done when the sink ends: each thread's part of a kernel call has its own.
template <class T>
class bytecode_sink {
  static constexpr int L = lanes<T>, most_segments = 64;
  using runner = block_runner<T>;

 public:
  static std::int64_t scratch_bytes(const line_code<T>& line) {
    return align_up(runner::block_elements(line) * std::int64_t(sizeof(T))) +
           runner::scratch_bytes(line);
  }

  /// `form`: in which the kernel's results are.
  bytecode_sink(const line_code<T>& line, const plan_step& s, const step_addresses<T>& a,
                std::byte* scratch, layout form = layout::plain)
      : s_(s),
        row_elements_(form == layout::blocked ? L : 1),
        a_(a),
        given_(reinterpret_cast<T*>(scratch)),
        target_(line.is_given() ? a.out[0] : nullptr),
        runner_(line, s, a_,
                scratch + align_up(runner::block_elements(line) * std::int64_t(sizeof(T))), given_,
                form) {}
  bytecode_sink(const bytecode_sink&) = delete;
  bytecode_sink& operator=(const bytecode_sink&) = delete;
  ~bytecode_sink() {
    if (count_) flush();
  }

  /// Where the kernel may store its results itself; null if something follows from them.
  T* target() const { return target_; }

  void operator()(vec<T> value, std::int64_t offset, int count) const {
    (*this)(value, offset, 0, 0, count);
  }
  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t offset, int row, int column,
                                         int count) const {
    if (offset != next_ || row != row_) [[unlikely]]
      begin_segment(offset, row, column);
    store(given_ + vectors_ * L, value);
    segments_[std::size_t(count_ - 1)].elements += count;
    // Behind a part of a vector nothing follows in its segment.
    next_ = count == L ? offset + L : -1;
    if (++vectors_ * L == runner_.block()) flush();
  }

 private:
  struct where {
    std::int64_t offset{};
    int row{}, column{};
  };
  [[gnu::noinline]] void begin_segment(std::int64_t offset, int row, int column) const {
    if (count_ == most_segments) flush();
    segments_[std::size_t(count_)] = {vectors_, 0};
    at_[std::size_t(count_++)] = {offset, row, column};
    row_ = row;
  }
  [[gnu::noinline]] void flush() const {
    const auto place = [&](int read, int g) {
      const where& at = at_[std::size_t(g)];
      const access how = s_.reads[std::size_t(read)].how;
      return place_of_read(how, at.offset, at.row, at.column, row_elements_);
    };
    runner_.compute(
        span<const typename runner::segment>(segments_.data(), std::size_t(count_)), place,
        [](int) { return std::int64_t{1}; },
        [&](int k) { return a_.out[std::size_t(k)] + at_[0].offset; });
    for (int k = 0; k < s_.output_count; ++k) {
      for (int g = 0; g < count_; ++g)
        runner_.store_segment(k, segments_[std::size_t(g)], at_[std::size_t(g)].offset);
    }
    count_ = vectors_ = 0;
    next_ = -1;  // the next vector begins a segment
  }

  const plan_step& s_;
  int row_elements_;
  step_addresses<T> a_;
  T* given_;
  T* target_;
  mutable runner runner_;
  mutable std::array<typename runner::segment, most_segments> segments_;
  mutable std::array<where, most_segments> at_;
  mutable int count_ = 0, vectors_ = 0, row_ = -1;
  mutable std::int64_t next_ = -1;
};

/// The same for kernels that yield vectors of channels: (value, element, block).
template <class T>
class blocked_bytecode_sink {
 public:
  blocked_bytecode_sink(const line_code<T>& line, const plan_step& s, const step_addresses<T>& a,
                        std::byte* scratch)
      : gathers_(line, s, a, scratch, layout::blocked) {}

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int block) const {
    constexpr int L = lanes<T>;
    if (T* const to = gathers_.target())
      store(to + element * L, value);
    else
      gathers_(value, element * L, block, 0, L);
  }

 private:
  bytecode_sink<T> gathers_;
};

}  // namespace cella::cpu
