// Elements in other places: moved, repeated, rotated, laid out in blocks, without repetitions.
#pragma once

#include <cella/ops/indexing.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/sorting.hpp>

namespace cella {

/// Axis `from` at the place `to`; the others keep their order.
constexpr var move_axis(operand x, int from, int to) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("move_axis", v, from, x.at());
  const int z = detail::find_axis("move_axis", v, to, x.at());
  if (a < 0 || z < 0 || a == z) return v;
  std::array<int, max_rank> order{};
  for (int d = 0, next = 0; d < v.rank(); ++d) {
    if (d == z) {
      order[std::size_t(d)] = a;
      continue;
    }
    if (next == a) ++next;
    order[std::size_t(d)] = next++;
  }
  return transpose({v, x.at()}, span<const int>(order.data(), std::size_t(v.rank())));
}
/// Two axes exchanged.
constexpr var swap_axes(operand x, int first, int second) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("swap_axes", v, first, x.at());
  const int z = detail::find_axis("swap_axes", v, second, x.at());
  if (a < 0 || z < 0 || a == z) return v;
  std::array<int, max_rank> order{};
  for (int d = 0; d < v.rank(); ++d) order[std::size_t(d)] = d == a ? z : d == z ? a : d;
  return transpose({v, x.at()}, span<const int>(order.data(), std::size_t(v.rank())));
}

/// The permutation that undoes one of 0 ... N - 1: y[p[i]] = i.
constexpr var invert_permutation(operand p) {
  const var v = p.in(*p.owner());
  if (v.rank() != 1 || !is_integer(v.element())) {
    v.b->fail(text() << p.at() << ": invert_permutation: " << v.b->describe(v.id) << " is "
                     << v.type() << "; it needs a vector of integers");
    return v;
  }
  return scatter(iota(*v.b, v.type(), 0), p, v.extent(0));
}

/// Each element `count` times, one beside the other along an axis.
constexpr var repeat(operand x, int count, int axis) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("repeat", v, axis, x.at());
  if (a < 0) return v;
  shape s = v.shape();
  if (count < 1 || s.rank == max_rank) {
    v.b->fail(text() << x.at() << ": repeat: the elements of " << v.b->describe(v.id) << " " << s
                     << " cannot be repeated " << count << " times; a tensor of at most "
                     << max_rank - 1 << " axes can, once or more");
    return v;
  }
  shape wide = s;
  wide.insert(a + 1, count);
  s[a] *= count;
  return reshape(broadcast_to(expand_dims({v, x.at()}, a + 1), wide), s);
}

/// Elements moved on by `by` places along an axis; what leaves at one end enters at the other.
constexpr var roll(operand x, int by, int axis) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("roll", v, axis, x.at());
  if (a < 0 || v.extent(a) == 0) return v;
  const int n = v.extent(a), k = (by % n + n) % n;
  if (k == 0) return v;
  return concat({slice({v, x.at()}, a, n - k, n), slice({v, x.at()}, a, 0, n - k)}, a, x.at());
}

/// Each matrix of the last two axes turned by `quarters` of a circle, against the clock.
constexpr var rot90(operand x, int quarters = 1) {
  const var v = x.in(*x.owner());
  if (v.rank() < 2) {
    v.b->fail(text() << x.at() << ": rot90: needs a matrix: " << v.b->describe(v.id) << " is "
                     << v.shape());
    return v;
  }
  switch ((quarters % 4 + 4) % 4) {
    case 1:
      return reverse(swap_axes(x, -1, -2), -2);
    case 2:
      return reverse(x, {-1, -2});
    case 3:
      return reverse(swap_axes(x, -1, -2), -1);
    default:
      return v;
  }
}

/// The vectors' elements at each point of the grid that they span: of n vectors n tensors of n
/// axes. `matrix_order` has axis i for vector i ("ij"); without it the first two are exchanged
/// ("xy").
constexpr list<var> meshgrid(std::initializer_list<var> vectors, bool matrix_order = true) {
  const int n = int(vectors.size());
  list<var> all;
  shape s;
  for (const var& v : vectors) {
    if (v.rank() != 1 || n > max_rank) {
      v.b->fail(text() << "meshgrid: needs at most " << max_rank
                       << " vectors: " << v.b->describe(v.id) << " is " << v.shape());
      return list<var>(vectors.begin(), vectors.end());
    }
    s.push_back(v.extent(0));
  }
  const bool exchanged = !matrix_order && n > 1;
  if (exchanged) std::swap(s[0], s[1]);
  int i = 0;
  for (const var& v : vectors) {
    shape along;
    const int axis = exchanged && i < 2 ? 1 - i : i;
    for (int d = 0; d < n; ++d) along.push_back(d == axis ? s[d] : 1);
    all.push_back(broadcast_to(reshape(v, along), s));
    ++i;
  }
  return all;
}

