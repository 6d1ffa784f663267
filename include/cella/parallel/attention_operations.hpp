// Attention and its gradient as one operation each, with one loop for the places of queries, keys
// and values: what ranks divide as a ring. They stand in graphs that are divided, and what ranks
// run in their place is written in block_attention.hpp, ring_attention.hpp and
// paired_attention.hpp.
#pragma once

#include <algorithm>
#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>
#include <cella/parallel/attention_options.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace cella {

namespace detail {

/// Where the numbers of one sequence lie in a tensor: element w of place t at `first + t * step +
/// w`, or that of a query t and a key s at `first + t * step + s * key_step`.
struct sequence_walk {
  std::int64_t first{}, step{}, key_step{};

  std::int64_t at(int place) const { return first + place * step; }
};
inline sequence_walk walk_of(const attention_op_options& o, const shape& s, attention_role role,
                             const multi_index& leads, int count) {
  const auto strides = row_major_strides(s);
  sequence_walk w;
  for (int d = 0; d < count; ++d) {
    const int axis = lead_axis(o, role, d, count);
    if (axis >= 0) w.first += leads[std::size_t(d)] * strides[std::size_t(axis)];
  }
  const int place = place_axis(o, role, count), key = key_axis(o, role, count);
  if (place >= 0) w.step = strides[std::size_t(place)];
  if (key >= 0) w.key_step = strides[std::size_t(key)];
  return w;
}
/// Calls f(what each operand and result is walked like) for each sequence.
template <class F>
void for_each_sequence(const attention_op_options& o, bool gradient, span<const tensor_ref> in,
                       span<const tensor_ref> out, F f) {
  const attention_roles roles = roles_of(o, gradient);
  const shape s = in[0].type.shape;
  shape leads;
  for (int d = 0; d < s.rank - 2; ++d) leads.push_back(s[axis_beside_place(o, d)]);
  std::vector<sequence_walk> walks(in.size() + out.size());
  for_each_index(leads, [&](std::int64_t, const multi_index& i) {
    for (std::size_t t = 0; t < walks.size(); ++t) {
      const tensor_ref& x = t < in.size() ? in[t] : out[t - in.size()];
      walks[t] = walk_of(o, x.type.shape, roles.role[t], i, leads.rank);
    }
    f(walks.data());
  });
}
inline double inner_product(const tensor_ref& x, std::int64_t i, const tensor_ref& y,
                            std::int64_t j, int width) {
  double sum = 0;
  for (int w = 0; w < width; ++w) sum += read_element(x, i + w) * read_element(y, j + w);
  return sum;
}
/// The score of a query and a key; minus infinity if the key is hidden. `first` is the first of the
/// operands that are read for pairs.
inline double score_of(const attention_op_options& o, span<const tensor_ref> in,
                       const sequence_walk* walks, int query, int key, std::size_t first) {
  const auto at = [&](std::size_t t) {
    return walks[t].first + query * walks[t].step + key * walks[t].key_step;
  };
  const double hidden = -std::numeric_limits<double>::infinity();
  if (!o.sees(query, key)) return hidden;
  if (o.mask.given() && read_element(in[first], at(first)) == 0) return hidden;
  const std::size_t bias = first + o.mask.given();
  const int width = in[0].type[in[0].type.rank() - 1];
  return o.scale * inner_product(in[0], walks[0].at(query), in[1], walks[1].at(key), width) +
         (o.bias.given() ? read_element(in[bias], at(bias)) : 0.0);
}

}  // namespace detail

