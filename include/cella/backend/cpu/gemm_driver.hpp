// The loops round the register tile: cache blocks, packing, partial sums. They serve matrix
// products and convolutions alike; where the operands come from and where results go is a
// **source**:
//   static constexpr bool indirect            rows of B are found through a table
//   void begin(int pass)                      called before anything of a pass is read
//   int depth(int pass)                       summands of a pass
//   matrix<S> a(int pass)                     A of this pass; it is copied if S is not T
//   matrix<S> b(int pass, int strip)          a strip of B, if B is a matrix in memory, else
//   void pack_b(int pass, int strip, T* to)   copies a strip of B, if it is to be packed,
//   void find_b(int pass, int strip, task&)   otherwise says where it lies
//   tile_output<T> output(int row, int column)   where C lies, if tiles are stored there at once,
//   void finish(const T* tile, std::int64_t tile_row, int row, int height, int strip)   else the
//   sink; `int list_lines(int row, int height, int strip, const void** to, int most)`, if the
//   source has it, lists lines of memory that this will touch
//
// Operands may come from far caches or from memory, whose latency would cost more than the packing
// itself. So the next block of A and the next strip of B are brought near while tiles are computed
// (side work, gemm_operand.hpp); only the first ones are waited for.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/gemm_blocking.hpp>
#include <cella/backend/cpu/sink.hpp>
#include <cella/backend/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu::detail {

/// As many lines of memory as are asked for while a tile is computed.
inline constexpr int most_lines = 128;

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

/// A tile that takes steps of `side`, if any are to come, and asks for `lines`.
template <class T, class Side>
void multiply_beside(int height, int vectors, const tile_task<T>& task, Side& side,
                     side_lines lines) {
  if (has_side_work<T>(height, vectors) && (side.steps > 0 || lines.steps > 0)) {
    side_pair<Side> both{side, lines};
    multiply_tile(height, task, both);
    side = both.side;
  } else {
    lines.finish();
    multiply_tile<false>(height, vectors, task);
  }
}

/// A tile that asks for A as it goes.
template <class T>
void multiply_ahead(int height, int vectors, const tile_task<T>& task, side_lines lines) {
  lines.finish();
  if (has_side_work<T>(height, vectors)) {
    side_ahead ahead{task.a, task.a_column};
    multiply_tile(height, task, ahead);
  } else {
    multiply_tile<false>(height, vectors, task);
  }
}

/// Tiles of one product on one thread.
template <class T, class Source>
class tile_loops {
 public:
  tile_loops(const blocking<T>& plan, Source& source, T* scratch)
      : plan_(plan),
        source_(source),
        copied_a_(scratch),
        packed_b_(copied_a_ + plan.copied_a()),
        partial_(packed_b_ + plan.packed_b()) {}

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
  static constexpr bool b_in_memory = requires(const Source& s) { s.b(0, 0); };
  /// From this depth on it pays to ask for C before a tile is computed.
  static constexpr int deep = 64;

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
    copy_a_ = {};
    copy_b_ = {};
    second_a_ = false;
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

  /// Tells the task where a block of A lies, and begins to copy the next one.
  void find_a(const block& b, tile_task<T>& task) {
    if (plan_.copy_a) {
      T* const to = area_of_a();
      if (copy_a_.to)
        copy_a_.finish();
      else
        copy_block(b, to);
      task.a = to;
      task.a_row = in_panels() ? 1 : plan_.pitch(source_.depth(b.pass));
      task.a_column = in_panels() ? copied_piece : 1;
      second_a_ = !second_a_;
      copy_a_ = copy_of(after(b));
    } else if constexpr (!converts) {
      const auto a = source_.a(b.pass);
      task.a = a.data + plan_.first_row(b.tiles.first) * a.row;
      task.a_row = a.row;
      task.a_column = a.column;
    }
  }
  /// Whether the copy of a block has a panel for each tile, or else rows.
  bool in_panels() const { return plan_.copy_a && plan_.a_along_rows; }
  /// Where a tile's part of A lies, `row` being its first row: elements from that of the block.
  std::int64_t offset_of_a(const block& b, int tile, int row, std::int64_t a_row) const {
    return in_panels() ? (tile - b.tiles.first) * plan_.panel_of_a()
                       : (row - plan_.first_row(b.tiles.first)) * a_row;
  }
  matrix<stored> memory_of(const block& b) const {
    auto a = source_.a(b.pass);
    a.data += plan_.first_row(b.tiles.first) * a.row;
    return a;
  }
  T* area_of_a() const { return copied_a_ + (second_a_ ? plan_.block_of_a() : 0); }

