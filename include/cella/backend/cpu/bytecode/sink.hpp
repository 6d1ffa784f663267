// The epilogue of a kernel as data: see loops/sink.hpp for what kernels ask of a sink.
#pragma once

#include <cella/backend/cpu/blocked/finish.hpp>
#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cella/backend/cpu/lanes/layout.hpp>
#include <cstdint>

namespace cella::cpu {

/// Gathers the vectors that a kernel hands over until they fill a block, then runs the line on it.
/// What is left is done when the sink ends: each thread's part of a kernel call has its own.
template <class T>
class bytecode_sink {
  static constexpr int L = lanes<T>, most_segments = 64, most_arrays = 4;
  using runner = block_runner<T>;

 public:
  static std::int64_t scratch_bytes(const line_code<T>& line) {
    return align_up(runner::block_elements(line) * std::int64_t(sizeof(T))) +
           runner::scratch_bytes(line);
  }

  /// `form`: in which the kernel's results are. `row_step`: by how much the rows of neighbouring
  /// vectors differ.
  bytecode_sink(const line_code<T>& line, const plan_step& s, const step_addresses<T>& a,
                std::byte* scratch, layout form = layout::plain, int row_step = 0,
                dead_lanes dead = no_dead_lanes)
      : s_(s),
        row_elements_(form == layout::blocked ? L : 1),
        row_step_(row_step),
        a_(a),
        given_(reinterpret_cast<T*>(scratch)),
        target_(line.is_given() ? a.out[0] : nullptr),
        runner_(line, s, a_,
                scratch + align_up(runner::block_elements(line) * std::int64_t(sizeof(T))), form,
                dead),
        end_(given_ + runner_.block()),
        to_(given_) {
    for (int k = 0; k < s.output_count; ++k)
      list(a.out[std::size_t(k)], line.outputs()[std::size_t(k)].stored);
    for (const auto& v : line.values()) {
      if (v.from == line_code<T>::source::read && s.reads[std::size_t(v.index)].how == access::same)
        list(a.in[std::size_t(v.index)], v.stored);
    }
  }
  bytecode_sink(const bytecode_sink&) = delete;
  bytecode_sink& operator=(const bytecode_sink&) = delete;
  ~bytecode_sink() {
    if (count_) flush();
  }

  /// Where the kernel may store its results itself; null if something follows from them.
  T* target() const { return target_; }

  [[gnu::noinline]] void operator()(vec<T> value, std::int64_t offset, int count) const {
    (*this)(value, offset, 0, 0, count);
  }
  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t offset, int row, int column,
                                         int count) const {
    if (offset != next_ || row != row_) [[unlikely]]
      begin_segment(offset, row, column);
    store(to_, value);
    to_ += L;
    next_ += L;
    row_ += row_step_;
    if (count != L) [[unlikely]]
      end_segment(count);
    if (to_ == end_) [[unlikely]]
      flush();
  }
  /// A tile of plain results at once, as `any_sink` has them; its elements are not copied.
  void hand_over(const T* tile, std::int64_t tile_row, int height, int width, std::int64_t offset,
                 std::int64_t row_step, int row, int column) const {
    const int whole = width / L * L;
    compute(tile, tile_row, {height, whole, offset, row_step, row, column});
    if (whole == width) return;
    for (int i = 0; i < height; ++i) {
      (*this)(load_first(tile + i * tile_row + whole, width - whole), offset + i * row_step + whole,
              row + i, column + whole, width - whole);
    }
  }
  /// Runs the line on a rectangle of the kernel's values, whose rows lie `tile_row` apart.
  void compute(const T* tile, std::int64_t tile_row, const typename runner::rectangle& r) const {
    if (r.rows * r.elements + (L - 1) * r.rows <= runner_.block()) {
      runner_.give({tile, L, tile_row});
      return runner_.compute(r, ~0u);
    }
    for (int j = 0; j < r.elements; j += runner_.block()) {
      const int n = std::min(r.elements - j, runner_.block()), most = runner_.rows_of(n);
      for (int i = 0; i < r.rows; i += most) {
        runner_.give({tile + i * tile_row + j, L, tile_row});
        runner_.compute({std::min(most, r.rows - i), n, r.offset + i * r.row_step + j, r.row_step,
                         r.same_row ? r.row : r.row + i, r.column + j, r.same_row},
                        ~0u);
      }
    }
  }
  /// The arrays that are written, or read where the results belong: those of numbers T.
  int list_arrays(const T** to, int most) const {
    int count = 0;
    for (int k = 0; k < array_count_; ++k) {
      const listed_array& array = arrays_[std::size_t(k)];
      if (count < most && array.element_bytes == sizeof(T))
        to[count++] = reinterpret_cast<const T*>(array.first);
    }
    return count;
  }
  /// The same as rows of a tile.
  int list_rows(int height, std::int64_t offset, std::int64_t row_step, const void** to,
                int most) const {
    int count = 0;
    for (int k = 0; k < array_count_; ++k) {
      const listed_array& array = arrays_[std::size_t(k)];
      const std::byte* row = array.at(offset);
      const std::int64_t apart = row_step * array.element_bytes;
      for (const int end = std::min(most, count + height); count < end; row += apart)
        to[count++] = row;
    }
    return count;
  }

