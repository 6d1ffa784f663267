// Loop nests: their extents, where the operands of a fused group stand in them, and the way from
// one turn to the next.
#pragma once

#include <array>
#include <cella/backend/cpu/loops/addresses.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

/// The loops of a group, outermost first, and how far each operand moves per turn: in elements, or
/// in lane vectors for operands with the batch in the lanes.
template <int Reads>
struct loop_nest {
  int loops{};
  std::array<std::int64_t, max_loops> size{};
  std::array<std::array<std::int64_t, max_loops>, std::size_t(Reads)> stride{};
  unsigned folded{};  ///< loops that a sum runs over

  constexpr std::int64_t turns(int first, int last) const {
    std::int64_t n = 1;
    for (int d = first; d < last; ++d) n *= size[std::size_t(d)];
    return n;
  }
  constexpr std::int64_t inner() const { return size[std::size_t(loops - 1)]; }
  constexpr bool folds(int d) const { return folded >> d & 1; }
};

template <int Writes>
using output_strides = std::array<std::array<std::int64_t, max_loops>, std::size_t(Writes)>;

/// What terms see inside a loop nest.
template <class T, int Reads, int Writes, bool Lanes, bool Whole = false>
struct loop_cursor {
  const addresses<T, Reads, Writes>& a;
  const std::array<std::int64_t, std::size_t(Reads)>& at;    // where each operand's row begins
  const std::array<std::int64_t, std::size_t(Reads)>& step;  // per turn of the innermost loop
  std::int64_t i;                                            // turn of the innermost loop
  int count;                                                 // plain: valid elements
  vec<T> value{};

  [[gnu::always_inline]] vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  /// Operand K, `further` elements on.
  template <int K, access How, class S>
  [[gnu::always_inline]] vec<T> read(std::int64_t further = 0) const {
    const std::int64_t move = step[std::size_t(K)];
    const auto* p = elements_at<S>(a.in[std::size_t(K)]) + further;
    if constexpr (Lanes) {
      const std::int64_t where = at[std::size_t(K)] + i * move;
      if constexpr (How == access::moving)
        return load_stored<T>(p + where * lanes<T>);
      else
        return vec<T>(static_cast<T>(p[where]));
    } else if constexpr (How == access::drawn) {
      return drawn_at<K, T>(p, at[std::size_t(K)] + i);
    } else if constexpr (How == access::fixed) {
      return vec<T>(static_cast<T>(p[at[std::size_t(K)]]));
    } else if constexpr (How == access::strided) {
      return spread(p + at[std::size_t(K)] + i * move, move);
    } else {
      p += at[std::size_t(K)] + i;
      if constexpr (Whole)
        return load_stored<T>(p);
      else
        return load_stored<T>(p, count);
    }
  }
  template <class S>
  [[gnu::noinline]] vec<T> spread(const S* p, std::int64_t move) const {
    alignas(64) std::array<T, std::size_t(lanes<T>)> row{};
    for (int j = 0; j < count; ++j) row[std::size_t(j)] = static_cast<T>(p[j * move]);
    return load(row.data());
  }
};

namespace detail {

/// Where the operands stand at turn `outer` of the loops [0, last), counted as one. Most often that
/// is the first turn, and nothing is divided.
template <int Reads>
constexpr std::array<std::int64_t, std::size_t(Reads)> positions(const loop_nest<Reads>& n,
                                                                 std::int64_t outer, int last) {
  std::array<std::int64_t, std::size_t(Reads)> at{};
  for (int d = last; d-- > 0 && outer != 0;) {
    const std::int64_t turn = outer % n.size[std::size_t(d)];
    outer /= n.size[std::size_t(d)];
    for (std::size_t k = 0; k < at.size(); ++k) at[k] += turn * n.stride[k][std::size_t(d)];
  }
  return at;
}
/// The same for one output.
template <int Reads>
constexpr std::int64_t position(const loop_nest<Reads>& n,
                                const std::array<std::int64_t, max_loops>& stride,
                                std::int64_t outer) {
  std::int64_t at = 0;
  for (int d = n.loops - 1; d-- > 0 && outer != 0;) {
    at += outer % n.size[std::size_t(d)] * stride[std::size_t(d)];
    outer /= n.size[std::size_t(d)];
  }
  return at;
}
/// The turns of some loops of a nest, counted as one. From turn to turn nothing is divided: that
/// takes longer than a short row. Behind the last turn stands the first.
template <int Reads>
class loop_walk {
 public:
  using positions = std::array<std::int64_t, std::size_t(Reads)>;

  constexpr explicit loop_walk(const loop_nest<Reads>& n) : n_(n) {}
  /// Loop d runs inside those that were added before.
  constexpr void add(int d) {
    loop& l = loops_[std::size_t(count_++)];
    l.size = n_.size[std::size_t(d)];
    for (std::size_t k = 0; k < at_.size(); ++k) {
      l.step[k] = n_.stride[k][std::size_t(d)];
      l.back[k] = (1 - l.size) * l.step[k];
    }
  }
  constexpr std::int64_t turns() const {
    std::int64_t product = 1;
    for (int d = 0; d < count_; ++d) product *= loops_[std::size_t(d)].size;
    return product;
  }
  constexpr void go_to(std::int64_t turn) {
    at_ = {};
    for (int d = count_; d-- > 0;) {
      loop& l = loops_[std::size_t(d)];
      l.turn = turn == 0 ? 0 : turn % l.size;
      turn = turn == 0 ? 0 : turn / l.size;
      for (std::size_t k = 0; k < at_.size(); ++k) at_[k] += l.turn * l.step[k];
    }
  }
  constexpr void next() {
    for (int d = count_; d-- > 0;) {
      loop& l = loops_[std::size_t(d)];
      if (++l.turn < l.size) return move(l.step);
      l.turn = 0;
      move(l.back);
    }
  }
  /// Where the operands stand.
  constexpr const positions& at() const { return at_; }
  /// Whether the outermost loop that was added is in its last turn.
  constexpr bool outermost_ends() const { return loops_[0].turn == loops_[0].size - 1; }

 private:
  struct loop {
    std::int64_t size{};
    std::int64_t turn{};
    positions step{}, back{};  ///< to the next turn, and from the last one to the first
  };
  constexpr void move(const positions& by) {
    for (std::size_t k = 0; k < at_.size(); ++k) at_[k] += by[k];
  }

  const loop_nest<Reads>& n_;
  int count_ = 0;
  std::array<loop, std::size_t(max_loops)> loops_{};
  positions at_{};
};
/// The loops but the innermost one as kept and folded ones. The last one that is folded is left to
/// the caller, who runs it innermost; returns it, or -1.
template <int Reads>
constexpr int split_loops(const loop_nest<Reads>& n, loop_walk<Reads>& kept,
                          loop_walk<Reads>& fold) {
  int last = -1;
  for (int d = 0; d < n.loops - 1; ++d) {
    if (!n.folds(d)) {
      kept.add(d);
    } else {
      if (last >= 0) fold.add(last);
      last = d;
    }
  }
  return last;
}
template <int Reads>
constexpr std::array<std::int64_t, std::size_t(Reads)> inner_steps(const loop_nest<Reads>& n) {
  std::array<std::int64_t, std::size_t(Reads)> s{};
  for (std::size_t k = 0; k < s.size(); ++k) s[k] = n.stride[k][std::size_t(n.loops - 1)];
  return s;
}

}  // namespace detail

}  // namespace cella::cpu
