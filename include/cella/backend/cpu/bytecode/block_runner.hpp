// Runs a line as data on blocks of elements that stay in the nearest cache.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/element_walk.hpp>
#include <cella/backend/cpu/bytecode/line_code.hpp>
#include <cella/backend/cpu/loops/addresses.hpp>
#include <cella/backend/cpu/loops/epilogue.hpp>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cella/plan/memory.hpp>
#include <cstdint>
#include <limits>
#include <tuple>

namespace cella::cpu {

/// Where the reads and outputs of a step lie; how many there are is known at run time.
template <class T>
using step_addresses = addresses<T, int(std::tuple_size_v<decltype(plan_step::reads)>),
                                 int(std::tuple_size_v<decltype(plan_step::outputs)>)>;

/// No lanes are dead: tensors that are not in the lanes, and batches that fill them.
inline constexpr dead_lanes no_dead_lanes{std::numeric_limits<std::int64_t>::max() / 64, ~0u};

/// The numbers of a line's block runs: one object for each thread's part of a kernel call.
template <class T>
class block_runner {
  using code = line_code<T>;
  using instruction = typename code::instruction;

 public:
  static constexpr int L = lanes<T>;
  /// Elements side by side: whole vectors of a block, of which the last may be partly used.
  struct segment {
    int first_vector{}, elements{};
    constexpr int vectors() const { return (elements + L - 1) / L; }
  };
  /// Elements of several rows of results, plain or in blocks of channels: they begin at `offset`,
  /// which is row (or block) `row`, column `column` of the result, rows being `row_step` apart.
  /// They are rows of the result, too, or all of the same one, in stretch `stretch`.
  struct rectangle {
    int rows{}, elements{};
    std::int64_t offset{}, row_step{}, row{}, column{};
    bool same_row = false;
    std::int64_t stretch{};
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
           align_up(values * std::int64_t(sizeof(placed_read<T>))) +
           align_up(std::int64_t(line.links().size() * sizeof(chain_link<T>))) +
           std::int64_t(line.slots()) * block_elements(line) * std::int64_t(sizeof(T));
  }

  /// `scratch` is aligned to a vector. What is stored into dead lanes is zero.
  block_runner(const code& line, const plan_step& s, const step_addresses<T>& a, std::byte* scratch,
               layout form = layout::plain, dead_lanes dead = no_dead_lanes)
      : line_(line), s_(s), a_(a), form_(form), dead_(dead), block_(block_elements(line)) {
    const auto values = std::int64_t(line.values().size());
    operands_ = reinterpret_cast<block_operand<T>*>(scratch);
    scratch += align_up(values * std::int64_t(sizeof(block_operand<T>)));
    repeated_ = reinterpret_cast<T*>(scratch);
    scratch += align_up(values * L * std::int64_t(sizeof(T)));
    placed_ = reinterpret_cast<placed_read<T>*>(scratch);
    scratch += align_up(values * std::int64_t(sizeof(placed_read<T>)));
    links_ = reinterpret_cast<chain_link<T>*>(scratch);
    for (std::size_t k = 0; k < line.links().size(); ++k) {
      const planned_link& p = line.links()[k];
      links_[k] = {p.code, operands_ + std::max(p.x, 0), operands_ + std::max(p.y, 0)};
      if (p.instruction >= 0)
        links_[k].options = &line.instructions()[std::size_t(p.instruction)].options;
    }
    scratch += align_up(std::int64_t(line.links().size() * sizeof(chain_link<T>)));
    slots_ = reinterpret_cast<T*>(scratch);
    for (std::size_t v = 0; v < line.values().size(); ++v) {
      const auto& x = line.values()[v];
      operands_[v] = {x.slot >= 0 ? slot(x.slot) : nullptr, L, 0};
      if (x.from == code::source::number) set_number(v, static_cast<T>(x.literal));
      placed_[v] = x.from == code::source::read ? find_place(v, x) : placed_read<T>{};
    }
  }

