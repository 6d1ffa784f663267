// The run-time number "step" of a training step.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/graph/text.hpp>
#include <string_view>

namespace cella {

/// Throws `error` if `name` is the step's number and `value` lies before the first step. Rules that
/// correct for a beginning from zero divide by 1 - beta^step: of step 0 all weights would be NaN.
inline void check_step(std::string_view name, double value) {
  if (name != "step" || value >= 1) return;
  throw error(text() << "the number \"step\" counts updates from 1, and was set to " << value);
}

}  // namespace cella
