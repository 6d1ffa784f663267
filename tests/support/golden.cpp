#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "support/golden_case.hpp"

namespace cella::test {

namespace {

std::vector<golden_tensor> list(const golden& file, const nlohmann::json& c, const char* key) {
  std::vector<golden_tensor> result;
  for (const auto& name : c.value(key, nlohmann::json::array()))
    result.push_back(file.tensor(name.get<std::string>()));
  return result;
}

}  // namespace

golden_tensor widen(const interop::named_tensor& t) {
  golden_tensor result{t.type.element, t.type.shape, {}};
  result.values.reserve(static_cast<std::size_t>(t.type.size()));
  with_element(t.type.element, [&]<class T>() {
    for (std::size_t i = 0; i < t.bytes.size(); i += sizeof(T)) {
      T value{};
      std::memcpy(&value, t.bytes.data() + i, sizeof value);
      if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
        constexpr T exact = T{1} << 53;
        if (value > exact || (std::is_signed_v<T> && value < T{} - exact)) {
          throw file_error("golden tensor " + interop::in_quotes(t.name) + " holds " +
                           std::to_string(value) + ", which no double holds; choose a smaller one");
        }
      }
      if constexpr (is_complex(dtype_of<T>)) {
        throw file_error("golden tensor " + interop::in_quotes(t.name) + " is complex");
      } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
        result.values.push_back(double{static_cast<float>(value)});
      } else {
        result.values.push_back(static_cast<double>(value));
      }
    }
  });
  return result;
}

struct golden::content {
  nlohmann::json cases;
  interop::safetensors_file file;
};

std::filesystem::path golden::folder() {
  const char* chosen = std::getenv("CELLA_GOLDEN");
  return chosen ? std::filesystem::path(chosen)
                : std::filesystem::path(CELLA_SOURCE_DIR) / "tests/golden";
}

golden golden::open(const std::string& name) { return open(folder(), name); }
golden golden::open_own(const std::string& name) {
  return open(std::filesystem::path(CELLA_SOURCE_DIR) / "tests/golden", name);
}
golden golden::open(const std::filesystem::path& folder, const std::string& name) {
  const auto path = folder / name;
  const auto text = interop::read_file(path.native() + ".json", 64u << 20);
  const auto* const begin = reinterpret_cast<const char*>(text.data());
  return golden(std::make_shared<const content>(
      content{nlohmann::json::parse(begin, begin + text.size()),
              interop::safetensors_file::open(path.native() + ".safetensors")}));
}

const nlohmann::json& golden::json() const { return content_->cases; }
std::size_t golden::size() const { return content_->cases.size(); }
bool golden::contains(std::string_view name) const { return content_->file.find(name).has_value(); }
golden_tensor golden::tensor(std::string_view name) const { return widen(content_->file.at(name)); }

golden_case load_case(const golden& file, std::size_t i) {
  const nlohmann::json& c = file.json().at(i);
  golden_case result{c.at("op"),
                     c.at("case"),
                     c.value("attrs", nlohmann::json::object()),
                     list(file, c, "inputs"),
                     list(file, c, "outputs"),
                     list(file, c, "cotangents"),
                     {}};
  for (const auto& name : c.value("input_gradients", nlohmann::json::array())) {
    result.input_gradients.emplace_back(
        name.is_null() ? std::nullopt : std::optional(file.tensor(name.get<std::string>())));
  }
  return result;
}

}  // namespace cella::test
