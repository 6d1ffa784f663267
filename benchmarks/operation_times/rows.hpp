// The vocabulary as a table of calls, for `operation_times`.
#pragma once

#include <cella/ops/op.hpp>
#include <functional>
#include <string>
#include <vector>

namespace cella::benchmark {

/// What an operand's elements are: numbers between two bounds, whole ones if it is of integers.
struct operand_form {
  tensor_type type{};
  double low{}, high{};
};

struct operation_row {
  std::string name, family;
  std::vector<operand_form> operands;
  std::function<var(const list<var>&)> call;
};

/// Calls whose largest operand has about a million elements, or about a thousand.
std::vector<operation_row> operation_rows(bool large);

}  // namespace cella::benchmark
