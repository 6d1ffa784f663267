// What the shorter examples have in common: their figures are printed, and with `--json FILE`
// written.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/interop/file.hpp>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

/// Runs an example, which returns its figures; the status of its program.
template <class Example>
int report(int argc, char** argv, Example example) try {
  if (argc != 1 && !(argc == 3 && std::string_view(argv[1]) == "--json"))
    throw cella::error("there is one option, --json FILE");
  const nlohmann::ordered_json figures = example();
  for (const auto& [name, value] : figures.items()) std::cout << name << ": " << value << '\n';
  if (argc == 3) {
    cella::interop::write_atomically(argv[2],
                                     [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
  return 0;
} catch (const std::exception& e) {
  std::cerr << argv[0] << ": " << e.what() << '\n';
  return 2;
}
