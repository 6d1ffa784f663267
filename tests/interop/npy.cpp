#include <doctest/doctest.h>
#include <unistd.h>

#include <cella/interop/npy.hpp>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <support/memory_limit.hpp>
#include <vector>

#include "support/scratch_directory.hpp"

using namespace cella;
using test::contents;
using test::scratch_directory;
namespace fs = std::filesystem;

namespace {

/// A file of the given version; versions 2 and 3 have a header length of four bytes.
std::string file_of(std::string_view header, std::string_view data = {}, int version = 1) {
  std::string s = "\x93NUMPY";
  s += static_cast<char>(version);
  s += '\0';
  const auto length = static_cast<std::uint32_t>(header.size());
  s.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return s.append(header).append(data);
}

std::string dictionary(std::string_view descr, std::string_view shape,
                       std::string_view fortran = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran) +
         ", 'shape': " + std::string(shape) + ", }\n";
}

interop::npy_array parse(std::string_view bytes) {
  return interop::parse_npy(std::as_bytes(std::span(bytes)), "a.npy");
}

std::string refusal(std::string_view bytes) {
  try {
    parse(bytes);
  } catch (const file_error& e) { return e.what(); }
  return {};
}

void refused(std::string_view bytes, std::initializer_list<std::string_view> parts) {
  const std::string said = refusal(bytes);
  INFO("said: ", said);
  bool all = said.starts_with("\"a.npy\"") && said.find("; ") != said.npos;
  for (auto part : parts) all = all && said.find(part) != said.npos;
  CHECK(all);
}

}  // namespace

TEST_CASE("versions 1 to 3 load, keys in any order, either quotes") {
  for (int version : {1, 2, 3}) {
    const auto a = parse(file_of(dictionary("<i4", "(1, 2)"), {"\1\0\0\0\2\0\0\0", 8}, version));
    CHECK(a.type == tensor_type{dtype::i32, {1, 2}});
    std::int32_t values[2]{};
    a.copy_to(std::span<std::int32_t>(values));
    CHECK(values[0] == 1);
    CHECK(values[1] == 2);
  }
  const auto a =
      parse(file_of(R"({"shape":(3,),"descr":"|u1","fortran_order":False})", {"\1\2\3", 3}));
  CHECK(a.type == tensor_type{dtype::u8, {3}});
}

TEST_CASE("Fortran order becomes row-major") {
  // [[1 2 3] [4 5 6]] by columns, and a cube whose element is its own row-major index.
  const auto a = parse(file_of(dictionary("|u1", "(2, 3)", "True"), "\1\4\2\5\3\6"));
  const auto* const b = reinterpret_cast<const char*>(a.bytes.data());
  CHECK(std::string_view(b, 6) == "\1\2\3\4\5\6");
  std::string cube;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) cube += {static_cast<char>((i * 3 + j) * 4 + k), '\0'};
    }
  }
  const auto c = parse(file_of(dictionary("<f2", "(2, 3, 4)", "True"), cube));
  for (std::size_t i = 0; i < 24; ++i) CHECK(std::to_integer<std::size_t>(c.bytes[2 * i]) == i);
  CHECK(parse(file_of(dictionary("<f4", "(0, 3)", "True"))).bytes.empty());
  CHECK(parse(file_of(dictionary("|u1", "()", "True"), "x")).bytes.size() == 1);
}

TEST_CASE("every dtype, scalars and empty arrays survive writing and reading") {
  const scratch_directory folder("npy");
  std::mt19937 random(1);
  for (int code = 0; code < dtype_count; ++code) {
    const auto element = dtype(code);
    if (facts_of(element).npy.empty()) continue;
    for (const shape& s : {shape{}, shape{3}, shape{2, 0, 5}, shape{1, 2, 1, 2, 1, 2, 1, 2}}) {
      std::vector<std::byte> data(std::size_t(s.size()) * size_of(element));
      for (auto& b : data) b = std::byte(random() & (element == dtype::boolean ? 1 : 255));
      const tensor_type type{element, s};
      interop::write_npy(folder / "a.npy", type, data);
      const auto a = interop::read_npy(folder / "a.npy");
      CHECK(a.type == type);
      CHECK(a.bytes == data);
      // Elements end the file and begin at a multiple of 64 bytes, behind a line break.
      const auto start = contents(folder / "a.npy").size() - data.size();
      CHECK(start % 64 == 0);
      CHECK(contents(folder / "a.npy")[start - 1] == '\n');
    }
  }
}

