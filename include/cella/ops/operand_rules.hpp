// What each operation asks of operands and options, beside what its type rule says: the conditions
// that its public function checks, once more as functions of a node.
#pragma once

#include <algorithm>
#include <array>
#include <cella/ops/list.hpp>
#include <cstdint>

namespace cella::detail {

/// A node with the types of its operands.
struct application {
  const graph& g;
  node_id id{};
  const node& n;
  list<tensor_type> in;

  template <class Options>
  Options as() const {
    return n.attributes.as<Options>();
  }
  const shape& of(int k) const { return in[std::size_t(k)].shape; }
  int rank(int k = 0) const { return of(k).rank; }
  bool same_shape(int i, int j) const { return of(i) == of(j); }
  bool same(int i, int j) const { return in[std::size_t(i)] == in[std::size_t(j)]; }
  bool whole(int k) const { return is_integer(in[std::size_t(k)].element); }
};

constexpr bool is_flat(dtype t) { return size_of(t) > 0; }
constexpr bool is_axis(std::int64_t axis, int rank) { return 0 <= axis && axis < rank; }
/// Whether the list names `count` different axes below `limit`, and ends.
constexpr bool names_axes(const iteration_space::axes& axes, int count, int limit) {
  unsigned seen = 0;
  for (int i = 0; i < max_rank; ++i) {
    const int a = axes[std::size_t(i)];
    if (i >= count ? a != iteration_space::none : !is_axis(a, limit) || (seen >> a & 1))
      return false;
    if (i < count) seen |= 1u << a;
  }
  return true;
}

// ---- array, reductions, products

inline bool fits_transpose(const application& a) {
  return names_axes(a.as<transpose_op::options>().permutation, a.rank(), a.rank());
}
inline bool fits_reshape(const application& a) {
  return a.as<reshape_op::options>().shape.size() == a.of(0).size();
}
inline bool fits_iota(const application& a) {
  const auto o = a.as<iota_op::options>();
  return is_axis(o.axis, o.shape.rank) && is_flat(dtype(o.element));
}
inline bool fits_complex(const application& a) {
  const dtype t = a.in[0].element;
  return a.same(0, 1) && (t == dtype::f32 || t == dtype::f64);
}
inline bool fits_part(const application& a) { return is_complex(a.in[0].element); }
inline bool fits_broadcast(const application& a) {
  const auto o = a.as<broadcast_op::options>();
  if (!names_axes(o.axes, a.rank(), o.shape.rank)) return false;
  for (int d = 0; d < a.rank(); ++d)
    if (a.of(0)[d] != o.shape[o.axes[std::size_t(d)]]) return false;
  return true;
}
inline bool fits_fold(const application& a) { return a.as<axes_options>().axes >> a.rank() == 0; }
inline bool fits_axis(const application& a) { return is_axis(a.as<axis_options>().axis, a.rank()); }
inline bool fits_matmul(const application& a) {
  const auto o = a.as<matmul_op::options>();
  std::array<int, 2 * max_rank> extent{};
  extent.fill(-1);
  const int most = int(extent.size());
  for (int k = 0; k < 2; ++k) {
    const auto& axes = k == 0 ? o.a : o.b;
    if (!names_axes(axes, a.rank(k), most)) return false;
    for (int d = 0; d < a.rank(k); ++d) {
      int& e = extent[std::size_t(axes[std::size_t(d)])];
      if (e >= 0 && e != a.of(k)[d]) return false;
      e = a.of(k)[d];
    }
  }
  const auto count = std::ranges::find(extent, -1) - extent.begin();  // there are no gaps
  if (std::any_of(extent.begin() + count, extent.end(), [](int e) { return e >= 0; })) return false;
  const auto end = std::ranges::find(o.result, iteration_space::none) - o.result.begin();
  return names_axes(o.result, int(end), int(count)) && a.in[0].element == a.in[1].element;
}

// ---- windows

inline bool is_sound(const window& w) {
  bool sound = w.groups >= 1;
  for (std::size_t d = 0; d < 2; ++d)
    sound = sound && w.stride[d] >= 1 && w.dilation[d] >= 1 && w.before[d] >= 0 && w.after[d] >= 0;
  return sound;
}
/// Whether windows of these taps have `places` positions along axis `d` of an image.
inline bool takes_places(const window& w, int extent, int taps, std::size_t d, int places) {
  return extent >= 0 && taps >= 1 && w.padded(extent, d) >= w.dilated(taps, d) &&
         (w.padded(extent, d) - w.dilated(taps, d)) / w.stride[d] + 1 == places;
}
/// A convolution by the shapes of image, filter and result.
inline bool fits_walk(const window& w, const shape& x, const shape& f, const shape& y) {
  return is_sound(w) && x.rank == 4 && f.rank == 4 && y.rank == 4 && x[0] == y[0] && y[1] == f[0] &&
         f[0] % w.groups == 0 && std::int64_t{f[1]} * w.groups == x[1] &&
         takes_places(w, x[2], f[2], 0, y[2]) && takes_places(w, x[3], f[3], 1, y[3]);
}
/// `image`, `filter`, `result`: which operands they are; 2 is the node's result.
template <int Image, int Filter, int Result>
bool fits_convolution(const application& a) {
  if (a.rank(0) != 4 || a.rank(1) != 4 || a.in[0].element != a.in[1].element) return false;
  const auto of = [&](int k) { return k < 2 ? a.of(k) : a.n.type.shape; };
  return fits_walk(a.as<convolution_options>().window, of(Image), of(Filter), of(Result));
}
/// A pool by the shapes of the image and of its windows.
inline bool fits_pool(const application& a, const shape& image, const shape& windows) {
  const auto o = a.as<pooling_options>();
  return is_sound(o.window) && image.rank == 4 && windows.rank == 4 && image[0] == windows[0] &&
         image[1] == windows[1] && o.kernel[0] >= 1 && o.kernel[1] >= 1 &&
         std::int64_t{o.kernel[0]} * o.kernel[1] <= (std::int64_t{1} << 30) &&
         takes_places(o.window, image[2], o.kernel[0], 0, windows[2]) &&
         takes_places(o.window, image[3], o.kernel[1], 1, windows[3]);
}
/// The same where a byte tells the place of an element in its window.
inline bool fits_places(const application& a, const shape& image, const shape& windows) {
  const auto o = a.as<pooling_options>();
  return fits_pool(a, image, windows) && std::int64_t{o.kernel[0]} * o.kernel[1] <= 256;
}
inline bool fits_max_pool(const application& a) {
  return a.n.result_count == 2 && fits_places(a, a.of(0), a.g.result_type(a.id, 0).shape);
}
inline bool fits_unpool(const application& a) {
  return a.in[1] == tensor_type{dtype::u8, a.of(0)} && fits_places(a, a.n.type.shape, a.of(0));
}
inline bool fits_pool_gather(const application& a) {
  return a.in[1].element == dtype::u8 && fits_places(a, a.of(0), a.of(1));
}
inline bool fits_average(const application& a) { return fits_pool(a, a.of(0), a.n.type.shape); }
inline bool fits_spread(const application& a) { return fits_pool(a, a.n.type.shape, a.of(0)); }

// ---- normalization, sequences

inline bool fits_batch_norm(const application& a) {
  const std::size_t images = a.in.size() == 3 ? 1 : 2;
  bool fits = a.rank() >= 2 && a.same_shape(0, int(images) - 1);
  for (std::size_t k = 0; fits && k < a.in.size(); ++k)
    fits = is_floating(a.in[k].element) && (k < images || a.of(int(k)) == shape{a.of(0)[1]});
  return fits;
}
inline bool fits_cross_entropy(const application& a) {
  return a.rank() == 2 && a.of(1) == shape{a.of(0)[0]} && a.whole(1) &&
         is_floating(a.in[0].element);
}
inline bool fits_recurrence(const application& a) { return a.same(0, 1) && fits_axis(a); }

// ---- places that data say, slices

inline bool fits_one_hot(const application& a) {
  const auto o = a.as<one_hot_op::options>();
  return a.whole(0) && a.rank() < max_rank && o.depth >= 0 && is_flat(dtype(o.element));
}
inline bool fits_gather(const application& a) {
  const auto o = a.as<indexing_options>();
  return is_axis(o.axis, a.rank()) && o.extent == a.of(0)[o.axis] && o.indices == a.rank(1) &&
         a.rank() + a.rank(1) - 1 <= max_rank && a.whole(1);
}
inline bool fits_scatter(const application& a) {
  const auto o = a.as<indexing_options>();
  if (o.axis < 0 || o.extent < 0 || o.indices != a.rank(1) || !a.whole(1)) return false;
  if (a.rank() - a.rank(1) + 1 > max_rank || o.axis > a.rank() - a.rank(1)) return false;
  for (int d = 0; d < a.rank(1); ++d)
    if (a.of(0)[o.axis + d] != a.of(1)[d]) return false;
  return true;
}
/// Whether `part` has no more elements than `all` along each axis but this one.
inline bool lies_in(const shape& part, const shape& all, int axis) {
  bool inside = part.rank == all.rank && is_axis(axis, all.rank);
  for (int d = 0; inside && d < all.rank; ++d) inside = d == axis || part[d] <= all[d];
  return inside;
}
inline bool fits_gather_elements(const application& a) {
  return lies_in(a.of(1), a.of(0), a.as<indexing_options>().axis) && a.whole(1);
}
inline bool fits_scatter_elements(const application& a) {
  const auto o = a.as<scatter_elements_op::options>();
  return a.same_shape(0, 1) && lies_in(a.of(0), o.shape, o.axis) && a.whole(1);
}
inline bool fits_slice(const slice_op::options& o, const shape& all, const shape& part) {
  if (all.rank != part.rank) return false;
  for (int d = 0; d < all.rank; ++d) {
    if (part[d] == 0) continue;
    const std::int64_t first = o.start[std::size_t(d)];
    const std::int64_t last = first + std::int64_t{o.step[std::size_t(d)]} * (part[d] - 1);
    if (!is_axis(first, all[d]) || !is_axis(last, all[d])) return false;
  }
  return true;
}
inline bool fits_slice(const application& a) {
  const auto o = a.as<slice_op::options>();
  return fits_slice(o, a.of(0), o.shape);
}
inline bool fits_scatter_slice(const application& a) {
  const auto o = a.as<slice_op::options>();
  return fits_slice(o, o.shape, a.of(0));
}
inline bool fits_concat(const application& a) {
  const int axis = a.as<concat_op::options>().axis;
  if (a.in.empty() || !is_axis(axis, a.rank())) return false;
  std::int64_t sum = 0;
  for (const tensor_type& t : a.in) {
    if (t.element != a.in[0].element || t.rank() != a.rank()) return false;
    for (int d = 0; d < t.rank(); ++d)
      if (d != axis && t[d] != a.of(0)[d]) return false;
    sum += t[axis];
  }
  return sum == a.n.type.shape[axis];
}

// ---- random numbers

inline bool is_key(const application& a) {
  return a.in[0].element == dtype::i64 && a.rank() >= 1 && a.of(0)[a.rank() - 1] == 2;
}
inline bool fits_random_key(const application& a) {
  const auto o = a.as<random_key_op::options>();
  return is_key(a) && o.count >= 0 && (o.count == 0 || a.rank() < max_rank);
}
inline bool begins_with(const shape& s, const shape& lead, int count) {
  return count <= s.rank && std::equal(lead.begin(), lead.begin() + count, s.begin());
}
inline bool fits_random_uniform(const application& a) {
  const auto o = a.as<random_uniform_op::options>();
  return is_key(a) && begins_with(o.shape, a.of(0), a.rank() - 1) && is_floating(dtype(o.element));
}

// ---- regions: what their `validate` takes for granted

inline bool fits_scan(const application& a) {
  const auto o = a.as<scan_options>();
  const region& r = a.g.regions[std::size_t(a.n.regions[0])];
  bool fits = o.carries >= 0 && o.xs >= 0 && o.carries <= a.n.result_count;
  for (std::int64_t k = o.carries; fits && k < std::int64_t{o.carries} + o.xs; ++k)
    fits =
        k < std::int64_t(r.inputs.size()) && a.g.type(r.inputs[std::size_t(k)]).rank() < max_rank;
  for (int k = o.carries; fits && k < a.n.result_count; ++k)
    fits = a.g.result_type(a.id, k).rank() > 0;
  return fits;
}
inline bool fits_custom(const application& a) {
  const region& function = a.g.regions[std::size_t(a.n.regions[0])];
  const region& rule = a.g.regions[std::size_t(a.n.regions[1])];
  const std::size_t arguments = std::size_t(std::max(0, a.as<custom_options>().arguments));
  const std::size_t results = std::size_t(a.n.result_count), count = a.in.size();
  bool fits = a.as<custom_options>().arguments >= 0 && arguments <= count &&
              function.inputs.size() == count && function.outputs.size() == results &&
              rule.outputs.size() == arguments && rule.inputs.size() == count + 2 * results;
  for (std::size_t k = 0; fits && k < count; ++k) fits = a.g.type(function.inputs[k]) == a.in[k];
  for (std::size_t k = 0; fits && k < results; ++k)
    fits = a.g.type(function.outputs[k]) == a.g.result_type(a.id, int(k));
  for (std::size_t k = 0; fits && k < rule.inputs.size(); ++k) {
    const std::size_t behind = arguments + 2 * results;
    const tensor_type wanted = k < arguments ? a.in[k]
                               : k < behind  ? a.g.result_type(a.id, int((k - arguments) % results))
                                             : a.in[k - 2 * results];
    fits = a.g.type(rule.inputs[k]) == wanted;
  }
  for (std::size_t k = 0; fits && k < arguments; ++k) fits = a.g.type(rule.outputs[k]) == a.in[k];
  return fits;
}
inline bool fits_pack(const application& a) {
  const shape lead = a.as<record_options>().shape;
  return std::ranges::all_of(
      a.in, [&](const tensor_type& t) { return begins_with(t.shape, lead, lead.rank); });
}
inline bool fits_unpack(const application& a) {
  const shape lead = a.as<record_options>().shape;
  bool fits = a.in[0] == tensor_type{dtype::record, lead};
  for (int k = 0; fits && k < a.n.result_count; ++k)
    fits = begins_with(a.g.result_type(a.id, k).shape, lead, lead.rank);
  return fits;
}
inline bool fits_always(const application&) { return true; }

}  // namespace cella::detail