/// Pads with the elements mirrored at the borders; the first and the last one are repeated.
constexpr var pad_symmetric(operand x, const axis_list& before, const axis_list& after) {
  if (!detail::has_widths(x, "pad_symmetric", before, after, "none above the extent",
                          [](int n) { return n; }))
    return x.in(*x.owner());
  return detail::join_edges(x, before, after, [&](var y, int axis, int width, bool end) {
    const int n = y.extent(axis);
    return reverse(slice({y, x.at()}, axis, end ? n - width : 0, end ? n : width), axis);
  });
}
/// Pads with the elements of the other end, as if the tensor went round.
constexpr var pad_wrap(operand x, const axis_list& before, const axis_list& after) {
  if (!detail::has_widths(x, "pad_wrap", before, after, "none above the extent",
                          [](int n) { return n; }))
    return x.in(*x.owner());
  return detail::join_edges(x, before, after, [&](var y, int axis, int width, bool end) {
    const int n = y.extent(axis);
    return slice({y, x.at()}, axis, end ? 0 : n - width, end ? width : n);
  });
}

/// Images [N,C,H,W] cut into blocks whose pixels become images of the batch, after padding with
/// zeros: [N b^2,C,H/b,W/b], the place in a block in front of N.  (TensorFlow's space_to_batch)
constexpr var space_to_batch(operand image, int block, std::array<int, 2> before = {0, 0},
                             std::array<int, 2> after = {0, 0}) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (x.rank() != 4 || block < 1 || (x.extent(2) + before[0] + after[0]) % block ||
      (x.extent(3) + before[1] + after[1]) % block) {
    b.fail(text() << image.at() << ": space_to_batch: blocks of " << block
                  << " pixels do not divide the padded image: " << b.describe(x.id) << " is "
                  << x.shape());
    return x;
  }
  const var padded = pad(image, {0, 0, before[0], before[1]}, {0, 0, after[0], after[1]});
  const auto [n, c, h, w] =
      std::array{x.extent(0), x.extent(1), padded.extent(2) / block, padded.extent(3) / block};
  const var blocks = reshape({padded, image.at()}, {n, c, h, block, w, block});
  return reshape(transpose(blocks, {3, 5, 0, 1, 2, 4}), {block * block * n, c, h, w});
}
/// The inverse of `space_to_batch`, whose borders are cut off: [N b^2,C,H,W] -> [N,C,H b,W b].
constexpr var batch_to_space(operand image, int block, std::array<int, 2> before = {0, 0},
                             std::array<int, 2> after = {0, 0}) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (x.rank() != 4 || block < 1 || x.extent(0) % (block * block)) {
    b.fail(text() << image.at() << ": batch_to_space: blocks of " << block
                  << " pixels do not divide the batch: " << b.describe(x.id) << " is "
                  << x.shape());
    return x;
  }
  const auto [n, c, h, w] =
      std::array{x.extent(0) / (block * block), x.extent(1), x.extent(2), x.extent(3)};
  const var blocks = reshape(image, {block, block, n, c, h, w});
  const var y = reshape(transpose(blocks, {2, 3, 4, 0, 5, 1}), {n, c, h * block, w * block});
  return strided_slice(y, {0, 0, before[0], before[1]},
                       {n, c, h * block - after[0], w * block - after[1]});
}

/// What `unique` finds.
struct unique_result {
  var values;   ///< [size] in ascending order, behind the last one `fill`
  var counts;   ///< [size] how often each occurs, i64
  var inverse;  ///< of x's shape: where each element stands among the values, i64
  var count;    ///< how many there are, a scalar i64; if more than `size`, the largest are left out
};
/// The different elements of x, at most `size` of them. NaN is different from all, itself included.
constexpr unique_result unique(operand x, int size, double fill = 0) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const std::int64_t n = v.shape().size();
  if (n < 1 || size < 1 || is_complex(v.element()) || v.element() == dtype::boolean) {
    b.fail(text() << x.at() << ": unique: needs numbers that have an order, and room for one: "
                  << b.describe(v.id) << " is " << v.type() << ", the size " << size);
    return {v, v, v, v};
  }
  const var flat = reshape(x, {n});
  const var order = argsort({flat, x.at()}, 0);
  const var ordered = gather(flat, order);
  const int last = int(n);
  // 1 where an element differs from the one before it; their running sum is a place.
  var place = constant(b, 0, {dtype::i64, {n}});
  var is_first = constant(b, 1, {dtype::boolean, {n}});
  if (last > 1) {
    const var differs = not_equal(slice(ordered, 0, 1, last), slice(ordered, 0, 0, last - 1));
    is_first = concat({constant(b, 1, {dtype::boolean, {1}}), differs}, 0);
    place = cumsum(cast(is_first, dtype::i64), 0) - 1;
  }
  const var first_place = select(is_first, place, -1);
  const var taken = scatter(constant(b, 1, {dtype::i64, {n}}), place, size);
  const var values = scatter(ordered, first_place, size);
  return {select(taken > 0, values, full_like(values, fill)), taken,
          reshape(scatter(place, order, last), v.shape()),
          reshape(slice(place, 0, last - 1, last) + 1, shape{})};
}

}  // namespace cella