TEST_CASE("the written bytes are those that numpy.save writes") {
  const scratch_directory folder("npy");
  const float values[2]{1, -2};
  interop::write_npy(folder / "a.npy", {dtype::f32, {2}}, std::as_bytes(std::span(values)));
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  CHECK(contents(folder / "a.npy") == file_of(header + std::string(117 - header.size(), ' ') + "\n",
                                              {"\0\0\x80\x3f\0\0\0\xc0", 8}));
}

TEST_CASE("what cannot be written is refused and leaves the old file") {
  const scratch_directory folder("npy");
  const auto path = folder / "a.npy";
  std::ofstream(path) << "old";
  const std::byte four[4]{};
  CHECK_THROWS_AS(interop::write_npy(path, {dtype::f32, {2}}, four), file_error);
  CHECK_THROWS_AS(interop::write_npy(path, {dtype::f32, {-1}}, four), file_error);
  CHECK_THROWS_AS(interop::write_npy(path, {dtype::record, {}}, {}), file_error);
  CHECK(contents(path) == "old");
}

TEST_CASE("a wrong destination is named") {
  const auto a = parse(file_of(dictionary("|u1", "(2,)"), "12"));
  std::vector<float> f(2);
  CHECK_THROWS_WITH_AS(a.copy_to(std::span(f)),
                       "tensor \"of the .npy file\" is u8[2], but the destination takes 2 elements "
                       "of f32; load the file that belongs to this model",
                       file_error);
}

TEST_CASE("a file that is no .npy file, or of a future version, is refused") {
  refused("", {"has 0 bytes"});
  refused("PK\3\4 this is a zip", {"does not begin with the mark of a .npy file"});
  refused(file_of(dictionary("|u1", "()"), "x", 4), {"the format version 4.0"});
  refused(file_of("", "", 2).substr(0, 10), {"ends before its header"});
}

