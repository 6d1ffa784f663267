// Copies tensor files through the library, so that a Python peer can compare both sides:
//   safetensors_tool safetensors IN OUT    reads and writes a safetensors file
//   safetensors_tool npy IN OUT            reads and writes a .npy file
//   safetensors_tool sample OUT            writes the sample that safetensors_peer.py expects
// Exits with 1 and the library's sentence on stderr if a file is refused.
#include <cella/interop/npy.hpp>
#include <cella/interop/safetensors.hpp>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace cella;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

void write_sample(const char* path) {
  const std::vector<double> f64{0, -1.5, 1e300, 0.1};
  const std::vector<float> f32{1, 2, 3, 4, 5, 6};
  const std::vector<float16> f16{float16(1.5F), float16(-2)};
  const std::vector<bfloat16> bf16{bfloat16(1.5F), bfloat16(-2)};
  const std::vector<std::int64_t> i64{-(std::int64_t{1} << 62)};
  const std::vector<std::int32_t> i32{-7, 8};
  const std::vector<std::int8_t> i8{-128, 127};
  const std::vector<std::uint8_t> u8{0, 255};
  const std::vector<std::uint8_t> flags{1, 0, 1};
  const std::vector<interop::named_tensor> tensors{{"f64", {dtype::f64, {2, 2}}, bytes_of(f64)},
                                                   {"f32", {dtype::f32, {3, 2}}, bytes_of(f32)},
                                                   {"f16", {dtype::f16, {2}}, bytes_of(f16)},
                                                   {"bf16", {dtype::bf16, {2}}, bytes_of(bf16)},
                                                   {"i64 scalar", {dtype::i64, {}}, bytes_of(i64)},
                                                   {"i32", {dtype::i32, {2, 1}}, bytes_of(i32)},
                                                   {"i8", {dtype::i8, {2}}, bytes_of(i8)},
                                                   {"u8", {dtype::u8, {2}}, bytes_of(u8)},
                                                   {"bool", {dtype::boolean, {3}}, bytes_of(flags)},
                                                   {"empty", {dtype::f32, {0, 4}}, {}}};
  interop::write_safetensors(path, tensors, {{"by", "cella \"\xc3\xa9\"\n"}});
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "sample" && argc == 3) {
    write_sample(argv[2]);
  } else if (mode == "safetensors" && argc == 4) {
    const auto file = interop::safetensors_file::open(argv[2]);
    interop::write_safetensors(argv[3], file.tensors(), file.metadata());
  } else if (mode == "npy" && argc == 4) {
    const auto array = interop::read_npy(argv[2]);
    interop::write_npy(argv[3], array.type, array.bytes);
  } else {
    std::cerr << "usage: safetensors_tool safetensors|npy IN OUT, or sample OUT\n";
    return 2;
  }
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
