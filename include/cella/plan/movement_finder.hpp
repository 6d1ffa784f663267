// What cuts, joins and repeats tensors (slice, concat, pad, broadcast ...), one after the other, as
// the boxes of elements that it moves: each box of the result is read from one place in memory, or
// is zero.
#pragma once

#include <algorithm>
#include <array>
#include <cella/ops/slicing.hpp>
#include <cella/plan/fusion_groups.hpp>

namespace cella {

/// Finds the boxes of a node, through operations that are computed for it only, or nowhere.
class movement_finder {
 public:
  /// `shared`: also through what is read several times, but by what is moved only.
  constexpr movement_finder(const fusion_groups& groups, node_id n, bool shared)
      : c_(groups), g(groups.g), last_(n), shared_(shared) {
    for (const moved_box& b : moved(n)) {
      if (b.extent.size() > 0) boxes_.push_back(b);
    }
    if (boxes_.size() > most_boxes) boxes_.clear();
  }

  /// None if there are too many.
  constexpr const list<moved_box>& boxes() const { return boxes_; }
  /// What is not computed by itself any more.
  constexpr const ids& inside() const { return inside_; }

  static constexpr std::size_t most_boxes = 12;
  /// Whether boxes can say what `x` does. (Kernels move elements of up to eight bytes.)
  static constexpr bool moves(const node& x) {
    const std::size_t bytes = size_of(x.type.element);
    if (bytes == 0 || bytes > 8) return false;
    if (!is<scatter_slice_op>(x)) return is<concat_op>(x) || is<slice_op>(x) || is<broadcast_op>(x);
    const auto o = x.attributes.as<slice_op::options>();
    for (int d = 0; d < x.type.rank(); ++d) {
      if (o.step[std::size_t(d)] != 1) return false;
    }
    return true;
  }

 private:
  using box_list = list<moved_box>;

  constexpr box_list leaf(node_id n) const {
    const shape whole = g.type(n).shape;
    return box_list(1, {n, 0, whole, {}, row_major_strides(whole)});
  }
  /// Whether all that read `n` are moved with it, as far as can be seen with some patience.
  constexpr bool only_here(node_id n) {
    if (c_.is_output(n) || c_.claimed(n) || --patience_ < 0) return false;
    if (!shared_ && c_.only_user(n) < 0) return false;
    for (node_id u : c_.users(n)) {
      const bool passes = c_.is_alias(u) || moves(c_.at(u));
      if (u != last_ && !(passes && only_here(u))) return false;
    }
    return true;
  }
  /// The boxes of operand `n` of a node whose boxes are found.
  constexpr box_list operand(node_id n) {
    for (const found& f : found_) {
      if (f.value == n) return f.boxes;
    }
    box_list all = boxes_of(n);
    found_.emplace_back();
    found_.back().value = n;
    found_.back().boxes = all;
    return all;
  }
  constexpr box_list boxes_of(node_id n) {
    const bool alias = c_.is_alias(n);
    if (alias && only_here(n)) return reshaped(n);
    const bool nowhere = c_.is_view(n) && !c_.is_output(n);
    if (alias || !moves(c_.at(n)) || c_.is_assembled(n) || !(nowhere || only_here(n)))
      return leaf(n);
    const std::size_t before = inside_.size();
    box_list all = moved(n);
    if (all.empty()) {
      inside_.resize(before);
      return leaf(n);
    }
    if (!c_.is_view(n)) inside_.push_back(n);
    return all;
  }
  constexpr box_list moved(node_id n) {
    const node& x = c_.at(n);
    box_list all;
    if (is<concat_op>(x)) {
      const auto axis = std::size_t(x.attributes.as<concat_op::options>().axis);
      std::int64_t before = 0;
      for (node_id o : g.operands(n)) {
        for (moved_box b : operand(o)) {
          b.start[axis] += before;
          all.push_back(b);
        }
        before += g.type(o)[int(axis)];
        if (all.size() > most_boxes) return {};
      }
      return all;
    }
    all = operand(g.operand(n, 0));
    if (is<slice_op>(x)) return sliced(all, x);
    if (is<broadcast_op>(x)) return repeated(std::move(all), x);
    return padded(std::move(all), n);
  }