 private:
  struct where {
    std::int64_t offset{};
    int row{}, column{};
  };
  struct listed_array {
    const std::byte* first;
    std::int64_t element_bytes;

    const std::byte* at(std::int64_t element) const { return first + element * element_bytes; }
  };
  void list(const T* array, dtype stored) {
    const std::size_t bytes = is_storage_only(stored) ? size_of(stored) : sizeof(T);
    const listed_array wanted{reinterpret_cast<const std::byte*>(array), std::int64_t(bytes)};
    for (int k = 0; k < array_count_; ++k) {
      if (arrays_[std::size_t(k)].first == wanted.first) return;
    }
    if (array_count_ < most_arrays) arrays_[std::size_t(array_count_++)] = wanted;
  }
  [[gnu::noinline]] void begin_segment(std::int64_t offset, int row, int column) const {
    count_elements();
    if (count_ == most_segments) flush();
    segments_[std::size_t(count_)] = {int(to_ - given_) / L, 0};
    missing_ = 0;
    at_[std::size_t(count_++)] = {offset, row, column};
    next_ = offset;
    row_ = row;
    // Register tiles are two vectors wide, and their rows too far apart for the processor to guess.
    for (int k = 0; k < array_count_; ++k) {
      const std::byte* const first = arrays_[std::size_t(k)].at(offset);
      __builtin_prefetch(first);
      __builtin_prefetch(first + 64);
    }
  }
  /// Behind the first `count` elements of the last vector nothing follows in its segment.
  [[gnu::noinline]] void end_segment(int count) const {
    missing_ = L - count;
    next_ = -1;
  }
  void count_elements() const {
    if (count_ == 0) return;
    auto& last = segments_[std::size_t(count_ - 1)];
    last.elements = int(to_ - given_) - last.first_vector * L - missing_;
  }
  [[gnu::noinline]] void flush() const {
    count_elements();
    const auto place = [&](int read, int g) {
      const where& at = at_[std::size_t(g)];
      const access how = s_.reads[std::size_t(read)].how;
      return place_of_read(how, at.offset, at.row, at.column, row_elements_);
    };
    const span<const typename runner::segment> segments(segments_.data(), std::size_t(count_));
    runner_.give({given_, L, 0});
    runner_.compute(
        segments, place, [&](int) { return std::int64_t{row_step_}; },
        [&](int k) -> T* {
          if (runner_.reaches_dead(at_[0].offset, segments_[0].elements)) return nullptr;
          return a_.out[std::size_t(k)] + at_[0].offset;
        });
    for (int k = 0; k < s_.output_count; ++k)
      runner_.store_segments(k, segments, [&](int g) { return at_[std::size_t(g)].offset; });
    count_ = 0;
    to_ = given_;
    next_ = -1;  // the next vector begins a segment
  }

  const plan_step& s_;
  int row_elements_, row_step_;
  step_addresses<T> a_;
  T* given_;
  T* target_;
  mutable runner runner_;
  T* end_;
  std::array<listed_array, most_arrays> arrays_{};
  int array_count_ = 0;
  mutable std::array<typename runner::segment, most_segments> segments_;
  mutable std::array<where, most_segments> at_;
  mutable T* to_;
  mutable int count_ = 0, missing_ = 0, row_ = -1;
  mutable std::int64_t next_ = -1;
};

/// The same for kernels that yield lane vectors: (value, element, channel). `channel_step`: how
/// many channels neighbouring vectors are apart: one where a channel is one pixel. It is not
/// inlined, since each of a kernel's many tiles hands its sums over.
template <class T>
class lanes_bytecode_sink {
 public:
  lanes_bytecode_sink(const line_code<T>& line, const plan_step& s, const step_addresses<T>& a,
                      std::byte* scratch, int channel_step, dead_lanes dead)
      : gathers_(line, s, a, scratch, layout::lanes, channel_step, dead) {}

  [[gnu::noinline]] void operator()(vec<T> value, std::int64_t element, int channel) const {
    constexpr int L = lanes<T>;
    gathers_(value, element * L, channel, 0, L);
  }

