// A rule for matrices: steps whose singular values are all about 1.
#pragma once

#include <cella/ops/attention.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/optim/optimizers.hpp>

namespace cella::optim {

/// About U V^T of a matrix x = U S V^T: `steps` times x = a x + (b x x^T + c (x x^T)^2) x from x /
/// |x| on, which brings all singular values near to 1.  Newton and Schulz; coefficients: Jordan
/// 2024
constexpr var orthogonalize(operand matrix, int steps = 5, double epsilon = 1e-7) {
  var x = matrix.in(*matrix.owner());
  if (x.rank() != 2) {
    x.b->fail(text() << matrix.at() << ": orthogonalize: needs a matrix: " << x.b->describe(x.id)
                     << " is " << x.shape());
    return x;
  }
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  const bool tall = x.extent(0) > x.extent(1);
  if (tall) x = transpose(x, {1, 0});
  x = x / (sqrt(sum(square(x))) + epsilon);
  for (int i = 0; i < steps; ++i) {
    const var squares = matmul(x, x, false, true);
    x = a * x + matmul(b * squares + c * matmul(squares, squares), x);
  }
  return tall ? transpose(x, {1, 0}) : x;
}

/// m = momentum m + (1 - momentum) g; w -= rate (sqrt(max(1, rows / columns)) orthogonalize(m) +
/// weight_decay w), with Nesterov's momentum of g + momentum (m - g). Filters are matrices [Out,
/// all others]. Vectors need another rule: `optim::parts(part<"*.weight">(muon{}), rest(adamw{}))`.
/// Jordan et al. 2024
struct muon {
  named_options by_name{};
  double momentum = 0.95;
  double weight_decay = 0;
  bool nesterov = true;
  int steps = 5;

  constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "muon",
                     {{"momentum", momentum, 0, 1},
                      {"weight_decay", weight_decay},
                      {"steps", double(steps), 1}}))
      return;
    const var w = c.parameter();
    if (w.rank() < 2) {
      w.b->fail(text() << "optim::muon: \"" << c.name() << "\" is " << w.type()
                       << "; the rule is for matrices: give others one of their own with "
                          "optim::parts");
      return;
    }
    const var m = detail::decayed_slot(c, "muon_m", momentum, g * (1 - momentum));
    const var direction = nesterov ? g + momentum * (m - g) : m;
    const std::int64_t rows = w.extent(0), columns = w.shape().size() / rows;
    var step = orthogonalize(reshape(direction, {rows, columns}), steps);
    if (rows > columns) step = step * cella::detail::square_root(double(rows) / double(columns));
    step = reshape(step, w.shape());
    if (weight_decay != 0) step = step + w * weight_decay;
    c.update_parameter(w - step * c.learning_rate());
  }
};

}  // namespace cella::optim
