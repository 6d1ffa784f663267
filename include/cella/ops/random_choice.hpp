// Places that are drawn from some.
#pragma once

#include <cella/ops/random.hpp>
#include <cella/ops/sorting.hpp>

namespace cella {

/// What `random_choice` returns: `count` places as i64, and which of them there are.
struct chosen_places {
  var places;
  var there;
};
/// `count` of the places where a mask is true, each at most once and all with one probability, in a
/// random order. Where it is true at fewer places `there` is false behind them. Places count in
/// row-major order.  MindSpore: RandomChoiceWithMask; without a mask numpy.random.choice
constexpr chosen_places random_choice(operand mask, int count) {
  const var m = mask.in(*mask.owner());
  builder& b = *m.b;
  const auto size = std::int32_t(m.shape().size());
  if (m.element() != dtype::boolean || count < 1 || count > size) {
    b.fail(text() << mask.at() << ": random_choice: needs a mask of truth values and from 1 to all "
                  << "of its places: " << b.describe(m.id) << " is " << m.type() << ", the count "
                  << count);
    return {m, m};
  }
  const var flat = reshape(m, {size});
  // Those that may not be drawn come behind all others.
  const var order = random_uniform(cast(flat, dtype::f32));
  const var places = slice(argsort(select(flat, order, full_like(order, 2)), 0), 0, 0, count);
  return {places, gather(flat, places)};
}

}  // namespace cella