TEST_CASE("a header length that cannot be true is refused") {
  std::string s = file_of(dictionary("|u1", "()"), "x", 2);
  std::memset(s.data() + 8, 0xff, 4);
  refused(s, {"a header of 4294967295 bytes"});
  refused(file_of(std::string(10'001, ' '), "", 2), {"a header of 10001 bytes", "at most 10000"});
}

TEST_CASE("a file that is cut anywhere, or goes on, is refused") {
  const std::string whole = file_of(dictionary("<f4", "(2,)"), "12345678");
  REQUIRE(refusal(whole).empty());
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK_FALSE(refusal(whole.substr(0, n)).empty());
  refused(whole + "9", {"is f32[2], 8 bytes, but holds 9"});
}

TEST_CASE("shapes that lie are refused") {
  const auto shaped = [](std::string_view shape) { return file_of(dictionary("<f8", shape)); };
  refused(shaped("(-1,)"), {"a negative extent"});
  refused(shaped("(1000000, 1000000)"), {"8000000000000 bytes, but holds 0"});
  refused(shaped("(2147483648,)"), {"an extent of 2147483648"});
  refused(shaped("(18446744073709551617,)"), {"an extent of 20 digits"});
  refused(shaped("(2147483647, 2147483647, 4)"), {"overflows 63 bits"});
  refused(shaped("(0, 2147483647, 2147483647, 4)"), {"overflows 63 bits"});
  refused(shaped("(1, 1, 1, 1, 1, 1, 1, 1, 1)"), {"more than the 8 dimensions"});
  refused(shaped("(3)"), {"no tuple"});
  refused(shaped("3"), {"lacks a ("});
  refused(shaped("((1,),)"), {"no tuple of integers"});
  refused(shaped("(1 2)"), {"no tuple"});
  refused(shaped("(1,"), {"no tuple of integers"});
}

TEST_CASE("the written bytes are those of NumPy, and are read again") {
  // numpy.save of the least and the greatest integer of each type, by NumPy 2.
  struct golden {
    dtype element;
    std::string_view descr, data;
  };
  using namespace std::string_view_literals;
  const golden files[] = {
      {dtype::i16, "<i2", "\x00\x80\xff\x7f"sv},
      {dtype::u16, "<u2", "\x00\x00\xff\xff"sv},
      {dtype::u32, "<u4", "\x00\x00\x00\x00\xff\xff\xff\xff"sv},
      {dtype::u64, "<u8", "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"sv},
      {dtype::i64, "<i8", "\x00\x00\x00\x00\x00\x00\x00\x80\xff\xff\xff\xff\xff\xff\xff\x7f"sv},
      // 1 - 2i and 0.5i
      {dtype::c64, "<c8", "\0\0\x80\x3f\0\0\0\xc0\0\0\0\0\0\0\0\x3f"sv},
      {dtype::c128, "<c16",
       "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0\x3f"sv},
  };
  const scratch_directory folder("npy");
  for (const golden& g : files) {
    std::string header =
        "{'descr': '" + std::string(g.descr) + "', 'fortran_order': False, 'shape': (2,), }";
    header.resize(117, ' ');
    const std::string file = file_of(header + "\n", g.data);
    REQUIRE(file.size() == 128 + g.data.size());
    const tensor_type type{g.element, {2}};
    interop::write_npy(folder / "g.npy", type, std::as_bytes(std::span(g.data)));
    CHECK(contents(folder / "g.npy") == file);
    const auto a = parse(file);
    CHECK(a.type == type);
    CHECK(std::string_view(reinterpret_cast<const char*>(a.bytes.data()), a.bytes.size()) ==
          g.data);
  }
}

TEST_CASE("types that cella lacks are refused by name with a remedy") {
  const auto typed = [](std::string_view descr) {
    return file_of(dictionary(descr, "()"), "12345678");
  };
  refused(typed(">f8"), {"big-endian", "\">f8\"", "newbyteorder"});
  refused(typed("<c32"), {"\"<c32\"", "save it as one of <f4, <f8"});
  refused(typed("|O"), {"\"|O\""});
  refused(typed("<f16"), {"\"<f16\""});
  refused(typed("=f8"), {"\"=f8\""});
  refused(typed(""), {"\"\""});
  refused(file_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }"),
          {"describes records"});
}

TEST_CASE("a boolean that is neither 0 nor 1 is refused") {
  refused(file_of(dictionary("|b1", "(2,)"), "\1\2"), {"the byte 2 for the boolean 1"});
}

TEST_CASE("headers that are not the expected dictionary are refused") {
  refused(file_of(""), {"lacks a {"});
  refused(file_of("{}"), {"lacks one of descr"});
  refused(file_of("{'descr': '<f4', 'descr': '<f4'}"), {"\"descr\" twice"});
  refused(file_of("{'evil': __import__('os')}"), {"\"evil\""});
  refused(file_of("{'descr' '<f4'}"), {"lacks a :"});
  refused(file_of("{'descr': '<f4"), {"without an end"});
  refused(file_of("{'descr': '<f4' 'shape': ()}"), {"lacks a comma"});
  refused(file_of("{'fortran_order': Maybe}"), {"no boolean"});
  refused(file_of("{'descr': '\xff'}"), {"not printable ASCII"});
  refused(file_of(dictionary("|u1", "()") + "x", "1"), {"after its closing brace"});
  refused(file_of("{'shape': " + std::string(9000, '(')), {"no tuple of integers"});
}

TEST_CASE("2000 mutations of a valid file load whole or are refused") {
  const std::string valid = file_of(dictionary("<f4", "(2, 3)"), std::string(24, 'x'));
  std::mt19937 random(21);
  int loaded = 0, refusals = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string s = valid;
    for (auto edits = 1 + random() % 3; edits-- > 0;) {
      if (s.empty()) s = valid;
      const std::size_t at = random() % s.size();
      switch (random() % 4) {
        case 0:
          s[at] = static_cast<char>(random());
          break;
        case 1:
          s.erase(at, 1 + random() % 8);
          break;
        case 2:
          s[at] = "0123456789-(){}',: TF"[random() % 21];
          break;
        default:
          s.resize(at + 1);
      }
    }
    try {
      const auto a = parse(s);
      ++loaded;
      CHECK(a.type.bytes() == static_cast<std::int64_t>(a.bytes.size()));
    } catch (const file_error& e) {
      ++refusals;
      CHECK(std::string_view(e.what()).starts_with("\"a.npy\""));
    }
  }
  CHECK(loaded + refusals == 2000);
  CHECK(loaded > 10);
  CHECK(refusals > 1000);
}

TEST_CASE("too little memory is an error that names the file and the bytes") {
  if (!test::memory_can_be_limited) return;
  const scratch_directory folder("npy");
  const auto path = folder / "large.npy";
  std::ofstream(path, std::ios::binary) << file_of(dictionary("<f4", "(4096, 4096)", "True"));
  const auto header = fs::file_size(path);
  fs::resize_file(path, header + (64u << 20));
  const std::string said =
      "cannot read \"" + path.string() + "\": no memory for 67108864 bytes; free";
  // The first limit is too little for the array, the second for a copy in the other order.
  for (const std::size_t megabytes : {16u, 100u}) {
    const auto found = test::refusal_with_memory(megabytes << 20, [&] { interop::read_npy(path); });
    CHECK(found.starts_with(said));
  }
  CHECK(interop::read_npy(path).bytes.size() == 64u << 20);
}