  int block() const { return block_; }
  /// Whether rows of whole vectors may be longer than a block: what they read and what is computed
  /// from it in one go lies in memory, and nothing in a slot.
  bool keeps_nothing() const {
    if (form_ != layout::plain || line_.stretches().size() > 1) return false;
    for (const auto& i : line_.instructions()) {
      if (i.direct < 0 && line_.values()[std::size_t(i.result)].slot >= 0) return false;
    }
    for (const auto& x : line_.values()) {
      if (x.from != code::source::read) continue;
      const access how = s_.reads[std::size_t(x.index)].how;
      const bool lies = how != access::strided && how != access::drawn;
      if (!lies || is_storage_only(x.stored)) return false;
    }
    return true;
  }
  /// The most rows of so many elements that a rectangle may have.
  int rows_of(std::int64_t elements) const {
    return int(std::max<std::int64_t>(1, block_ / ((elements + L - 1) / L * L)));
  }
  /// The kernel's own values lie there from now on.
  void give(const block_operand<T>& given) { set_source(code::source::given, given, 0); }
  /// The numbers of the rows of the next rectangle: of each a vector for each of `most` rows.
  void give_row_numbers(const T* numbers, int most) {
    set_source(code::source::row_number, {numbers, 0, L}, std::int64_t{most} * L);
  }

  /// Computes the values of some segments. place(read, segment) is the first element that a read of
  /// the step reads for it, step(read) the elements between two of them where they are spaced, or
  /// where they are numbers for vectors.
  /// `single`: the one segment is of whole vectors, and output k may be written at once at
  /// `single(k)`; null if there are several, or dead lanes in it.
  template <class Place, class Step, class Single>
  void compute(span<const segment> segments, Place place, Step step, Single single) {
    const bool whole = segments.size() == 1 && segments[0].elements % L == 0;
    for (std::size_t v = 0; v < line_.values().size(); ++v) {
      const auto& x = line_.values()[v];
      if (x.from == code::source::read) bring(v, x, segments, place, step);
    }
    const int vectors = segments.back().first_vector + segments.back().vectors();
    run_all({1, vectors}, [&](const instruction& i) -> block_result<T> {
      T* to = whole && i.direct >= 0 ? single(i.direct) : nullptr;
      if (!to) to = slot(line_.values()[std::size_t(i.result)].slot);
      return {to, 0};
    });
  }
  /// Computes the values of a rectangle that fits a block, and stores the outputs of which `stored`
  /// has a bit where they belong. It reads plain values and numbers of rows and columns only.
  void compute(const rectangle& r, unsigned stored) {
    const bool whole = r.elements % L == 0;
    const std::int64_t next_row = !r.same_row;
    for (std::size_t v = 0; v < line_.values().size(); ++v) {
      const auto& x = line_.values()[v];
      if (x.from != code::source::read) continue;
      const placed_read<T>& p = placed_[v];
      if (p.at && (whole || p.step == 0)) {
        operands_[v] = {p.at + r.offset * p.offset + r.row * p.row + r.column * p.column, p.step,
                        r.row_step * p.offset + next_row * p.row};
        continue;
      }
      const access how = s_.reads[std::size_t(x.index)].how;
      const rows_in_memory lies =
          how == access::stretch
              ? rows_in_memory{r.stretch, 0}
              : rows_in_memory{place_of_read(how, r.offset, r.row, r.column, row_elements()),
                               place_of_read(how, r.row_step, next_row, 0, row_elements())};
      bring_rows(v, x, {r.rows, r.elements}, lies, no_step);
    }
    run_and_store({r.rows, r.elements, stored}, [&](int) -> rows_in_memory {
      return {r.offset, r.row_step};
    });
  }
  /// Rows of so many elements each, and the outputs that are stored.
  struct rows_to_compute {
    int rows{}, elements{};
    unsigned stored = ~0u;
  };
  /// Where the first of some rows begins, and how far apart they are.
  struct rows_in_memory {
    std::int64_t first{}, apart{};
  };
  /// The same for rows of which read_at(read) and stored_at(output) tell where they lie, step(read)
  /// as above. Slots have room for them, or for a vector of each if the line `keeps_nothing` and
  /// the elements are whole vectors.
  template <class Reads, class Step, class Outputs>
  void compute_rows(const rows_to_compute& n, Reads read_at, Step step, Outputs stored_at) {
    for (std::size_t v = 0; v < line_.values().size(); ++v) {
      const auto& x = line_.values()[v];
      if (x.from == code::source::read) bring_rows(v, x, n, read_at(x.index), step);
    }
    run_and_store(n, stored_at);
  }
  /// Whether elements of an output from `first` on have dead lanes among them.
  bool reaches_dead(std::int64_t first, int elements) const {
    return first + elements > dead_.from * L;
  }
  /// The values of output k, as vectors.
  const block_operand<T>& result(int k) const {
    return operands_[std::size_t(line_.outputs()[std::size_t(k)].value)];
  }
  /// Folds a segment of the only output: take(run) gets runs of vectors, as a `total` wants them.
  template <class Fold, class Take>
  void fold(const segment& g, Take take) const {
    const block_operand<T>& y = result(0);
    fold_run<Fold>(y.at + g.first_vector * y.step, g.elements, take);
  }
  /// The same for row `row` of a rectangle of so many elements.
  template <class Fold, class Take>
  void fold_row(int row, int elements, Take take) const {
    const block_operand<T>& y = result(0);
    fold_run<Fold>(y.at + row * y.row, elements, take);
  }
  /// Stores segments of output k, each at element first(segment) of it.
  template <class First>
  void store_segments(int k, span<const segment> segments, First first_of) const {
    const block_operand<T>& from = result(k);
    with_stored<T>(line_.outputs()[std::size_t(k)].stored, [&]<class S>(S) {
      for (std::size_t s = 0; s < segments.size(); ++s) {
        const segment g = segments[s];
        const T* const at = from.at + g.first_vector * from.step;
        store_elements<S>(k, first_of(int(s)), at, from.step, g.elements);
      }
    });
  }

