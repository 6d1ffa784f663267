// Any bytes load as a .npy file or throw file_error; what loads is whole. For libFuzzer.
#include <cella/interop/npy.hpp>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace {

void check(std::string_view bytes) {
  using namespace cella;
  try {
    const auto array = interop::parse_npy(std::as_bytes(std::span(bytes)), "fuzzed");
    if (array.type.bytes() != static_cast<std::int64_t>(array.bytes.size())) std::abort();
    volatile std::int64_t sink = row_major_strides(array.type.shape)[0];
    (void)sink;
  } catch (const file_error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(input);
  // The same bytes as a header, as its type and as its shape: blind search seldom spells the keys.
  const auto file = [](std::string_view header) {
    const auto length = static_cast<std::uint32_t>(header.size());
    std::string s("\x93NUMPY\2\0", 8);
    return s.append(reinterpret_cast<const char*>(&length), 4).append(header).append(16, '\1');
  };
  check(file(input));
  check(file("{'descr':'" + input + "','fortran_order':True,'shape':(4,2,2)}"));
  check(file("{'descr':'<i4','fortran_order':True,'shape':(" + input + ")}"));
  return 0;
}
