// Losses as objects that tell a training step what their targets are, and those of ops/loss.hpp.
#pragma once

#include <cella/ops/loss.hpp>
#include <cella/ops/softmax.hpp>

namespace cella::nn {

/// What losses of logits [..., C] say of their targets: labels [...], 0 to C - 1.
struct class_labels {
  static constexpr tensor_type target(const tensor_type& logits) {
    tensor_type t{dtype::i32, logits.shape};
    if (t.rank()) t.shape.erase(t.rank() - 1);
    return t;
  }
  /// Labels are below this.
  static constexpr std::int64_t classes(const tensor_type& logits) {
    return logits.rank() ? logits[logits.rank() - 1] : 0;
  }
};

/// Mean softmax cross-entropy over every place of a sequence: logits [..., C], integer labels
/// [...], 0 to C - 1, of the same leading axes or of all places in a row.
struct token_cross_entropy : class_labels {
  constexpr var operator()(var logits, var labels) const {
    builder& b = *logits.b;
    if (logits.rank() < 2 || logits.shape().size() / logits.extent(-1) != labels.shape().size()) {
      b.fail(text() << "token_cross_entropy: needs logits [...,C] and one label for each place: "
                    << b.describe(logits.id) << " is " << logits.shape() << ", "
                    << b.describe(labels.id) << " is " << labels.shape());
      return logits;
    }
    return softmax_cross_entropy(reshape(logits, {-1, logits.extent(-1)}), reshape(labels, {-1}));
  }
};

}  // namespace cella::nn