 private:
  T* slot(int k) const { return slots_ + std::int64_t{k} * block_; }
  void set_number(std::size_t v, T x) {
    T* const at = repeated_ + std::int64_t(v) * L;
    store_unaligned(at, vec<T>(x));
    operands_[v] = {at, 0, 0};
  }
  /// Values from `source` lie there; the next of them `apart` elements on.
  void set_source(typename code::source source, const block_operand<T>& first, std::int64_t apart) {
    for (std::size_t v = 0; v < line_.values().size(); ++v) {
      const auto& x = line_.values()[v];
      if (x.from == source) operands_[v] = {first.at + x.index * apart, first.step, first.row};
    }
  }
  int row_elements() const { return form_ == layout::blocked ? L : 1; }
  placed_read<T> find_place(std::size_t v, const typename code::value& x) {
    const access how = s_.reads[std::size_t(x.index)].how;
    if (is_storage_only(x.stored)) return {};
    const T* const at = a_.in[std::size_t(x.index)] + x.further;
    if (how != access::scalar) return placed_read_of(how, form_, at, L);
    set_number(v, *at);
    return {operands_[v].at};
  }
  /// Runs the line on values that are where operands say.
  template <class Outputs>
  void run_and_store(const rows_to_compute& n, Outputs stored_at) {
    const int vectors = (n.elements + L - 1) / L;
    unsigned missing = n.stored;
    run_all({n.rows, vectors}, [&](const instruction& i) -> block_result<T> {
      if (n.elements % L == 0 && i.direct >= 0 && (n.stored >> i.direct & 1u)) {
        const rows_in_memory to = stored_at(i.direct);
        if (!reaches_dead(to.first + (n.rows - 1) * to.apart, n.elements)) {
          missing &= ~(1u << i.direct);
          return {a_.out[std::size_t(i.direct)] + to.first, to.apart};
        }
      }
      return {slot(line_.values()[std::size_t(i.result)].slot), std::int64_t{vectors} * L};
    });
    for (int k = 0; k < s_.output_count; ++k) {
      if (!(missing >> k & 1u)) continue;
      const block_operand<T>& from = result(k);
      const rows_in_memory to = stored_at(k);
      with_stored<T>(line_.outputs()[std::size_t(k)].stored, [&]<class S>(S) {
        const T* at = from.at;
        for (int j = 0; j < n.rows; ++j, at += from.row)
          store_elements<S>(k, to.first + j * to.apart, at, from.step, n.elements);
      });
    }
  }
  /// Runs the line; what instructions yield belongs at place(instruction).
  template <class Place>
  void run_all(block_extents n, Place place) const {
    for (const line_stretch& s : line_.stretches()) {
      const span<const instruction> all(line_.instructions().data() + s.first,
                                        std::size_t(s.count));
      for (const instruction& i : all) {
        if (line_.values()[std::size_t(i.result)].slot < 0) continue;
        const block_result<T> to = place(i);
        operands_[std::size_t(i.result)] = {to.at, L, to.row};
      }
      if (s.links) {
        if constexpr (runs_chains)
          run_chain<T>(span<const chain_link<T>>(links_ + s.first_link, std::size_t(s.links)), n);
      } else {
        const instruction& i = all[0];
        const block_operand<T>& y = operands_[std::size_t(i.result)];
        i.run(i.options, {const_cast<T*>(y.at), y.row}, &operands_[std::size_t(i.in[0])],
              &operands_[std::size_t(i.in[1])], &operands_[std::size_t(i.in[2])], n);
      }
    }
  }
  template <class Fold, class Take>
  void fold_run(const T* at, int elements, Take take) const {
    const bool same = result(0).step == 0;
    const auto value = [&](std::int64_t i) {
      return load_unaligned(at + (same ? std::int64_t{0} : i));
    };
    const int whole = elements / L * L, rest = elements - whole;
    vec<T> run = fold_terms<Fold, T>(whole, L, value, take);
    if (rest) run = Fold::template fold<T>(run, fold_first<Fold, T>(rest, value(whole)));
    take(run);
  }
  /// Stores elements of output k from `first` on, unless they are there already.
  template <class S>
  void store_elements(int k, std::int64_t first, const T* at, std::int64_t step,
                      int elements) const {
    S* const to = reinterpret_cast<S*>(a_.out[std::size_t(k)]) + first;
    if (std::is_same_v<S, T> && reinterpret_cast<const void*>(to) == at && step) return;
    int i = 0;
    if (reaches_dead(first, elements)) {
      for (; i < elements; i += L, at += step) {
        const bool dead = first + i >= dead_.from * L;
        store_stored(to + i, keep(dead ? dead_.live : first_bits(L), load_unaligned(at)));
      }
    }
    store_run(to + i, at, step, elements - i);
  }
  template <class S>
  static void store_run(S* to, const T* at, std::int64_t step, int elements) {
    int i = 0;
    for (; i + L <= elements; i += L, at += step) store_stored(to + i, load_unaligned(at));
    if (i < elements) store_stored(to + i, load_unaligned(at), elements - i);
  }

