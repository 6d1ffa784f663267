// libFuzzer target: any bytes are read as an IDX array or refused with a `file_error`.
#include <cella/data/idx.hpp>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <variant>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(bytes), size));
  try {
    const auto array = cella::data::parse_idx(in, size, "fuzz");
    const auto count = std::visit([](const auto& v) { return v.size(); }, array.values);
    if (static_cast<std::int64_t>(count) != array.extents.size()) __builtin_trap();
  } catch (const cella::file_error&) {}
  return 0;
}
