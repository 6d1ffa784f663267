// Golden values: `X.json` lists cases and names tensors of `X.safetensors`. The folder is
// CELLA_GOLDEN, by default ../shared/golden beside the source root (CELLA_SOURCE_DIR, set by
// CMake).
#pragma once

#include <doctest/doctest.h>

#include <cella/interop/safetensors.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef CELLA_SOURCE_DIR
#define CELLA_SOURCE_DIR "."
#endif

namespace cella::test {

/// A tensor of a golden file. Every element type is widened to double, which holds all values of
/// F64, F32, F16, BF16, I32, I8, U8, BOOL, and integers of I64 up to 2^53 (others throw).
struct golden_tensor {
  dtype element{};
  cella::shape shape{};
  std::vector<double> values;
};

/// One case of `ops.json`. Cotangent i belongs to output i; outputs beyond the last cotangent are
/// not differentiable (indices). Without any, the operation has no gradient to check.
struct golden_case {
  std::string op;
  std::string name;  // "case" in the file
  nlohmann::json attrs;
  std::vector<golden_tensor> inputs, outputs, cotangents;
  std::vector<std::optional<golden_tensor>> input_gradients;  // none: no gradient flows there

  /// `matmul.batched`, for messages: `INFO(c.label())`.
  std::string label() const { return op + "." + name; }
};

inline golden_tensor widen(const interop::named_tensor& t) {
  golden_tensor result{t.type.element, t.type.shape, {}};
  result.values.reserve(static_cast<std::size_t>(t.type.size()));
  with_element(t.type.element, [&]<class T>() {
    for (std::size_t i = 0; i < t.bytes.size(); i += sizeof(T)) {
      T value{};
      std::memcpy(&value, t.bytes.data() + i, sizeof value);
      if constexpr (std::is_same_v<T, std::int64_t>) {
        constexpr std::int64_t exact = std::int64_t{1} << 53;
        if (value > exact || value < -exact) {
          throw file_error("golden tensor " + interop::in_quotes(t.name) + " holds " +
                           std::to_string(value) + ", which no double holds; choose a smaller one");
        }
      }
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
        result.values.push_back(double{static_cast<float>(value)});
      } else {
        result.values.push_back(static_cast<double>(value));
      }
    }
  });
  return result;
}

/// A golden file. A test that finds none returns:
///   const auto ops = golden::open("ops");
///   if (!ops) return;
///   for (std::size_t i = 0; i < ops->size(); ++i) { const auto c = ops->load_case(i); ... }
class golden {
 public:
  /// Nothing, and a doctest MESSAGE, if the default folder is absent. A folder that CELLA_GOLDEN
  /// names must hold the file: anything else would skip the test that somebody asked for.
  static std::optional<golden> open(const std::string& name) {
    const char* chosen = std::getenv("CELLA_GOLDEN");
    const std::filesystem::path folder =
        chosen ? std::filesystem::path(chosen)
               : std::filesystem::path(CELLA_SOURCE_DIR) / "../shared/golden";
    if (!chosen && !std::filesystem::is_directory(folder)) {
      MESSAGE("skipped: no golden files in ", folder.string(), "; set CELLA_GOLDEN");
      return std::nullopt;
    }
    const auto text = interop::read_file(folder / (name + ".json"), 64u << 20);
    const auto* const begin = reinterpret_cast<const char*>(text.data());
    return golden(nlohmann::json::parse(begin, begin + text.size()),
                  interop::safetensors_file::open(folder / (name + ".safetensors")));
  }

  /// The whole of `X.json`: an array of cases.
  const nlohmann::json& json() const { return json_; }
  std::size_t size() const { return json_.size(); }

  bool contains(std::string_view name) const { return file_.find(name).has_value(); }
  /// Throws `file_error` if the file has no such tensor.
  golden_tensor tensor(std::string_view name) const { return widen(file_.at(name)); }

  /// Case `i` of a file in the form of `ops.json`, with its tensors.
  golden_case load_case(std::size_t i) const {
    const nlohmann::json& c = json_.at(i);
    golden_case result{c.at("op"),
                       c.at("case"),
                       c.value("attrs", nlohmann::json::object()),
                       list(c, "inputs"),
                       list(c, "outputs"),
                       list(c, "cotangents"),
                       {}};
    for (const auto& name : c.value("input_gradients", nlohmann::json::array())) {
      result.input_gradients.emplace_back(
          name.is_null() ? std::nullopt : std::optional(tensor(name.get<std::string>())));
    }
    return result;
  }

 private:
  golden(nlohmann::json cases, interop::safetensors_file file)
      : json_(std::move(cases)), file_(std::move(file)) {}

  std::vector<golden_tensor> list(const nlohmann::json& c, const char* key) const {
    std::vector<golden_tensor> result;
    for (const auto& name : c.value(key, nlohmann::json::array())) {
      result.push_back(tensor(name.get<std::string>()));
    }
    return result;
  }

  nlohmann::json json_;
  interop::safetensors_file file_;
};

}  // namespace cella::test