 private:
  bytecode_sink<T> gathers_;
};
/// The same for pooling in registers; `corners`: where to store which was the largest, or null.
template <class T>
struct pooled_bytecode_sink {
  lanes_bytecode_sink<T> values;
  std::uint16_t* corners;

  void operator()(vec<T> value, const corner_bits& where, std::int64_t element, int channel) const {
    values(value, element, channel);
    if (corners) store_corners(corners + element * 4, where, first_bits(lanes<T>));
  }
};

/// The same for kernels that yield vectors of channels: (value, element, block).
template <class T>
class blocked_bytecode_sink {
 public:
  blocked_bytecode_sink(const line_code<T>& line, const plan_step& s, const step_addresses<T>& a,
                        std::byte* scratch, const finish_form& form)
      : gathers_(line, s, a, scratch, layout::blocked), finish_(form, a) {}

  blocked_finish<T> finish() const { return finish_; }

  int list_arrays(const T** to, int most) const { return gathers_.list_arrays(to, most); }

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int block) const {
    constexpr int L = lanes<T>;
    if (T* const to = gathers_.target())
      store(to + element * L, value);
    else
      gathers_(value, element * L, block, 0, L);
  }
  /// A tile at once, as `any_blocked_sink` has it, unless it is to be stored only.
  bool hand_over(const T* tile, int tile_block, int pixels, int blocks, const std::int64_t* at,
                 std::int64_t plane, int block) const {
    constexpr int L = lanes<T>;
    if (gathers_.target()) return false;
    const pixel_rows all = first_rows(at, pixels);
    if (all.width == pixels && all.apart == 1) {
      gathers_.compute(tile, std::int64_t{tile_block} * L,
                       {blocks, pixels * L, (at[0] + block * plane) * L, plane * L, block, 0});
      return true;
    }
    for (int b = 0; b < blocks; ++b, tile += tile_block * L) {
      for (int i = 0; i < pixels;) {
        const pixel_rows p = first_rows(at + i, pixels - i);
        const std::int64_t first = (at[i] + (block + b) * plane) * L;
        const T* const given = tile + i * L;
        if (p.apart == 1)
          gathers_.compute(given, std::int64_t{p.width} * L,
                           {p.rows, p.width * L, first, p.down * L, block + b, 0, true});
        else  // rows of one vector
          gathers_.compute(given, L, {p.width, L, first, p.apart * L, block + b, 0, true});
        i += p.rows * p.width;
      }
    }
    return true;
  }
  /// Neighbouring pixels of a block, from vector `element` on, whose values lie at `given`.
  void hand_over(const T* given, std::int64_t element, int pixels, int block) const {
    constexpr int L = lanes<T>;
    gathers_.compute(given, 0, {1, pixels * L, element * L, 0, block, 0, true});
  }
  /// Where pixels are stored if nothing follows from them, or null.
  T* target() const { return gathers_.target(); }

 private:
  /// The first of some pixels that lie evenly apart; if they are neighbours, with as many rows of
  /// them as lie evenly apart.
  struct pixel_rows {
    int width = 1, rows = 1;
    std::int64_t apart = 1, down{};
  };
  static pixel_rows first_rows(const std::int64_t* at, int pixels) {
    pixel_rows p;
    if (pixels > 1) p.apart = at[1] - at[0];
    while (p.width < pixels && at[p.width] == at[p.width - 1] + p.apart) ++p.width;
    if (p.apart != 1 || 2 * p.width > pixels) return p;
    p.down = at[p.width] - at[0];
    const auto next_fits = [&] {
      const int first = p.rows * p.width;
      for (int i = first; i < first + p.width; ++i) {
        if (at[i] != at[i - p.width] + p.down) return false;
      }
      return true;
    };
    while ((p.rows + 1) * p.width <= pixels && next_fits()) ++p.rows;
    return p;
  }

  bytecode_sink<T> gathers_;
  blocked_finish<T> finish_;
};

/// Runs a line on results that a kernel has stored: `count` of them at `given`, whole vectors,
/// which belong at `offset` and behind of each output, wherever that is in a row.
template <class T>
void finish_results(const line_code<T>& line, const plan_step& s, const step_addresses<T>& a,
                    const T* given, std::int64_t offset, std::int64_t count, std::byte* scratch) {
  block_runner<T> runner(line, s, a, scratch);
  for (std::int64_t i = 0; i < count; i += runner.block()) {
    const int n = int(std::min<std::int64_t>(runner.block(), count - i));
    runner.give({given + i, lanes<T>, 0});
    runner.compute({1, n, offset + i, 0, 0, 0}, ~0u);
  }
}

}  // namespace cella::cpu
