// Golden cases run in every way that a graph which exists at run time only can be run.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "support/golden_case.hpp"
#include "support/traced.hpp"

namespace cella::test {

/// What a case asks for: inputs and attributes -> outputs.
using golden_function = std::function<vars(const vars&, const nlohmann::json&)>;

/// Checks the outputs of a case and the gradients of its inputs: eagerly, through a graph traced at
/// run time, and planned on kernels, with one thread and with two.
void check_golden_case(const golden_case& c, const golden_function& f, double tolerance = 1e-10);

}  // namespace cella::test
