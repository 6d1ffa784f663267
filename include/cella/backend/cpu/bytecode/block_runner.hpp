// Runs a line as data on blocks of elements that stay in the nearest cache.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/line_code.hpp>
#include <cella/backend/cpu/loops/addresses.hpp>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cella/plan/memory.hpp>
#include <cstdint>
#include <tuple>

namespace cella::cpu {

/// Where the reads and outputs of a step lie; how many there are is known at run time.
template <class T>
using step_addresses = addresses<T, int(std::tuple_size_v<decltype(plan_step::reads)>),
                                 int(std::tuple_size_v<decltype(plan_step::outputs)>)>;

/// Where a value begins that is read in this way at a place of a result: its offset, row and
/// column; in elements, those of a row being `row_elements`.
constexpr std::int64_t place_of_read(access how, std::int64_t offset, std::int64_t row,
                                     std::int64_t column, std::int64_t row_elements = 1) {
  switch (how) {
    case access::same:
    case access::drawn:
      return offset;
    case access::row:
      return row * row_elements;
    case access::column:
      return column;
    default:
      return 0;
  }
}

/// How elements of a segment follow each other in memory.
enum class element_walk : std::uint8_t {
  contiguous,
  one,      ///< one number for all
  vector,   ///< one vector for each vector of them
  numbers,  ///< one number for each vector of them, evenly spaced
  spaced,
  drawn
};

/// `form`: of the values that a line computes. What is not plain comes in whole vectors, and loops
/// move by `along` elements from one to the next, as `in_elements` has it.
constexpr element_walk walk_of(access how, layout form, std::int64_t along) {
  const bool plain = form == layout::plain;
  switch (how) {
    case access::same:
    case access::column:
      return element_walk::contiguous;
    case access::moving:
      return plain || along != 0 ? element_walk::contiguous : element_walk::vector;
    case access::fixed:
      return plain || along == 0 ? element_walk::one : element_walk::numbers;
    case access::row:
      return form == layout::blocked ? element_walk::vector : element_walk::one;
    case access::strided:
      return element_walk::spaced;
    case access::drawn:
      return element_walk::drawn;
    default:
      return element_walk::one;
  }
}

/// The numbers of a line's block runs: one object for each thread's part of a kernel call.
template <class T>
class block_runner {
  using code = line_code<T>;

 public:
  static constexpr int L = lanes<T>;
  /// Elements side by side: whole vectors of a block, of which the last may be partly used.
  struct segment {
    int first_vector{}, elements{};
    constexpr int vectors() const { return (elements + L - 1) / L; }
  };

  /// Elements of a block, a multiple of a vector's.
  static constexpr int block_elements(const code& line) {
    constexpr int bytes = 24 << 10, least = 4 * L, most = 1024;
    const int each = bytes / int(sizeof(T)) / std::max(1, line.slots());
    return std::clamp(each / L * L, least, most);
  }
  static constexpr std::int64_t scratch_bytes(const code& line) {
    const auto values = std::int64_t(line.values().size());
    return align_up(values * std::int64_t(sizeof(block_operand<T>))) +
           align_up(values * L * std::int64_t(sizeof(T))) +
           std::int64_t(line.slots()) * block_elements(line) * std::int64_t(sizeof(T));
  }

  /// `given`: where the kernel's own values lie, if there are any. `scratch` is aligned to a
  /// vector.
  block_runner(const code& line, const plan_step& s, const step_addresses<T>& a, std::byte* scratch,
               const T* given = nullptr, layout form = layout::plain)
      : line_(line), s_(s), a_(a), form_(form), block_(block_elements(line)) {
    const auto values = std::int64_t(line.values().size());
    operands_ = reinterpret_cast<block_operand<T>*>(scratch);
    scratch += align_up(values * std::int64_t(sizeof(block_operand<T>)));
    repeated_ = reinterpret_cast<T*>(scratch);
    slots_ = reinterpret_cast<T*>(scratch + align_up(values * L * std::int64_t(sizeof(T))));
    for (std::size_t v = 0; v < line.values().size(); ++v) {
      const auto& x = line.values()[v];
      operands_[v] = {x.slot >= 0 ? slot(x.slot) : given, L};
      if (x.from == code::source::number) set_number(v, static_cast<T>(x.literal));
    }
  }

  int block() const { return block_; }
  /// The numbers of the row.
  void row_numbers(const T* numbers) {
    for (std::size_t v = 0; v < line_.values().size(); ++v) {
      const auto& x = line_.values()[v];
      if (x.from == code::source::row_number) set_number(v, numbers[x.index]);
    }
  }