  static constexpr box_list sliced(const box_list& all, const node& x) {
    const auto o = x.attributes.as<slice_op::options>();
    box_list kept;
    for (moved_box b : all) {
      bool any = true;
      for (int d = 0; d < x.type.rank(); ++d) {
        const auto k = std::size_t(d);
        // Index i of the slice is first + i by of the operand; those in the box are [low, end).
        const std::int64_t first = o.start[k] - b.start[k], by = o.step[k], size = b.extent[d];
        const auto reaches = [&](std::int64_t place) {  // the first i that is not before `place`
          const std::int64_t way = by > 0 ? place - first : first - place;
          const std::int64_t length = by > 0 ? by : -by;
          return std::clamp<std::int64_t>((way + length - 1) / length * (way > 0), 0, x.type[d]);
        };
        const std::int64_t low = by > 0 ? reaches(0) : reaches(size - 1);
        const std::int64_t end = by > 0 ? reaches(size) : reaches(-1);
        any = any && low < end;
        b.origin += (first + low * by) * b.step[k];
        b.start[k] = low;
        b.extent[d] = int(end - low);
        b.step[k] *= by;
      }
      if (any) kept.push_back(b);
    }
    return kept;
  }
  static constexpr box_list repeated(box_list all, const node& x) {
    const auto axes = x.attributes.as<broadcast_op::options>().axes;
    for (moved_box& b : all) {
      moved_box wide{b.from, b.origin, x.type.shape, {}, {}};
      for (int d = 0; d < b.extent.rank; ++d) {
        const auto to = std::size_t(axes[std::size_t(d)]);
        wide.extent[int(to)] = b.extent[d];
        wide.start[to] = b.start[std::size_t(d)];
        wide.step[to] = b.step[std::size_t(d)];
      }
      b = wide;
    }
    return all;
  }
  /// Zeros round what the boxes make up.
  constexpr box_list padded(box_list all, node_id n) const {
    const auto o = c_.at(n).attributes.as<slice_op::options>();
    const shape whole = g.type(n).shape, inner = g.type(g.operand(n, 0)).shape;
    for (moved_box& b : all) {
      for (std::size_t d = 0; d < std::size_t(inner.rank); ++d) b.start[d] += o.start[d];
    }
    moved_box zeros{no_node, 0, whole, {}, {}};
    for (int d = 0; d < inner.rank; ++d) {
      const auto k = std::size_t(d);
      const std::int64_t end = o.start[k] + inner[d];
      for (const auto& [from, to] : {std::pair{std::int64_t{0}, std::int64_t{o.start[k]}},
                                     std::pair{end, std::int64_t{whole[d]}}}) {
        if (from == to) continue;
        zeros.start[k] = from;
        zeros.extent[d] = int(to - from);
        all.push_back(zeros);
      }
      zeros.start[k] = o.start[k];
      zeros.extent[d] = inner[d];
    }
    return all;
  }
  /// Axes of one element come and go; other reshapes are read in memory.
  constexpr box_list reshaped(node_id n) {
    const node_id from = g.operand(n, 0);
    const shape a = g.type(from).shape, b = g.type(n).shape;
    std::array<int, max_rank> axis{};
    int i = 0;
    for (int d = 0; d < b.rank; ++d) {
      axis[std::size_t(d)] = -1;
      if (b[d] == 1) continue;
      while (i < a.rank && a[i] == 1) ++i;
      if (i == a.rank || a[i] != b[d]) return leaf(n);
      axis[std::size_t(d)] = i++;
    }
    while (i < a.rank && a[i] == 1) ++i;
    if (i < a.rank) return leaf(n);
    box_list all = operand(from);
    for (moved_box& box : all) {
      moved_box y{box.from, box.origin, b, {}, {}};
      for (std::size_t d = 0; d < std::size_t(b.rank); ++d) {
        if (axis[d] < 0) continue;
        y.extent[int(d)] = box.extent[axis[d]];
        y.start[d] = box.start[std::size_t(axis[d])];
        y.step[d] = box.step[std::size_t(axis[d])];
      }
      box = y;
    }
    return all;
  }

  const fusion_groups& c_;
  const graph& g;
  node_id last_;
  bool shared_;
  int patience_ = 256;
  struct found {
    node_id value = no_node;
    box_list boxes;
  };
  list<found> found_;
  ids inside_;
  box_list boxes_;
};

}  // namespace cella
