// Golden values: `X.json` lists cases and names tensors of `X.safetensors`. The folder is
// tests/golden, or the one that CELLA_GOLDEN names.
#pragma once

#include <doctest/doctest.h>

#include <cella/graph/shape.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cella::test {

/// A tensor of a golden file. Every element type is widened to double, which holds all values of
/// F64, F32, F16, BF16, I32, I8, U8, BOOL, and integers of I64 up to 2^53 (others throw).
struct golden_tensor {
  dtype element{};
  cella::shape shape{};
  std::vector<double> values;
};

/// A golden file.
class golden {
 public:
  /// Throws `file_error` if a file is missing: a test without its values has to fail.
  static golden open(const std::string& name);
  /// The same from tests/golden, whatever CELLA_GOLDEN says: values that this repository makes.
  static golden open_own(const std::string& name);
  static std::filesystem::path folder();

  /// The whole of `X.json`: an array of cases.
  const nlohmann::json& json() const;
  std::size_t size() const;

  bool contains(std::string_view name) const;
  /// Throws `file_error` if the file has no such tensor.
  golden_tensor tensor(std::string_view name) const;

 private:
  struct content;
  static golden open(const std::filesystem::path& folder, const std::string& name);
  explicit golden(std::shared_ptr<const content> c) : content_(std::move(c)) {}
  std::shared_ptr<const content> content_;
};

}  // namespace cella::test