/// Queries, keys, values, and a mask and a bias if the options say so -> softmax(scale q k^T +
/// bias) v, and for each place the logarithm of the sum of e^scores.
struct attention_op : opaque<attention_op>, not_differentiable {
  static constexpr std::string_view name = "attention";
  static constexpr std::string_view formula = "y = softmax(scale q k^T) v, and log sum e^(scores)";
  static constexpr int operations_per_point = 4;
  using options = attention_op_options;
  static constexpr int operands = -1;
  static constexpr int results(span<const tensor_type> in, const attributes& attributes,
                               span<tensor_type> out) {
    const auto o = attributes.as<options>();
    out[0] = in[0];
    out[0].shape[in[0].rank() - 1] = in[2][in[2].rank() - 1];
    out[1] = {detail::summed_in(in[0].element), {}};
    for (int d = 0; d < in[0].rank() - 2; ++d)
      out[1].shape.push_back(in[0][detail::axis_beside_place(o, d)]);
    out[1].shape.push_back(in[0][o.place]);
    return 2;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::attention_space(in, o.as<options>(), false);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Queries, keys, values, both results, the gradient of the first, and mask and bias -> the
/// gradients of queries, keys and values, and of the bias if there is one.
struct attention_gradient_op : opaque<attention_gradient_op>, not_differentiable {
  static constexpr std::string_view name = "attention_gradient";
  static constexpr std::string_view formula = "dq, dk, dv of attention";
  static constexpr int operations_per_point = 10;
  using options = attention_op_options;
  static constexpr int operands = -1;
  static constexpr int results(span<const tensor_type> in, const attributes& attributes,
                               span<tensor_type> out) {
    for (std::size_t k = 0; k < 3; ++k) out[k] = in[k];
    if (!attributes.as<options>().bias.given()) return 3;
    out[3] = in[in.size() - 1];
    return 4;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::attention_space(in, o.as<options>(), true);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

constexpr bool is_attention(const node& n) {
  return is<attention_op>(n) || is<attention_gradient_op>(n);
}
/// The loop over the places, for queries of this type: behind those over the leading axes.
constexpr int place_loop(const tensor_type& query) { return query.rank() - 2; }
/// Of the attention that `n` is, whether operand `t`, or result behind the operands, lies along the
/// places of keys that are others than those of queries.
constexpr bool is_across(const node& n, std::size_t t) {
  if (!is_attention(n)) return false;
  const auto o = n.attributes.as<attention_op_options>();
  return o.is_across() &&
         detail::roles_of(o, is<attention_gradient_op>(n)).role[t] == detail::attention_role::key;
}

inline void attention_op::compute(const attributes& attributes, span<const tensor_ref> in,
                                  span<const tensor_ref> out) {
  const auto o = attributes.as<options>();
  const int width = in[2].type[in[2].type.rank() - 1], queries = in[0].type[o.place];
  std::vector<double> weights(std::size_t(o.places));
  detail::for_each_sequence(o, false, in, out, [&](const detail::sequence_walk* walks) {
    const detail::sequence_walk &value = walks[2], &y = walks[in.size()],
                                &row = walks[in.size() + 1];
    for (int t = 0; t < queries; ++t) {
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int k = 0; k < o.places; ++k) {
        double& score = weights[std::size_t(k)];
        score = detail::score_of(o, in, walks, t, k, 3);
        top = std::max(top, score);
      }
      for (double& w : weights) sum += w = std::exp(w - top);
      for (int w = 0; w < width; ++w) {
        double total = 0;
        for (int k = 0; k < o.places; ++k)
          total += weights[std::size_t(k)] * read_element(in[2], value.at(k) + w);
        write_element(out[0], y.at(t) + w, total / sum);
      }
      write_element(out[1], row.at(t), top + std::log(sum));
    }
  });
}

inline void attention_gradient_op::compute(const attributes& attributes, span<const tensor_ref> in,
                                           span<const tensor_ref> out) {
  const auto o = attributes.as<options>();
  const tensor_ref &q = in[0], &k = in[1], &v = in[2], &y = in[3], &dy = in[5];
  const int width = q.type[q.type.rank() - 1], value_width = y.type[y.type.rank() - 1];
  const int queries = q.type[o.place];
  std::vector<std::vector<double>> sums;
  for (const tensor_ref& x : out) sums.emplace_back(std::size_t(x.type.size()), 0.0);
  detail::for_each_sequence(o, true, in, out, [&](const detail::sequence_walk* walks) {
    for (int t = 0; t < queries; ++t) {
      const std::int64_t i = walks[0].at(t), j = walks[5].at(t);
      const double mean = detail::inner_product(y, walks[3].at(t), dy, j, value_width);
      for (int s = 0; s < o.places; ++s) {
        const double score = detail::score_of(o, in, walks, t, s, 6);
        const double weight = std::exp(score - read_element(in[4], walks[4].at(t)));
        // A hidden key has no slope, even where all are and weights are no numbers.
        const bool hidden = score == -std::numeric_limits<double>::infinity() && o.hides();
        const std::int64_t key = walks[1].at(s), value = walks[2].at(s);
        const double slope =
            hidden ? 0 : weight * (detail::inner_product(dy, j, v, value, value_width) - mean);
        for (int w = 0; w < width; ++w) {
          sums[0][std::size_t(i + w)] += o.scale * slope * read_element(k, key + w);
          sums[1][std::size_t(key + w)] += o.scale * slope * read_element(q, i + w);
        }
        for (int w = 0; w < value_width; ++w)
          sums[2][std::size_t(value + w)] += weight * read_element(dy, j + w);
        if (!o.bias.given()) continue;
        const detail::sequence_walk& bias = walks[in.size() + 3];
        sums[3][std::size_t(bias.at(t) + s * bias.key_step)] += slope;
      }
    }
  });
  for (std::size_t n = 0; n < out.size(); ++n)
    for (std::size_t i = 0; i < sums[n].size(); ++i)
      write_element(out[n], std::int64_t(i), sums[n][i]);
}

}  // namespace cella
