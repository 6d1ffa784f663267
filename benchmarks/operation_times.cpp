// Times single operations, each as a plan that this process makes, and prints a line of JSON for
// each: for operation_times.py, which runs the same calls in other frameworks.
//
// usage: operation_times [--seconds SECONDS] [--steps] [NAME...]
//                                    SECONDS: for each operation and size; 0.1 by default
//                                    --steps: prints the steps of the plans instead
#include <algorithm>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/builder.hpp>
#include <cella/ops/strided.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "operation_times/rows.hpp"

namespace {

using namespace cella;
using namespace cella::benchmark;
using clock_type = std::chrono::steady_clock;

/// Element i of operand k, in [0, 1): operation_times.py computes the same.
double number(std::uint32_t i, std::uint32_t k) {
  std::uint32_t h = i + k * 0x9e3779b9u;
  h = (h ^ (h >> 16)) * 0x7feb352du;
  h = (h ^ (h >> 15)) * 0x846ca68bu;
  return (h ^ (h >> 16)) / 4294967296.0;
}
aligned_buffer filled(const operand_form& f, std::uint32_t k) {
  aligned_buffer memory{std::size_t(f.type.bytes())};
  for (std::int64_t i = 0; i < f.type.size(); ++i) {
    const double x = f.low + (f.high - f.low) * number(std::uint32_t(i), k);
    write_element({memory.data(), f.type}, i, is_floating(f.type.element) ? x : std::floor(x));
  }
  return memory;
}
graph traced(const operation_row& row) {
  builder b;
  list<var> x;
  for (const operand_form& f : row.operands)
    x.push_back({&b, b.input(f.type, input_role::argument, "x")});
  const node_id y = row.call(x).id;
  b.g.outputs.push_back({});
  b.end(ids(1, y));
  // The key of operations that draw random numbers: with the same one, nothing need be drawn again.
  for (input_info& in : b.g.inputs) in.role = input_role::argument;
  return compiled_once::optimize(std::move(b.g));
}
/// The mean of what is finite, by which results are compared.
double mean(const tensor_ref& y) {
  double sum = 0;
  for (std::int64_t i = 0; i < y.type.size(); ++i) {
    const double v = read_element(y, i);
    if (std::isfinite(v)) sum += v;
  }
  return sum / double(std::max<std::int64_t>(1, y.type.size()));
}
/// The least microseconds of a call; short ones are timed in bunches.
double least_time(loaded_program& run, double seconds) {
  double best = 1e9;
  int bunch = 1;
  const auto end = clock_type::now() + std::chrono::duration<double>(seconds);
  for (int turn = 0; turn < 3 || clock_type::now() < end; ++turn) {
    const auto before = clock_type::now();
    for (int k = 0; k < bunch; ++k) run();
    const double took =
        std::chrono::duration<double, std::micro>(clock_type::now() - before).count();
    best = std::min(best, took / bunch);
    if (took < 50) bunch *= 2;
  }
  return best;
}
void measure(const operation_row& row, bool large, double seconds, bool steps) {
  std::vector<aligned_buffer> memory;
  for (const operand_form& f : row.operands)
    memory.push_back(filled(f, std::uint32_t(memory.size())));
  const graph g = traced(row);
  if (g.inputs.size() > memory.size()) memory.emplace_back(2 * sizeof(std::uint64_t));
  loaded_program run(g, dtype::f32);
  for (std::size_t k = 0; k < memory.size(); ++k) run.bind(int(k), memory[k].data());
  if (steps) {
    std::cout << "==== " << row.name << "\n";
    run.explain(std::cout);
    return;
  }
  const double us = least_time(run, seconds);
  std::printf(
      "{\"framework\": \"cella\", \"operation\": \"%s\", \"family\": \"%s\", "
      "\"elements\": %d, \"us\": %.4f, \"mean\": %.9g, \"operands\": [",
      row.name.c_str(), row.family.c_str(), large ? 1000000 : 1000, us, mean(run.result(0)));
  for (std::size_t k = 0; k < row.operands.size(); ++k) {
    const operand_form& f = row.operands[k];
    std::printf("%s[\"%s\", [", k ? ", " : "", std::string(name(f.type.element)).c_str());
    for (int d = 0; d < f.type.rank(); ++d) std::printf("%s%d", d ? ", " : "", f.type[d]);
    std::printf("], %g, %g]", f.low, f.high);
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0.1;
  bool steps = false;
  std::vector<std::string_view> names;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (a == "--steps")
      steps = true;
    else if (a == "--seconds" && i + 1 < argc)
      seconds = std::atof(argv[++i]);
    else
      names.push_back(a);
  }
  for (bool large : {true, false}) {
    for (const operation_row& row : operation_rows(large)) {
      if (!names.empty() && std::find(names.begin(), names.end(), row.name) == names.end())
        continue;
      try {
        measure(row, large, seconds, steps);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "operation_times: %s: %s\n", row.name.c_str(), e.what());
        return 1;
      }
    }
  }
}
