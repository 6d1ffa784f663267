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

/// vmap, whose samples draw their own random numbers. With `directions`: of one function at one
/// point, of which all see the same numbers, and assign the same to states.
template <class F>
constexpr auto batch_function(F f, bool directions, std::source_location at) {
  return [f, directions, at](auto... x) {
    using result = std::decay_t<decltype(f(x...))>;
    const auto arguments = std::make_tuple(x...);
    builder& b = *builder_of(arguments);
    const int size = leading_extent("vmap", arguments, at);
    if (size < 0) return result(f(x...));
    const int stream = b.next_random_stream();
    const ids in = flatten_value(arguments);
    type_list types;
    for (node_id n : in) types.push_back(without_leading(b.g.type(n)));
    int r = 0;
    list<std::int32_t> assigned;
    b.enter({.region = directions ? -1 : int(b.g.regions.size()),
             .knows_states = true,
             .stream = stream});
    const result value = trace_region(b, types, r, assigned, [&]() -> result {
      return std::apply(f, rebuild_value(arguments, b, own_inputs(b)));
    });
    const bool has_key = b.leave().key >= 0;
    const bool draws = !directions && has_key;
    if (b.failed()) return value;
    const ids captured = b.g.regions[std::size_t(r)].captured;
    ids samples = in;
    if (draws) samples.push_back(derived_key(b, random_key(b), stream, 0, size));
    flags batched = all_marked(samples.size());
    batched.resize(samples.size() + captured.size(), 0);
    batched_list out = batch_region(b, r, {join_ids({samples, captured}), batched}, size);
    if (b.failed()) return value;
    b.discard(r);
    const int results = int(out.values.size() - assigned.size());
    batched_list states{tail(out.values, results), tail(out.batched, results)};
    for (std::size_t k = 0; directions && k < assigned.size(); ++k) {
      if (states.batched[k]) states.values[k] = first_sample(b, states.values[k]);
      states.batched[k] = 0;
    }
    assign_batched(b, assigned, states, at);
    out = {cut(out.values, 0, results), cut(out.batched, 0, results)};
    return rebuild_value(value, b, repeat_where(b, out, size, all_marked(out.values.size())));
  };
}

}  // namespace detail

/// f -> the function that does for every slice along the leading axes of its arguments what f does
/// for one; results get a leading axis. What f closes over is the same for all, random numbers are
/// not: each slice draws its own. Per-example gradients are `vmap(grad(f))`. It runs all slices
/// together (`map` runs one after the other). What f assigns to a state must not depend on the
/// slice.
template <class F>
constexpr auto vmap(F f, std::source_location at = std::source_location::current()) {
  return detail::batch_function(f, false, at);
}

}  // namespace cella
