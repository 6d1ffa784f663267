// libFuzzer target: any bytes are read as a table or refused with a `file_error`; what is read has
// all its fields, and they become numbers or are refused.
#include <cella/data/csv.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(bytes), size);
  for (const bool header : {true, false}) {
    try {
      const auto table = cella::data::parse_csv(input, "fuzz", {.header = header});
      std::size_t characters = 0;
      for (std::int64_t row = 0; row < table.rows(); ++row)
        for (const auto& name : table.names()) characters += table.text(row, name).size();
      if (characters > size) __builtin_trap();
      const auto numbers = table.values<double>(table.names());
      if (numbers.size() != table.rows()) __builtin_trap();
    } catch (const cella::file_error&) {}
  }
  return 0;
}
