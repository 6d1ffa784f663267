// vmap: a function of one sample -> the function of many, by transforming its graph.
#pragma once

#include <cella/transform/batch.hpp>
#include <cella/transform/control.hpp>

namespace cella {

/// f -> the function that does for every slice along the leading axes of its arguments what f does
/// for one; results get a leading axis. What f closes over is the same for all. Per-example
/// gradients are `vmap(grad(f))`. It runs all slices together (`map` runs one after the other).
template <class F>
constexpr auto vmap(F f, std::source_location at = std::source_location::current()) {
  return [f, at](auto... x) {
    using result = std::decay_t<decltype(f(x...))>;
    const auto arguments = std::make_tuple(x...);
    builder& b = *builder_of(arguments);
    const int size = detail::leading_extent("vmap", arguments, at);
    if (size < 0) return result(f(x...));
    const ids in = flatten_value(arguments);
    detail::type_list types;
    for (node_id n : in) types.push_back(without_leading(b.g.type(n)));
    int r = 0;
    const result value = detail::trace_region(b, types, r, [&]() -> result {
      return std::apply(f, rebuild_value(arguments, b, detail::own_inputs(b)));
    });
    if (b.failed()) return value;
    const ids captured = b.g.regions[std::size_t(r)].captured;
    flags batched = detail::all_marked(in.size());
    batched.resize(in.size() + captured.size(), 0);
    const ids out = detail::batch_body(b, r, {detail::join_ids({in, captured}), batched}, size,
                                       detail::all_marked(detail::outputs_of(b, r).size()));
    b.discard(r);
    return rebuild_value(value, b, out);
  };
}

}  // namespace cella
