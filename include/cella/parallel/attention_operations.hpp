// Attention and its gradient as one operation each, with one loop for the places of queries, keys
// and values: what ranks divide as a ring. They stand in graphs that are divided, and what ranks
// run in their place is written in block_attention.hpp and ring_attention.hpp.
#pragma once

#include <algorithm>
#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace cella {

/// Queries, keys, values and results are [lead..., width] with the places of the sequence inserted
/// at axis `place`; what is one number for each place is [lead..., places].
struct attention_op_options {
  double scale = 1;         ///< of the products
  std::int32_t places{};    ///< how many keys there are
  std::int32_t place{};     ///< their axis
  std::int32_t causal{};    ///< place t sees keys 0 to t only
  std::int32_t reserved{};  ///< makes whole words of 8 bytes
};

namespace detail {

/// The axis of queries and their like for leading axis `d`, of which the places make room.
constexpr int axis_beside_place(const attention_op_options& o, int d) { return d + (d >= o.place); }

/// Loops: the leading axes, the places, the width, and the keys that each place sees. `rows` is a
/// bit for each tensor that has a number for each place only.
constexpr iteration_space attention_space(span<const tensor_type> in, const attributes& attributes,
                                          int results, unsigned rows) {
  const auto o = attributes.as<attention_op_options>();
  const int leads = in[0].rank() - 2;
  iteration_space s(in.size());
  for (int d = 0; d < leads; ++d) s.add(in[0][axis_beside_place(o, d)]);
  const int place = s.add(in[0][o.place]), width = s.add(in[0][leads + 1], true);
  s.add(o.places, true);
  for (int t = 0; t < int(in.size()) + results; ++t) {
    const bool is_row = rows >> t & 1;
    for (int d = 0; d < leads; ++d) s.along(t, is_row ? d : axis_beside_place(o, d), d);
    s.along(t, is_row ? leads : o.place, place);
    if (!is_row) s.along(t, leads + 1, width);
  }
  return s;
}

/// Where the numbers of one sequence lie: element w of place t at `first + t * step + w`.
struct sequence_walk {
  std::int64_t first{}, step{};
};
/// Calls f(walk of queries and their like, the first of the numbers of each place).
template <class F>
void for_each_sequence(const shape& s, const attention_op_options& o, F f) {
  const std::int64_t inner = s.size(o.place + 1, s.rank - 1), width = s[s.rank - 1];
  const std::int64_t outer = s.size(0, o.place), places = s[o.place];
  for (std::int64_t i = 0; i < outer * inner; ++i)
    f(sequence_walk{(i / inner * places * inner + i % inner) * width, inner * width}, i * places);
}
/// How many keys a place sees.
inline int keys_seen(const attention_op_options& o, int place) {
  return o.causal ? place + 1 : o.places;
}
inline double inner_product(const tensor_ref& x, std::int64_t i, const tensor_ref& y,
                            std::int64_t j, int width) {
  double sum = 0;
  for (int w = 0; w < width; ++w) sum += read_element(x, i + w) * read_element(y, j + w);
  return sum;
}

}  // namespace detail

