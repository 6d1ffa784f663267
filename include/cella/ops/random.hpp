// Random numbers as part of the program: drawn by a counter-based generator from the program's key,
// so that the same seed gives the same numbers whatever the device and the number of threads.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/graph/random.hpp>
#include <cella/ops/elementwise.hpp>

namespace cella {

namespace detail {
/// Whether the first operand holds keys.
inline bool takes_key(const op_application& a) {
  return a.in[0].element == dtype::i64 && a.rank() >= 1 && a.of(0)[a.rank() - 1] == 2;
}
/// Of what is drawn for each element.
struct stream_options {
  std::int32_t stream{};
};
}  // namespace detail

/// A key i64[2] (seed, step) -> the key of a body: (a hash of key and stream, step). With `count`:
/// that many, for steps from `step` on, i64[count,2]. Keys may have leading axes, one key per
/// index.
struct random_key_op : opaque<random_key_op>, zero_derivative {
  static constexpr std::string_view name = "random_key";
  static constexpr std::string_view formula =
      "the key from which a stream of random numbers is drawn";
  static constexpr compute_class computes = compute_class::random;
  struct options {
    std::int32_t stream{};
    std::int32_t step{};
    std::int32_t count{};  ///< 0: one
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return detail::takes_key(a) && o.count >= 0 && (o.count == 0 || a.rank() < max_rank);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& a) {
    tensor_type t = in[0];
    if (const int count = a.as<options>().count) t.shape.insert(t.rank() - 1, count);
    return t;
  }
  /// The last axis is the key, which is read and written as a whole.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    const shape keys = infer(in, o).shape;
    iteration_space s(1);
    s.add(keys);
    s.factors[std::size_t(keys.rank) - 1].whole = true;
    s.along_all(0, 0, in[0].rank() - 1);
    s.along_all(s.result(), 0, keys.rank);
    return s;
  }
  static constexpr attributes batch_options(node_ref n, int, unsigned) { return n.as<options>(); }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// key i64[2] (seed, step) -> uniform numbers in [0, 1). Element i of stream s at a step depends on
/// (seed, step, s, i) only. A key per index of leading axes draws for the results at that index.
struct random_uniform_op : opaque<random_uniform_op>, zero_derivative {
  static constexpr std::string_view name = "random_uniform";
  static constexpr std::string_view numpy = "np.random.uniform";
  static constexpr std::string_view torch = "torch.rand";
  static constexpr std::string_view formula = "y uniform in [0, 1), from key, stream and place";
  static constexpr compute_class computes = compute_class::random;
  struct options {
    cella::shape shape{};
    stored_dtype element{};
    std::int32_t stream{};
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return detail::takes_key(a) && begins_with(o.shape, a.of(0), a.rank() - 1) &&
           is_floating(dtype(o.element));
  }
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    return {dtype(a.element), a.shape};
  }
  /// One key serves all that its leading axes do not tell apart.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    iteration_space s(1);
    s.add(o.as<options>().shape);
    s.along_all(0, 0, in[0].rank() - 1);
    s.along_all(s.result(), 0, o.as<options>().shape.rank);
    return s;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {0, 1};
  }
  static constexpr attributes batch_options(node_ref n, int size, unsigned) {
    auto o = n.as<options>();
    o.shape.insert(0, size);
    return o;
  }
  /// What stream `stream` at (seed, step) is drawn from: uniform<double>(key, i) for f64, else
  /// uniform<float>(key, i).
  static constexpr std::uint64_t key_of(const std::uint64_t* state, std::int32_t stream) {
    return fold_in(fold_in(state[0], state[1]), std::uint64_t(stream));
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// The numbers 0 to n - 1 in a random order.
struct random_permutation_op : opaque<random_permutation_op>, zero_derivative {
  static constexpr std::string_view name = "random_permutation";
  static constexpr std::string_view numpy = "np.random.permutation";
  static constexpr std::string_view torch = "torch.randperm";
  static constexpr std::string_view formula = "y = 0, 1, ... in a random order";
  static constexpr compute_class computes = compute_class::random;
  struct options {
    std::int32_t count{};
    std::int32_t stream{};
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    return detail::takes_key(a) && a.rank() == 1 && a.as<options>().count >= 0;
  }
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    return {dtype::i64, {o.as<options>().count}};
  }
  static constexpr iteration_space space(span<const tensor_type>, const attributes& o) {
    iteration_space s(1);
    s.along(s.result(), 0, s.add(o.as<options>().count));
    return s;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes& o) {
    return {0, double(std::max(o.as<options>().count - 1, 0))};
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

namespace detail {

constexpr node_id derived_key(builder& b, node_id key, std::int32_t stream, int step = 0,
                              int count = 0) {
  return b.emit(bound<random_key_op>(), {key}, random_key_op::options{stream, step, count});
}
/// The key from which `depth` nested bodies draw.
constexpr node_id random_key(builder& b, std::size_t depth) {
  if (depth == 0) return b.bodies.random_key();
  const body_scope s = b.bodies.scope(depth - 1);
  if (s.key >= 0) return s.key;
  const bool is_input = s.region >= 0;
  const node_id key = is_input ? b.g.append_declared_input({dtype::i64, {2}}, s.region)
                               : derived_key(b, random_key(b, depth - 1), s.stream, s.step);
  // Paths that are traced again must append what they appended before.
  if (is_input || b.evaluates()) b.bodies.scope(depth - 1).key = key;
  return key;
}
/// The key from which is drawn here.
constexpr node_id random_key(builder& b) { return random_key(b, b.bodies.scopes()); }
/// (seed, step) -> (seed, step + 1)
constexpr node_id next_key(builder& b, node_id key) {
  return b.emit(bound<add_op>(), {key, iota(b, b.g.type(key), 0).id});
}

}  // namespace detail

/// Uniform numbers in [0, 1) of the type of `like`, from the program's random state.
constexpr var random_uniform(operand like) {
  builder& b = *like.owner();
  const var x = like.in(b);
  const node_id key = detail::random_key(b);
  return {&b, b.emit(bound<random_uniform_op>(), {key},
                     random_uniform_op::options{
                         x.shape(), {std::int32_t(x.element())}, b.bodies.next_random_stream()},
                     like.at())};
}

/// Zeroes each element with probability `rate` while training and scales the rest by 1 / (1 -
/// rate); passes x through otherwise.  Srivastava et al. 2014
CELLA_ONCE constexpr var dropout(operand x, double rate) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (!(rate >= 0 && rate < 1)) {
    b.fail(text() << x.at() << ": dropout: the rate must lie in [0, 1)");
    return v;
  }
  if (!v.training() || rate == 0) return v;
  return select(random_uniform(x) >= rate, v * (1 / (1 - rate)), 0);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void random_key_op::compute(const attributes& a, span<const tensor_ref> in,
                                   span<const tensor_ref> out) {
  const auto o = a.as<options>();
  const auto* from = reinterpret_cast<const std::uint64_t*>(in[0].data);
  auto* to = reinterpret_cast<std::int64_t*>(out[0].data);
  for (std::int64_t k = 0; k < in[0].type.size() / 2; ++k, from += 2) {
    const std::uint64_t seed = fold_in(fold_in(from[0], from[1]), std::uint64_t(o.stream));
    for (int i = 0; i < std::max(o.count, 1); ++i) {
      *to++ = std::int64_t(seed);
      *to++ = o.step + i;
    }
  }
}
inline void random_uniform_op::compute(const attributes& o, span<const tensor_ref> in,
                                       span<const tensor_ref> out) {
  const auto* state = reinterpret_cast<const std::uint64_t*>(in[0].data);
  const std::int32_t stream = o.as<options>().stream;
  const std::int64_t keys = in[0].type.size() / 2;
  const std::int64_t each = keys ? out[0].type.size() / keys : 0;
  // Cut to the digits of a type of 16 bits: rounded, the numbers nearest to 1 would become 1.
  const dtype element = out[0].type.element;
  const std::uint32_t cut = element == dtype::bf16 ? 0xffffu : element == dtype::f16 ? 0x1fffu : 0;
  for (std::int64_t k = 0; k < keys; ++k, state += 2) {
    const std::uint64_t key = key_of(state, stream);
    for (std::int64_t i = 0; i < each; ++i) {
      const auto place = std::uint64_t(i);
      if (element == dtype::f64) {
        write_element(out[0], k * each + i, uniform<double>(key, place));
        continue;
      }
      const auto bits = std::bit_cast<std::uint32_t>(uniform<float>(key, place));
      write_element(out[0], k * each + i, std::bit_cast<float>(bits & ~cut));
    }
  }
}

inline void random_permutation_op::compute(const attributes& o, span<const tensor_ref> in,
                                           span<const tensor_ref> out) {
  const auto a = o.as<options>();
  const auto* state = reinterpret_cast<const std::uint64_t*>(in[0].data);
  const std::uint64_t key = random_uniform_op::key_of(state, a.stream);
  for (std::int64_t i = 0; i < a.count; ++i) write_number(out[0], i, permuted(i, a.count, key));
}

#endif

}  // namespace cella