  void copy_block(const block& b, T* to) const {
    const auto a = memory_of(b);
    const int depth = source_.depth(b.pass);
    if (!in_panels()) {
      copy_rows(a, plan_.height(b.tiles), depth, to, plan_.pitch(depth));
      return;
    }
    for (int t = b.tiles.first; t < b.tiles.last; ++t) {
      const work_range before{b.tiles.first, t};
      pack_panel(plan_.height({t, t + 1}), depth, a.data + plan_.height(before), 1, a.column,
                 to + before.size() * plan_.panel_of_a(), copied_piece);
    }
  }
  /// How tiles copy a block, if they can.
  side_copy<T> copy_of(const block& b) const {
    if constexpr (!converts && !Source::indirect) {
      if (!exists(b)) return {};
      const auto a = memory_of(b);
      const int depth = source_.depth(b.pass);
      if (in_panels()) {
        constexpr int rows_ahead = 4;
        const int tiles = b.tiles.size();
        const int longer = std::clamp(plan_.rest - b.tiles.first, 0, tiles);
        return {a.transposed(),     depth,     tiles, longer, plan_.share, area_of_a(),
                plan_.panel_of_a(), rows_ahead};
      }
      if (a.column == 1)
        return {a, plan_.height(b.tiles), depth, area_of_a(), plan_.pitch(depth), 1};
    }
    return {};
  }

  // ---- B

  /// Tells the task where a strip of B lies, and begins to bring the next one near.
  void find_b(const strip& s, const strip& next, tile_task<T>& task) {
    prefetch_b_ = {};
    if (!plan_.pack_b) {
      source_.find_b(s.of.pass, s.index, task);
      if (plan_.prefetch_b && exists(next.of)) {
        tile_task<T> later{};
        source_.find_b(next.of.pass, next.index, later);
        prefetch_b_ = {matrix<T>{later.b, later.b_row, 1}, source_.depth(next.of.pass),
                       plan_.width(next.index)};
      }
      return;
    }
    T* const to = area_of_b(s);
    if (!plan_.keep_b() || is_first(s.of)) {
      if (copy_b_.to)
        copy_b_.finish();
      else
        pack(s, to);
    }
    task.b = to;
    task.b_row = tile_columns;
    second_b_ = !second_b_;
    copy_b_ = {};
    // The place of a kept strip is free for the next pass once the last tile has read it.
    const bool taken = plan_.keep_b() && next.index == s.index;
    if (exists(next.of) && !taken) prepare(next);
  }
  T* area_of_b(const strip& s) const {
    const int place = plan_.keep_b() ? s.index - strips_.first : plan_.copy_b && second_b_;
    return packed_b_ + std::int64_t{place} * plan_.depth * tile_columns;
  }
  void pack(const strip& s, T* to) const {
    if constexpr (b_in_memory) {
      const auto b = source_.b(s.of.pass, s.index);
      pack_panel(plan_.width(s.index), source_.depth(s.of.pass), b.data, b.column, b.row, to,
                 tile_columns);
    } else {
      source_.pack_b(s.of.pass, s.index, to);
    }
  }
  void prepare(const strip& s) {
    if constexpr (b_in_memory) {
      const int depth = source_.depth(s.of.pass), width = plan_.width(s.index);
      if (plan_.keep_b() && !is_first(s.of)) {
        prefetch_b_ = {matrix<T>{area_of_b(s), tile_columns, 1}, depth, tile_columns};
        return;
      }
      const auto b = source_.b(s.of.pass, s.index);
      if constexpr (!converts) {
        constexpr int rows_ahead = 24;
        if (plan_.copy_b) copy_b_ = {b, depth, width, area_of_b(s), tile_columns, rows_ahead};
      }
      if (b.row == 1) prefetch_b_ = {b.transposed(), width, depth};
    }
  }

