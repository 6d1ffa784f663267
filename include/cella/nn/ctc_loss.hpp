// Connectionist temporal classification: the loss of a sequence of labels whose places are unknown.
#pragma once

#include <cella/ops/loss.hpp>
#include <cella/transform/control.hpp>

namespace cella {

/// What `ctc_loss` may be told.
struct ctc_options {
  int blank = 0;                       ///< the class of "no label"
  reduction reduce = reduction::mean;  ///< the mean is of losses divided by their target's length
  bool zero_infinity = false;          ///< what no alignment yields counts as 0, not as infinity
};

/// -log of the probability that a sequence of class probabilities yields the labels, summed over
/// all alignments: each label stays for some steps, blanks may stand between labels and must stand
/// between equal ones. log_probabilities [T,N,C], labels [N,S], integers; lengths [N] of the
/// sequences and of their labels, behind which anything may stand.  Graves et al. 2006
///
/// The recursion over steps is in logarithms, and so is its derivative.
constexpr var ctc_loss(operand log_probabilities, operand labels, operand input_lengths,
                       operand label_lengths, const ctc_options& o = {}) {
  builder& b = *log_probabilities.owner();
  const var p = log_probabilities.in(b), y = labels.in(b);
  const var steps = input_lengths.in(b), lengths = label_lengths.in(b);
  const bool fits = p.rank() == 3 && y.rank() == 2 && p.extent(1) == y.extent(0) &&
                    p.extent(0) > 0 && is_integer(y.element()) &&
                    steps.shape() == shape{p.extent(1)} && lengths.shape() == steps.shape() &&
                    is_integer(steps.element()) && is_integer(lengths.element());
  if (!fits) {
    b.fail(text() << log_probabilities.at()
                  << ": ctc_loss: needs log-probabilities [T,N,C], labels "
                  << "[N,S] and two lengths [N], integers: " << b.describe(p.id) << " is "
                  << p.type() << ", " << b.describe(y.id) << " is " << y.type() << ", "
                  << b.describe(steps.id) << " is " << steps.type() << ", "
                  << b.describe(lengths.id) << " is " << lengths.type());
    return p;
  }
  // A state for each label and for the blanks round it: blank, y[0], blank, y[1], ... blank.
  const int samples = y.extent(0), count = y.extent(1), states = 2 * count + 1;
  const var blanks = full_like(y, o.blank);
  // What stands behind the labels may be no class; read, it would be NaN in all derivatives.
  const var number = iota(b, {lengths.element(), {samples, count}}, 1);
  const var known = select(number < expand_dims(lengths, 1), y, blanks);
  const var pairs = reshape(stack({blanks, known}, 2), {samples, 2 * count});
  const var end = constant(b, o.blank, {y.element(), {samples, 1}});
  const var classes = concat({pairs, end}, 1);  // [N,states]
  tensor_type grid{dtype::i64, {samples, states}};
  const var state = iota(b, grid, 1);
  // A path may leave out the blank between two different labels.
  var skips = state < 0;
  if (states > 2) {
    const var before = slice(classes, 1, 0, states - 2), later = slice(classes, 1, 2, states);
    const var differs = logical_and(not_equal(later, o.blank), not_equal(later, before));
    skips = concat({slice(skips, 1, 0, 2), differs}, 1);
  }
  // Not infinite, since the derivative of log(0 + 0) must not be NaN.
  const double never = -1e30;
  const auto shifted = [&](var alpha, int by) {
    const int width = by < states ? by : states;
    const var gone = constant(b, never, {p.element(), {samples, width}});
    return by < states ? concat({gone, slice(alpha, 1, 0, states - by)}, 1) : gone;
  };
  const auto emitted = [&](var step) { return gather_elements(step, classes, 1); };
  struct step_inputs {
    var log_p, place;
  };
  const auto advance = [&](var alpha, step_inputs in) {
    const var one = shifted(alpha, 1);
    const var two = select(skips, shifted(alpha, 2), full_like(alpha, never));
    const var most = stop_gradient(maximum(alpha, maximum(one, two)));
    const var paths = log(exp(alpha - most) + exp(one - most) + exp(two - most)) + most;
    const var next = paths + emitted(in.log_p);
    const var goes_on = broadcast_to(reshape(in.place < steps, {samples, 1}), alpha.shape());
    return std::tuple{select(goes_on, next, alpha), std::tuple<>{}};
  };
  const var first = select(equal(state, 0), constant(b, 0, {p.element(), grid.shape}), never);
  const step_inputs all{p, iota(b, {steps.element(), {p.extent(0)}}, 0)};
  const var alpha = std::get<0>(scan(advance, first, all, {}, log_probabilities.at()));
  // Paths end in the last label or in the blank behind it.
  const var last = broadcast_to(reshape(2 * cast(lengths, dtype::i64), {samples, 1}), grid.shape);
  const var ends = logical_or(equal(state, last), equal(state, last - 1));
  var loss = -logsumexp(select(ends, alpha, full_like(alpha, never)), {1});
  const double beyond = o.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  loss = select(loss >= -0.5 * never, full_like(loss, beyond), loss);  // NaN stays
  if (o.reduce == reduction::mean) loss = loss / maximum(cast(lengths, p.element()), 1);
  return detail::reduce_loss(loss, o.reduce, log_probabilities.at());
}

}  // namespace cella
