// Random numbers as part of the program: drawn by a counter-based generator from the program's key,
// so that the same seed gives the same numbers whatever the device and the number of threads.
#pragma once

#include <cella/graph/random.hpp>
#include <cella/ops/elementwise.hpp>

namespace cella {

/// key i64[2] (seed, step) -> uniform numbers in [0, 1). Element i of stream s at a step depends on
/// (seed, step, s, i) only.
struct random_uniform_op : opaque<random_uniform_op> {
  static constexpr std::string_view name = "random_uniform";
  struct options {
    cella::shape shape{};
    std::int32_t element{};
    std::int32_t stream{};
  };
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    return {dtype(a.element), a.shape};
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Uniform numbers in [0, 1) of the type of `like`, from the program's random state.
constexpr var random_uniform(operand like) {
  builder& b = *like.owner();
  const var x = like.in(b);
  const node_id key = b.random_key();
  return {&b, b.emit(bound<random_uniform_op>(), {key},
                     random_uniform_op::options{x.shape(), std::int32_t(x.element()),
                                                b.next_random_stream()},
                     like.at())};
}

/// Zeroes each element with probability `rate` while training and scales the rest by 1 / (1 -
/// rate); passes x through otherwise.  Srivastava et al. 2014
constexpr var dropout(operand x, double rate) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (!(rate >= 0 && rate < 1)) {
    b.fail(text() << x.at() << ": dropout: the rate must lie in [0, 1)");
    return v;
  }
  if (!v.training() || rate == 0) return v;
  return select(random_uniform(x) >= rate, v * (1 / (1 - rate)), 0);
}

// ---- computation at run time

inline void random_uniform_op::compute(const attributes& o, span<const tensor_ref> in,
                                       span<const tensor_ref> out) {
  const auto* state = reinterpret_cast<const std::uint64_t*>(in[0].data);
  const auto stream = std::uint64_t(o.as<options>().stream);
  const std::uint64_t key = fold_in(fold_in(state[0], state[1]), stream);
  for (std::int64_t i = 0; i < out[0].type.size(); ++i) {
    write_element(out[0], i, uniform<float>(key, std::uint64_t(i)));
  }
}

}  // namespace cella