  // ---- C

  void run_strip(const strip& s, const T* a, tile_task<T>& task) {
    const int width = plan_.width(s.index), vectors = (width + L - 1) / L;
    task.last = width - (vectors - 1) * L;
    const std::int64_t partial_row = std::int64_t{plan_.block_strips} * tile_columns;
    for (int t = s.of.tiles.first; t < s.of.tiles.last; ++t) {
      const int i = plan_.first_row(t), height = plan_.first_row(t + 1) - i;
      task.a = a + offset_of_a(s.of, t, i, task.a_row);
      const tile_output<T> output = source_.output(i, s.index * tile_columns);
      task.accumulate = s.of.pass > 0 || output.add;
      if (output.c) {
        task.c = output.c;
        task.c_row = output.row;
        if (task.depth >= deep) ask_for(output, height, vectors);
      } else if (plan_.passes > 1) {
        task.c = partial_ + (i - plan_.first_row(band_.first)) * partial_row +
                 (s.index - strips_.first) * tile_columns;
        task.c_row = partial_row;
      } else {
        task.c = tile_;
        task.c_row = tile_columns;
      }
      const bool hands_over = !output.c && s.of.pass + 1 == plan_.passes;
      side_lines lines{listed_.data(), 0};
      if constexpr (requires { source_.list_lines(0, 0, 0, nullptr, 0); }) {
        if (hands_over)
          lines.steps = source_.list_lines(i, height, s.index, listed_.data(), most_lines);
      }
      multiply(height, vectors, task, lines);
      if (hands_over) source_.finish(task.c, task.c_row, i, height, s.index);
    }
  }
  static void ask_for(const tile_output<T>& output, int height, int vectors) {
    for (int i = 0; i < height; ++i) {
      for (int v = 0; v < vectors; ++v) __builtin_prefetch(output.c + i * output.row + v * L, 1);
    }
  }
  void multiply(int height, int vectors, const tile_task<T>& task, side_lines lines) {
    if constexpr (Source::indirect) {
      multiply_tile<true>(height, vectors, task);
    } else if (copy_b_.steps > 0) {
      multiply_beside(height, vectors, task, copy_b_, lines);
    } else if (prefetch_b_.steps > 0) {
      multiply_beside(height, vectors, task, prefetch_b_, lines);
    } else if (copy_a_.steps > 0 || !plan_.a_along_rows) {
      multiply_beside(height, vectors, task, copy_a_, lines);
    } else {
      multiply_ahead(height, vectors, task, lines);
    }
  }

  const blocking<T>& plan_;
  Source& source_;
  T* const copied_a_;
  T* const packed_b_;
  T* const partial_;
  work_range strips_{}, band_{};
  bool second_a_{}, second_b_{};  // which of two areas is next
  side_copy<T> copy_a_, copy_b_;  // of the next block and strip
  side_prefetch prefetch_b_;
  std::array<const void*, most_lines> listed_;
  alignas(64) T tile_[blocking<T>::tile_rows * tile_columns];
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
  const int tall = plan.row_tiles;
  for (int first = units.first; first < units.last;) {
    const int strip = first / tall, row = first % tall;
    work_range rows{row, tall}, strips{strip, strip + 1};
    if (row == 0 && units.last - first >= tall) {
      strips.last = strip + (units.last - first) / tall;
    } else {
      rows.last = std::min(tall, row + units.last - first);
    }
    multiply_tiles(plan, rows, strips, source, scratch);
    first += rows.size() * strips.size();
  }
}

}  // namespace cella::cpu::detail