  /// Calls f(memory, walk) for a read: where the elements are counted from, and how they lie.
  template <class Step, class F>
  void with_read(const typename code::value& x, Step step, F f) {
    const access how = s_.reads[std::size_t(x.index)].how;
    const element_walk walk = walk_of(how, form_, form_ == layout::plain ? 1 : step(x.index));
    with_stored<T>(is_storage_only(x.stored) ? x.stored : dtype_of<T>, [&]<class S>(S) {
      f(reinterpret_cast<const S*>(a_.in[std::size_t(x.index)]) + x.further, walk);
    });
  }
  template <class Place, class Step>
  void bring(std::size_t v, const typename code::value& x, span<const segment> segments,
             Place place, Step step) {
    if (segments.size() == 1)
      return bring_rows(v, x, {1, segments[0].elements}, {place(x.index, 0), 0}, step);
    with_read(x, step, [&](const auto* from, element_walk walk) {
      T* const to = slot(x.slot);
      for (std::size_t g = 0; g < segments.size(); ++g) {
        bring_together(walk, from, place(x.index, int(g)), step(x.index),
                       to + segments[g].first_vector * L, segments[g].elements,
                       a_.in[std::size_t(x.index)]);
      }
      operands_[v] = {to, L, 0};
    });
  }
  /// The same for rows.
  template <class Step>
  void bring_rows(std::size_t v, const typename code::value& x, const rows_to_compute& n,
                  rows_in_memory at, Step step) {
    with_read(x, step, [&]<class S>(const S* from, element_walk walk) {
      const bool one = walk == element_walk::one;
      if (one && at.apart == 0) return set_number(v, static_cast<T>(from[at.first]));
      if constexpr (std::is_same_v<S, T>) {
        if (walk == element_walk::contiguous && n.elements % L == 0) {
          operands_[v] = {from + at.first, L, at.apart};
          return;
        }
        if (walk == element_walk::vector) {
          operands_[v] = {from + at.first, 0, at.apart};
          return;
        }
      }
      T* const to = slot(x.slot);
      const bool repeats = one || walk == element_walk::vector;
      const int elements = repeats ? L : n.elements;
      const std::int64_t row = (elements + L - 1) / L * L;
      for (int i = 0; i < (at.apart ? n.rows : 1); ++i)
        bring_together(walk, from, at.first + i * at.apart, step(x.index), to + i * row, elements,
                       a_.in[std::size_t(x.index)]);
      operands_[v] = {to, repeats ? 0 : L, at.apart ? row : 0};
    });
  }
  static constexpr auto no_step = [](int) { return std::int64_t{0}; };

  const code& line_;
  const plan_step& s_;
  const step_addresses<T>& a_;
  layout form_;
  dead_lanes dead_;
  int block_;
  block_operand<T>* operands_{};
  T* repeated_{};
  placed_read<T>* placed_{};
  chain_link<T>* links_{};
  T* slots_{};
};

}  // namespace cella::cpu