/// Queries, keys, values -> softmax(scale q k^T) v, and for each place the logarithm of the sum of
/// e^scores.
struct attention_op : opaque<attention_op>, not_differentiable {
  static constexpr std::string_view name = "attention";
  static constexpr std::string_view formula = "y = softmax(scale q k^T) v, and log sum e^(scores)";
  static constexpr int operations_per_point = 4;
  using options = attention_op_options;
  static constexpr int operands = 3;
  static constexpr int results(span<const tensor_type> in, const attributes& attributes,
                               span<tensor_type> out) {
    const auto o = attributes.as<options>();
    out[0] = in[0];
    out[1] = {in[0].element, {}};
    for (int d = 0; d < in[0].rank() - 2; ++d)
      out[1].shape.push_back(in[0][detail::axis_beside_place(o, d)]);
    out[1].shape.push_back(in[0][o.place]);
    return 2;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::attention_space(in, o, 2, 1u << 4);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Queries, keys, values, both results and the gradient of the first -> the gradients of queries,
/// keys and values.
struct attention_gradient_op : opaque<attention_gradient_op>, not_differentiable {
  static constexpr std::string_view name = "attention_gradient";
  static constexpr std::string_view formula = "dq, dk, dv of attention";
  static constexpr int operations_per_point = 10;
  using options = attention_op_options;
  static constexpr int operands = 6;
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    for (std::size_t k = 0; k < 3; ++k) out[k] = in[k];
    return 3;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::attention_space(in, o, 3, 1u << 4);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

constexpr bool is_attention(const node& n) {
  return is<attention_op>(n) || is<attention_gradient_op>(n);
}
/// The loop over the places, for queries of this type: behind those over the leading axes.
constexpr int place_loop(const tensor_type& query) { return query.rank() - 2; }

inline void attention_op::compute(const attributes& attributes, span<const tensor_ref> in,
                                  span<const tensor_ref> out) {
  const auto o = attributes.as<options>();
  const shape s = in[0].type.shape;
  const int width = s[s.rank - 1];
  std::vector<double> weights(std::size_t(o.places));
  detail::for_each_sequence(s, o, [&](detail::sequence_walk x, std::int64_t row) {
    for (int t = 0; t < o.places; ++t) {
      const int seen = detail::keys_seen(o, t);
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int k = 0; k < seen; ++k) {
        double& score = weights[std::size_t(k)];
        score = o.scale * detail::inner_product(in[0], x.first + t * x.step, in[1],
                                                x.first + k * x.step, width);
        top = std::max(top, score);
      }
      for (int k = 0; k < seen; ++k)
        sum += weights[std::size_t(k)] = std::exp(weights[std::size_t(k)] - top);
      for (int w = 0; w < width; ++w) {
        double y = 0;
        for (int k = 0; k < seen; ++k)
          y += weights[std::size_t(k)] * read_element(in[2], x.first + k * x.step + w);
        write_element(out[0], x.first + t * x.step + w, y / sum);
      }
      write_element(out[1], row + t, top + std::log(sum));
    }
  });
}

inline void attention_gradient_op::compute(const attributes& attributes, span<const tensor_ref> in,
                                           span<const tensor_ref> out) {
  const auto o = attributes.as<options>();
  const shape s = in[0].type.shape;
  const int width = s[s.rank - 1];
  const tensor_ref &q = in[0], &k = in[1], &v = in[2], &y = in[3], &dy = in[5];
  std::vector<double> sums[3];
  for (std::vector<double>& sum : sums) sum.assign(std::size_t(s.size()), 0.0);
  detail::for_each_sequence(s, o, [&](detail::sequence_walk x, std::int64_t row) {
    for (int t = 0; t < o.places; ++t) {
      const std::int64_t i = x.first + t * x.step;
      const double mean = detail::inner_product(y, i, dy, i, width);
      for (int other = 0; other < detail::keys_seen(o, t); ++other) {
        const std::int64_t j = x.first + other * x.step;
        const double weight = std::exp(o.scale * detail::inner_product(q, i, k, j, width) -
                                       read_element(in[4], row + t));
        const double slope = o.scale * weight * (detail::inner_product(dy, i, v, j, width) - mean);
        for (int w = 0; w < width; ++w) {
          sums[0][std::size_t(i + w)] += slope * read_element(k, j + w);
          sums[1][std::size_t(j + w)] += slope * read_element(q, i + w);
          sums[2][std::size_t(j + w)] += weight * read_element(dy, i + w);
        }
      }
    }
  });
  for (std::size_t n = 0; n < 3; ++n)
    for (std::int64_t i = 0; i < s.size(); ++i) write_element(out[n], i, sums[n][std::size_t(i)]);
}

}  // namespace cella
