// vmap: a function of one sample -> the function of many, by transforming its graph.
#pragma once

#include <cella/transform/batch.hpp>
#include <cella/transform/control.hpp>

namespace cella {

namespace detail {

/// What a function of vmap yields that it assigns to states: a value that is the same for all
/// samples, or a fault.
constexpr void assign_batched(builder& b, const list<std::int32_t>& assigned,
                              const batched_list& values, std::source_location at) {
  for (std::size_t k = 0; k < assigned.size(); ++k) {
    if (!values.batched[k]) continue;
    b.fail(text() << at << ": vmap: " << b.describe(b.g.input(assigned[k]))
                  << " is assigned a value that differs from sample to sample, but a state has one "
                     "value; return the new values, and assign their mean, say, outside of vmap");
    return;
  }
  assign_all(b, assigned, values.values);
}

/// A function as it works for one sample.
template <class Result>
struct traced_sample {
  Result value;
  int region{};
  list<std::int32_t> assigned;  ///< states that follow the results
  bool directions{};            ///< of one function at one point, all with the same random numbers
  bool has_key{};
  int stream{};

  /// Captured values of the region.
  constexpr const ids& captured(const builder& b) const {
    return b.g.regions[std::size_t(region)].captured;
  }
};

/// Traces f for one sample of arguments like `arguments`, of the given types.
template <class F, class... X>
constexpr auto trace_sample(F& f, const std::tuple<X...>& arguments, const type_list& types,
                            bool directions) {
  builder& b = *builder_of(arguments);
  traced_sample<std::decay_t<std::invoke_result_t<F&, X...>>> s;
  s.directions = directions;
  s.stream = b.bodies.next_random_stream();
  b.bodies.enter({.region = directions ? -1 : int(b.g.regions.size()),
                  .knows_states = true,
                  .stream = s.stream});
  using result = decltype(s.value);
  s.value = trace_region(b, types, s.region, s.assigned, [&]() -> result {
    return std::apply(f, rebuild_value(arguments, b, own_inputs(b)));
  });
  s.has_key = b.bodies.leave().key >= 0;
  return s;
}

/// The results for all `in`, with samples along their leading axes; states take what is the same
/// for all, and of directions anyone's.
template <class Result>
constexpr ids run_samples(builder& b, const traced_sample<Result>& s, const ids& in, int size,
                          std::source_location at) {
  ids samples = in;
  if (!s.directions && s.has_key)
    samples.push_back(derived_key(b, random_key(b), s.stream, 0, size));
  const ids captured = s.captured(b);
  flags batched = all_marked(samples.size());
  batched.resize(samples.size() + captured.size(), 0);
  batched_list out = batch_region(b, s.region, {join_ids({samples, captured}), batched}, size);
  if (b.failed()) return {};
  b.discard(s.region);
  const int results = int(out.values.size() - s.assigned.size());
  batched_list states{tail(out.values, results), tail(out.batched, results)};
  for (std::size_t k = 0; s.directions && k < s.assigned.size(); ++k) {
    if (states.batched[k]) states.values[k] = first_sample(b, states.values[k]);
    states.batched[k] = 0;
  }
  assign_batched(b, s.assigned, states, at);
  out = {cut(out.values, 0, results), cut(out.batched, 0, results)};
  return repeat_where(b, out, size, all_marked(out.values.size()));
}

/// vmap, whose samples draw their own random numbers; or of `directions`, see traced_sample.
template <class F>
constexpr auto batch_function(F f, bool directions, std::source_location at) {
  return [f, directions, at](auto... x) {
    if constexpr (!transforms<F, decltype(x)...>) {
      return refuse_call<F>("vmap", at, x...);
    } else {
      using result = std::decay_t<decltype(f(x...))>;
      const auto arguments = std::make_tuple(x...);
      builder& b = *builder_of(arguments);
      const int size = leading_extent("vmap", arguments, at);
      if (size < 0) return result(f(x...));
      const ids in = flatten_value(arguments);
      type_list types;
      for (node_id n : in) types.push_back(without_leading(b.g.type(n)));
      const auto sample = trace_sample(f, arguments, types, directions);
      if (b.failed()) return sample.value;
      const ids out = run_samples(b, sample, in, size, at);
      return b.failed() ? sample.value : rebuild_value(sample.value, b, out);
    }
  };
}

}  // namespace detail

/// f -> the function that does for every slice along the leading axes of its arguments what f does
/// for one; results get a leading axis. What f closes over is the same for all, random numbers are
/// not: each slice draws its own. Per-example gradients are `vmap(grad(f))`. It runs all slices
/// together (`map` runs one after the other). What f assigns to a state must not depend on the
/// slice.
template <detail::function_like F>
constexpr auto vmap(F f, std::source_location at = std::source_location::current()) {
  return detail::batch_function(f, false, at);
}

}  // namespace cella
