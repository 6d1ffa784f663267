// The loops round the register tile: cache blocks, packing, partial sums. They serve matrix
// products and convolutions alike; where the operands come from and where results go is a
// **source**:
//   static constexpr bool indirect            rows of B are found through a table
//   void begin(int pass)                      called before anything of a pass is read
//   int depth(int pass)                       words of a pass in panels: summands, or pairs of them
//   int summands(int pass)                    summands of a pass, where words are pairs
//   matrix<S> a(int pass)                     A of this pass; it is copied if S is not T
//   matrix<S> b(int pass, int strip)          a strip of B, if B is a matrix in memory, else
//   void pack_b(int pass, int strip, T* to)   copies a strip of B, if it is to be packed,
//   void find_b(int pass, int strip, task&)   otherwise says where it lies
//   tile_output<T> output(int row, int column)   where C lies, if tiles are stored there at once,
//   void finish(const T* tile, std::int64_t tile_row, int row, int height, int strip)   else the
//   sink; `int list_rows(int row, int height, int strip, const void** to, int most)`, if the
//   source has it, lists where the rows begin that this will touch
//
// Operands may come from far caches or from memory. What can be put together once and used often is
// packed: blocks of A in panels, strips of B; what lies well is read where it is. The next of
// either is asked for while tiles are computed (side work, gemm_operand.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/gemm/blocking.hpp>
#include <cella/backend/cpu/gemm/tile_beside.hpp>
#include <cella/backend/cpu/gemm/wide_tile.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu::detail {

/// As many rows of memory as are asked for while a tile is computed.
inline constexpr int most_rows = 128;

/// Where a tile of C is stored at once: nowhere, or at `c`, added to what is there or not.
template <class T>
struct tile_output {
  T* c{};
  std::int64_t row{};
  bool add{};
};

template <class T>
tile_output<T> output_of(const any_sink<T>& sink, std::int64_t offset, std::int64_t row_step) {
  if (!sink.target()) return {};
  return {sink.target() + offset, row_step, sink.adds()};
}

/// Tiles of one product on one thread.
template <class T, class Source>
class tile_loops {
 public:
  tile_loops(const blocking<T>& plan, Source& source, T* scratch)
      : plan_(plan),
        source_(source),
        panels_of_a_(scratch),
        packed_b_(panels_of_a_ + plan.copied_a()),
        partial_(packed_b_ + plan.packed_b()),
        wide_(reinterpret_cast<double*>(partial_ + plan.partial_sums())),
        asks_for_c_(std::int64_t{plan.rows} * plan.columns * std::int64_t{sizeof(T)} >= far) {}

  /// The tiles `rows` x `strips`.
  void run(work_range rows, work_range strips) {
    for (int s = strips.first; s < strips.last; s += plan_.block_strips) {
      strips_ = {s, std::min(s + plan_.block_strips, strips.last)};
      for (int t = rows.first; t < rows.last; t += plan_.band_tiles) {
        band_ = {t, std::min(t + plan_.band_tiles, rows.last)};
        run_band();
      }
    }
  }

