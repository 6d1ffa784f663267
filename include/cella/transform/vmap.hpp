// vmap: a function of one sample -> the function of many, by transforming its graph.
#pragma once

#include <cella/transform/batch.hpp>
#include <cella/transform/control.hpp>

namespace cella {

namespace detail {

/// vmap, whose samples draw their own random numbers, or, if they `share` them, the same.
template <class F>
constexpr auto batch_function(F f, bool share, std::source_location at) {
  return [f, share, at](auto... x) {
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
    b.enter({.region = share ? -1 : int(b.g.regions.size()),
             .repeats = true,
             .refuses = "a function of vmap or jacobian",
             .knows_states = true,
             .stream = stream});
    const result value = trace_region(b, types, r, [&]() -> result {
      return std::apply(f, rebuild_value(arguments, b, own_inputs(b)));
    });
    const bool has_key = b.leave().key >= 0;
    const bool draws = !share && has_key;
    if (b.failed()) return value;
    const ids captured = b.g.regions[std::size_t(r)].captured;
    ids samples = in;
    if (draws) samples.push_back(derived_key(b, random_key(b), stream, 0, size));
    flags batched = all_marked(samples.size());
    batched.resize(samples.size() + captured.size(), 0);
    const ids out = batch_body(b, r, {join_ids({samples, captured}), batched}, size,
                               all_marked(outputs_of(b, r).size()));
    b.discard(r);
    return rebuild_value(value, b, out);
  };
}

}  // namespace detail

/// f -> the function that does for every slice along the leading axes of its arguments what f does
/// for one; results get a leading axis. What f closes over is the same for all, random numbers are
/// not: each slice draws its own. Per-example gradients are `vmap(grad(f))`. It runs all slices
/// together (`map` runs one after the other). f cannot assign states.
template <class F>
constexpr auto vmap(F f, std::source_location at = std::source_location::current()) {
  return detail::batch_function(f, false, at);
}

}  // namespace cella
