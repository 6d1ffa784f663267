// Any bytes load as a safetensors file or throw file_error; what loads is whole. For libFuzzer.
#include <cella/interop/safetensors.hpp>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace {

void check(std::string_view bytes) {
  using namespace cella;
  try {
    const auto file = interop::safetensors_file::parse(std::as_bytes(std::span(bytes)), "fuzzed");
    std::uint64_t sum = 0;
    for (const auto& t : file.tensors()) {
      if (t.type.bytes() != static_cast<std::int64_t>(t.bytes.size())) std::abort();
      if (!file.find(t.name)) std::abort();
      for (auto b : t.bytes) sum += std::to_integer<std::uint64_t>(b);
      sum += static_cast<std::uint64_t>(row_major_strides(t.type.shape)[0]);
    }
    // Keeps the reads above from being optimized away.
    volatile std::uint64_t sink = sum;
    (void)sink;
  } catch (const file_error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(input);
  // The same bytes as a header of the right length with 16 bytes of data: blind search seldom hits
  // a length that leads past the first check.
  const std::uint64_t length = size;
  check(std::string(reinterpret_cast<const char*>(&length), 8) + input + std::string(16, '\1'));
  return 0;
}