 private:
  using stored =
      std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<Source&>().a(0).data)>>;
  static constexpr int L = lanes<T>, tile_columns = blocking<T>::tile_columns;
  static constexpr bool converts = !std::is_same_v<stored, T>;
  static constexpr bool in_pairs = summands_of_word<stored> == 2;
  using unit = typename unit_of<stored>::type;
  static constexpr bool is_on_unit = on_unit<stored>;
  static constexpr int most_rows_of_tile = is_on_unit ? unit_block : register_tile<T>::rows;
  static constexpr bool b_in_memory = requires(const Source& s) { s.b(0, 0); };
  /// C is asked for while a tile is computed, if it has this many bytes.
  static constexpr std::int64_t far = 512 << 10;

  /// Rows of A, for a part of the depth.
  struct block {
    int pass{};
    work_range tiles{};
  };
  /// A strip of B, for a block of A.
  struct strip {
    block of;
    int index{};
  };

  int summands(int pass) const {
    if constexpr (in_pairs)
      return source_.summands(pass);
    else
      return source_.depth(pass);
  }
  bool exists(const block& b) const { return b.pass < plan_.passes; }
  bool is_first(const block& b) const { return b.tiles.first == band_.first; }
  block first_block(int pass) const {
    return {pass, {band_.first, std::min(band_.first + plan_.block_tiles, band_.last)}};
  }
  block after(const block& b) const {
    if (b.tiles.last == band_.last) return first_block(b.pass + 1);
    return {b.pass, {b.tiles.last, std::min(b.tiles.last + plan_.block_tiles, band_.last)}};
  }

  void run_band() {
    for (block b = first_block(0); exists(b); b = after(b)) run_block(b);
  }
  void run_block(const block& b) {
    source_.begin(b.pass);
    tile_task<T> task{};
    task.depth = source_.depth(b.pass);
    find_a(b, task);
    const T* const a = task.a;
    for (int s = strips_.first; s < strips_.last; ++s) {
      const bool last = s + 1 == strips_.last;
      find_b({b, s}, last ? strip{after(b), strips_.first} : strip{b, s + 1}, task);
      run_strip({b, s}, a, task);
    }
  }

  // ---- A

  /// Tells the task where a block of A lies, and has the next one asked for.
  void find_a(const block& b, tile_task<T>& task) {
    next_a_ = {};
    if (plan_.copy_a) {
      copy_block(b);
      task.a = panels_of_a_;
      task.a_row = 1;
      task.a_column = plan_.rows_of_panel;
      if (exists(after(b))) next_a_ = lines_of(after(b));
    } else if constexpr (!converts) {
      const auto a = source_.a(b.pass);
      task.a = a.data + plan_.first_row(b.tiles.first) * a.row;
      task.a_row = a.row;
      task.a_column = a.column;
    }
  }
  /// Where a tile's part of A lies, `row` being its first row: elements from that of the block.
  std::int64_t offset_of_a(const block& b, int tile, int row, std::int64_t a_row) const {
    return plan_.copy_a ? (tile - b.tiles.first) * plan_.panel_of_a()
                        : (row - plan_.first_row(b.tiles.first)) * a_row;
  }
  matrix<stored> memory_of(const block& b) const {
    auto a = source_.a(b.pass);
    a.data += plan_.first_row(b.tiles.first) * a.row;
    return a;
  }
  void copy_block(const block& b) const {
    const auto a = memory_of(b);
    const int first = plan_.first_row(b.tiles.first), depth = summands(b.pass);
    T* to = panels_of_a_;
    if constexpr (is_on_unit) {
      for (int t = b.tiles.first; t < b.tiles.last; ++t, to += plan_.panel_of_a())
        pack_unit_rows(plan_.height({t, t + 1}), depth,
                       a.data + (plan_.first_row(t) - first) * a.row, a.row, a.column, to);
      return;
    }
    if (a.row == 1) {
      const int tiles = b.tiles.size();
      const int wider = std::clamp(plan_.rest - b.tiles.first, 0, tiles);
      const int last = plan_.height({b.tiles.last - 1, b.tiles.last});
      pack_words(panel_pieces{tiles, wider, plan_.share, last}, depth, a.data, a.column, to,
                 plan_.panel_of_a(), panel_rows);
      return;
    }
    for (int t = b.tiles.first; t < b.tiles.last; ++t, to += plan_.panel_of_a())
      pack_words(plan_.height({t, t + 1}), depth, a.data + (plan_.first_row(t) - first) * a.row,
                 a.row, a.column, to, panel_rows);
  }
  side_prefetch lines_of(const block& b) const {
    const auto a = memory_of(b);
    const int height = plan_.height(b.tiles), depth = summands(b.pass);
    if (a.column == 1) return {a, height, depth};
    if (a.row == 1) return {a.transposed(), depth, height};
    return {};
  }

  // ---- B

  /// Tells the task where a strip of B lies, and has the next one asked for.
  void find_b(const strip& s, const strip& next, tile_task<T>& task) {
    next_b_ = {};
    if (!plan_.pack_b) {
      source_.find_b(s.of.pass, s.index, task);
      if (plan_.prefetch_b && exists(next.of)) {
        tile_task<T> later{};
        source_.find_b(next.of.pass, next.index, later);
        next_b_ = {matrix<T>{later.b, later.b_row, 1}, source_.depth(next.of.pass),
                   plan_.width(next.index)};
      }
      return;
    }
    T* const to = area_of_b(s);
    if (!plan_.keep_b() || is_first(s.of)) pack(s, to);
    task.b = to;
    task.b_row = tile_columns;
    if (exists(next.of)) next_b_ = lines_of(next);
  }
  T* area_of_b(const strip& s) const {
    const int index = s.index - strips_.first;
    return packed_b_ + (plan_.keep_b() ? index : index % plan_.group) * plan_.strip_of_b();
  }
  void pack(const strip& s, T* to) const {
    if constexpr (b_in_memory) {
      const auto b = source_.b(s.of.pass, s.index);
      if (b.column == 1) {
        if ((s.index - strips_.first) % plan_.group != 0) return;
        const int count = std::min(plan_.group, strips_.last - s.index);
        const int last = plan_.width(s.index + count - 1);
        pack_words(panel_pieces{count, 0, tile_columns, last}, summands(s.of.pass), b.data, b.row,
                   to, plan_.strip_of_b(), tile_columns);
        return;
      }
      pack_words(plan_.width(s.index), summands(s.of.pass), b.data, b.column, b.row, to,
                 tile_columns);
    } else {
      source_.pack_b(s.of.pass, s.index, to);
    }
  }
  side_prefetch lines_of(const strip& s) const {
    if constexpr (b_in_memory) {
      if (plan_.keep_b() && !is_first(s.of))
        return {matrix<T>{area_of_b(s), tile_columns, 1}, source_.depth(s.of.pass), tile_columns};
      // Short pieces of far rows would not stay near until they are packed.
      const auto b = source_.b(s.of.pass, s.index);
      if (b.row == 1) return {b.transposed(), plan_.width(s.index), summands(s.of.pass)};
    }
    return {};
  }

  // ---- C

  void run_strip(const strip& s, const T* a, tile_task<T>& task) {
    const int width = plan_.width(s.index), vectors = (width + L - 1) / L;
    task.last = width - (vectors - 1) * L;
    if constexpr (!is_on_unit) next_b_.spread(std::int64_t{s.of.tiles.size()} * task.depth);
    const std::int64_t partial_row = std::int64_t{plan_.block_strips} * tile_columns;
    for (int t = s.of.tiles.first; t < s.of.tiles.last; ++t) {
      const int i = plan_.first_row(t), height = plan_.first_row(t + 1) - i;
      task.a = a + offset_of_a(s.of, t, i, task.a_row);
      const bool widens = plan_.widens();
      const tile_output<T> output =
          widens ? tile_output<T>{} : source_.output(i, s.index * tile_columns);
      const int pass_of_block = widens ? s.of.pass % plan_.passes_of_block : s.of.pass;
      task.accumulate = pass_of_block > 0 || output.add;
      if (output.c) {
        task.c = output.c;
        task.c_row = output.row;
      } else if (plan_.passes > 1) {
        task.c = partial_ + (i - plan_.first_row(band_.first)) * partial_row +
                 (s.index - strips_.first) * tile_columns;
        task.c_row = partial_row;
      } else {
        task.c = tile_;
        task.c_row = tile_columns;
      }
      const bool hands_over = !output.c && s.of.pass + 1 == plan_.passes;
      side_rows rows{listed_.data(), 0};
      if (output.c && asks_for_c_) rows.steps = list_rows(output, height);
      if constexpr (requires { source_.list_rows(0, 0, 0, nullptr, 0); }) {
        if (hands_over) {
          // A matrix unit is done with a tile before memory answers: it asks for those of the next.
          const auto [tile, index] = is_on_unit ? after(s, t) : std::pair{t, s.index};
          const int first = plan_.first_row(tile);
          rows.steps = source_.list_rows(first, plan_.first_row(tile + 1) - first, index,
                                         listed_.data(), most_rows);
        }
      }
      multiply(height, vectors, task, rows);
      if constexpr (std::is_same_v<T, float>) {
        const bool last = s.of.pass + 1 == plan_.passes;
        if (widens && (last || pass_of_block + 1 == plan_.passes_of_block))
          add_to_wide(task.c, wide_ + (task.c - partial_), partial_row, height, vectors,
                      s.of.pass < plan_.passes_of_block, last);
      }
      if (hands_over) source_.finish(task.c, task.c_row, i, height, s.index);
    }
  }
  /// The tile that is computed behind tile `t` of a strip, and its strip.
  std::pair<int, int> after(const strip& s, int t) const {
    if (t + 1 < s.of.tiles.last) return {t + 1, s.index};
    return {s.of.tiles.first, std::min(s.index + 1, strips_.last - 1)};
  }
  int list_rows(const tile_output<T>& output, int height) {
    for (int i = 0; i < height; ++i) listed_[std::size_t(i)] = output.c + i * output.row;
    return height;
  }
  void multiply(int height, int vectors, const tile_task<T>& task, side_rows& rows) {
    side_prefetch& next = next_b_.steps > 0 ? next_b_ : next_a_;
    if constexpr (is_on_unit) {
      rows.spread(task.depth);
      side_pair both{rows, next};
      multiply_on_unit(unit_, height, (vectors - 1) * L + task.last, task.depth, task.a, task.b,
                       task.b_row, task.c, task.c_row, task.accumulate, both);
    } else if constexpr (in_pairs) {
      multiply_pairs(height, vectors, task, next, rows, tile_);
    } else if constexpr (Source::indirect) {
      rows.ask(rows.steps);
      multiply_tile<tile_form::indirect>(height, vectors, task);
    } else if (plan_.copy_a && (plan_.pack_b || plan_.given_b)) {
      multiply_beside<tile_form::packed>(height, vectors, task, next, rows);
    } else if (next.steps > 0 || plan_.copy_a || !plan_.a_along_rows) {
      multiply_beside<tile_form::strided>(height, vectors, task, next, rows);
    } else {
      multiply_ahead(height, vectors, task, rows);
    }
  }

  const blocking<T>& plan_;
  Source& source_;
  T* const panels_of_a_;
  T* const packed_b_;
  T* const partial_;
  double* const wide_;  // what several blocks of passes come to
  const bool asks_for_c_;
  work_range strips_{}, band_{};
  side_prefetch next_a_, next_b_;  // a block and a strip
  std::array<const void*, most_rows> listed_;
  alignas(64) T tile_[most_rows_of_tile * tile_columns];
  struct none {};
  [[no_unique_address]] std::conditional_t<is_on_unit, unit, none> unit_;
};

/// The tiles `rows` x `strips`.
template <class T, class Source>
void multiply_tiles(const blocking<T>& plan, work_range rows, work_range strips, Source&& source,
                    T* scratch) {
  tile_loops<T, std::remove_reference_t<Source>>(plan, source, scratch).run(rows, strips);
}

/// Units [first, last) as at most three rectangles of tiles.
template <class T, class Source>
void multiply_units(const blocking<T>& plan, work_range units, Source&& source, T* scratch) {
  // Lines are columns of tiles, or rows.
  const int length = plan.row_by_row ? plan.strips : plan.row_tiles;
  for (int first = units.first; first < units.last;) {
    const int line = first / length, place = first % length;
    work_range lines{line, line + 1}, places{place, length};
    if (place == 0 && units.last - first >= length) {
      lines.last = line + (units.last - first) / length;
    } else {
      places.last = std::min(length, place + units.last - first);
    }
    if (plan.row_by_row)
      multiply_tiles(plan, lines, places, source, scratch);
    else
      multiply_tiles(plan, places, lines, source, scratch);
    first += lines.size() * places.size();
  }
}

}  // namespace cella::cpu::detail