  /// Computes the values of some segments. place(read, segment) is the first element that a read of
  /// the step reads for it, step(read) the elements between two of them where they are spaced, or
  /// where they are numbers for vectors.
  /// `single`: the one segment is of whole vectors, and output k may be written at once at
  /// `single(k)`; null otherwise.
  template <class Place, class Step, class Single>
  void compute(span<const segment> segments, Place place, Step step, Single single) {
    const bool whole = segments.size() == 1 && segments[0].elements % L == 0;
    for (std::size_t v = 0; v < line_.values().size(); ++v) {
      const auto& x = line_.values()[v];
      if (x.from == code::source::read) bring(v, x, segments, whole, place, step);
    }
    const int vectors = segments.back().first_vector + segments.back().vectors();
    for (const auto& i : line_.instructions()) {
      block_operand<T>& result = operands_[std::size_t(i.result)];
      T* to = whole && i.direct >= 0 ? single(i.direct) : nullptr;
      if (!to) to = slot(line_.values()[std::size_t(i.result)].slot);
      result.at = to;
      i.run(i.options, to, &operands_[std::size_t(i.in[0])], &operands_[std::size_t(i.in[1])],
            &operands_[std::size_t(i.in[2])], vectors);
    }
  }
  /// The values of output k, as vectors.
  const block_operand<T>& result(int k) const {
    return operands_[std::size_t(line_.outputs()[std::size_t(k)].value)];
  }
  /// Folds a segment of the only output: take(run) gets runs of vectors, as a `total` wants them.
  template <class Fold, class Take>
  void fold(const segment& g, Take take) const {
    const block_operand<T>& y = result(0);
    const T* const at = y.at + g.first_vector * y.step;
    const auto value = [&](std::int64_t i) {
      return load_unaligned(at + (y.step ? i : std::int64_t{0}));
    };
    const int whole = g.elements / L * L, rest = g.elements - whole;
    vec<T> run = fold_terms<Fold, T>(whole, L, value, take);
    if (rest) run = Fold::template fold<T>(run, fold_first<Fold, T>(rest, value(whole)));
    take(run);
  }
  /// Stores a segment of output k at element `first` of it.
  void store_segment(int k, const segment& g, std::int64_t first) const {
    const block_operand<T>& from = result(k);
    const dtype stored = line_.outputs()[std::size_t(k)].stored;
    code::with_stored(stored, [&]<class S>() {
      S* const to = reinterpret_cast<S*>(a_.out[std::size_t(k)]) + first;
      const T* at = from.at + g.first_vector * from.step;
      if (std::is_same_v<S, T> && reinterpret_cast<const void*>(to) == at && from.step) return;
      int i = 0;
      for (; i + L <= g.elements; i += L, at += from.step) store_stored(to + i, load_unaligned(at));
      if (i < g.elements) store_stored(to + i, load_unaligned(at), g.elements - i);
    });
  }

 private:
  T* slot(int k) const { return slots_ + std::int64_t{k} * block_; }
  void set_number(std::size_t v, T x) {
    T* const at = repeated_ + std::int64_t(v) * L;
    store_unaligned(at, vec<T>(x));
    operands_[v] = {at, 0};
  }

  template <class Place, class Step>
  void bring(std::size_t v, const typename code::value& x, span<const segment> segments, bool whole,
             Place place, Step step) {
    const operand_read& r = s_.reads[std::size_t(x.index)];
    const dtype stored = is_storage_only(x.stored) ? x.stored : dtype_of<T>;
    const element_walk walk = walk_of(r.how, form_, form_ == layout::plain ? 1 : step(x.index));
    code::with_stored(stored, [&]<class S>() {
      const S* const from = reinterpret_cast<const S*>(a_.in[std::size_t(x.index)]) + x.further;
      if (walk == element_walk::one && segments.size() == 1)
        return set_number(v, static_cast<T>(from[place(x.index, 0)]));
      if constexpr (std::is_same_v<S, T>) {
        if (walk == element_walk::contiguous && whole) {
          operands_[v] = {from + place(x.index, 0), L};
          return;
        }
        if (walk == element_walk::vector && segments.size() == 1) {
          operands_[v] = {from + place(x.index, 0), 0};
          return;
        }
      }
      T* const to = slot(x.slot);
      for (std::size_t g = 0; g < segments.size(); ++g) {
        const std::int64_t first = place(x.index, int(g));
        T* const at = to + segments[g].first_vector * L;
        const int n = segments[g].elements;
        if (walk == element_walk::contiguous) {
          int i = 0;
          for (; i + L <= n; i += L) store_unaligned(at + i, load_stored<T>(from + first + i));
          if (i < n) store_unaligned(at + i, load_stored<T>(from + first + i, n - i));
        } else if (walk == element_walk::one) {
          const vec<T> number(static_cast<T>(from[first]));
          for (int i = 0; i < n; i += L) store_unaligned(at + i, number);
        } else if (walk == element_walk::vector) {
          const vec<T> same = load_stored<T>(from + first);
          for (int i = 0; i < n; i += L) store_unaligned(at + i, same);
        } else if (walk == element_walk::numbers) {
          const std::int64_t apart = step(x.index);
          for (int i = 0; i < n; i += L)
            store_unaligned(at + i, vec<T>(static_cast<T>(from[first + i / L * apart])));
        } else if (walk == element_walk::drawn) {
          std::uint64_t key;
          std::memcpy(&key, a_.in[std::size_t(x.index)], sizeof key);
          for (int i = 0; i < n; i += L) store_unaligned(at + i, uniform_vector<T>(key, first + i));
        } else {
          const std::int64_t apart = step(x.index);
          for (int i = 0; i < n; ++i) at[i] = static_cast<T>(from[first + i * apart]);
          // The rest of the last vector is computed with, too.
          for (int i = n; i % L != 0; ++i) at[i] = T(0);
        }
      }
      operands_[v] = {to, L};
    });
  }

  const code& line_;
  const plan_step& s_;
  const step_addresses<T>& a_;
  layout form_;
  int block_;
  block_operand<T>* operands_{};
  T* repeated_{};
  T* slots_{};
};

}  // namespace cella::cpu
