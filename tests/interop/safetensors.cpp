#include <doctest/doctest.h>
#include <unistd.h>

#include <cella/interop/safetensors.hpp>
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

std::string with_length(std::uint64_t length, std::string_view rest) {
  std::string s(sizeof length, '\0');
  std::memcpy(s.data(), &length, sizeof length);
  return s.append(rest);
}

std::string file_of(std::string_view header, std::size_t data_bytes = 0) {
  return with_length(header.size(), header) + std::string(data_bytes, '\0');
}

interop::safetensors_file parse(std::string_view bytes) {
  return interop::safetensors_file::parse(std::as_bytes(std::span(bytes)), "m.safetensors");
}

/// What the reader says about a file; empty if it loads.
std::string refusal(std::string_view bytes) {
  try {
    parse(bytes);
  } catch (const file_error& e) { return e.what(); }
  return {};
}

/// Whether the refusal names the file, holds every part, and ends with a remedy.
bool refused(std::string_view bytes, std::initializer_list<std::string_view> parts) {
  const std::string said = refusal(bytes);
  INFO("said: ", said);
  bool all = said.starts_with("\"m.safetensors\"") && said.find("; ") != said.npos;
  for (auto part : parts) all = all && said.find(part) != said.npos;
  CHECK(all);
  return all;
}

const std::string two_tensors =
    R"({"__metadata__":{"by":"hand"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("flags":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}})";

}  // namespace

TEST_CASE("a file of the published form loads with names, types, bytes and metadata") {
  std::string bytes = file_of(two_tensors);
  const float values[] = {1.5F, -2};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values).append("\1\0\1", 3);
  const auto file = parse(bytes);
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "w");
  CHECK(file.tensors()[0].type == tensor_type{dtype::f32, {2, 1}});
  CHECK(file.metadata() == interop::safetensors_metadata{{"by", "hand"}});
  float w[2]{};
  file.at("w").copy_to(std::span<float>(w));
  CHECK(w[0] == 1.5F);
  CHECK(w[1] == -2);
  bool flags[3]{};
  file.at("flags").copy_to(std::span<bool>(flags));
  CHECK((flags[0] && !flags[1] && flags[2]));
  CHECK_FALSE(file.find("v").has_value());
}

TEST_CASE("tensors stay valid when the file object moves") {
  auto file = parse(file_of(two_tensors, 11));
  const auto w = file.at("w");
  const auto moved = std::move(file);
  CHECK(w.name == "w");
  CHECK(moved.at("w").bytes.data() == w.bytes.data());
}

TEST_CASE("tensors come in the order of their data, whatever the header's order") {
  const auto file = parse(file_of(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                  R"("a":{"data_offsets":[0,1],"shape":[],"dtype":"U8"}})",
                                  3));
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.at("b").bytes.data() == file.tensors()[1].bytes.data());
  CHECK(file.at("a").type.size() == 1);
}

TEST_CASE("an absent tensor and a wrong destination are named") {
  const auto file = parse(file_of(two_tensors, 11));
  CHECK_THROWS_WITH_AS(file.at("bias"),
                       "\"m.safetensors\" has no tensor \"bias\" among its 2; load the file that "
                       "belongs to this model",
                       file_error);
  std::vector<double> d(2);
  CHECK_THROWS_WITH_AS(
      file.at("w").copy_to(std::span(d)),
      "tensor \"w\" is f32[2,1], but the destination takes 2 elements of f64; load "
      "the file that belongs to this model",
      file_error);
  std::vector<float> f(3);
  CHECK_THROWS_AS(file.at("w").copy_to(std::span(f)), file_error);
}

TEST_CASE("every dtype, scalars and empty tensors survive writing and reading") {
  const scratch_directory folder("safetensors");
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> data;
  std::vector<interop::named_tensor> tensors;
  std::mt19937 random(1);
  for (int code = 0; code < dtype_count; ++code) {
    const auto element = dtype(code);
    const std::string_view name = facts_of(element).safetensors;
    if (name.empty()) continue;
    for (const shape& s : {shape{}, shape{3}, shape{2, 0, 5}, shape{1, 2, 1, 2, 1, 2, 1, 2}}) {
      names.push_back(std::string(name) + "/" + std::to_string(s.rank) + " \"\n\xc3\xa9");
      data.emplace_back(std::size_t(s.size()) * size_of(element));
      for (auto& b : data.back()) b = std::byte(random() & (element == dtype::boolean ? 1 : 255));
      tensors.push_back({{}, {element, s}, {}});
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = names[i];
    tensors[i].bytes = data[i];
  }
  const auto path = folder / "all.safetensors";
  interop::write_safetensors(path, tensors, {{"step", "7"}, {"\"", "\n\xc3\xa9"}});
  const auto file = interop::safetensors_file::open(path);
  REQUIRE(file.tensors().size() == tensors.size());
  CHECK(file.metadata() == interop::safetensors_metadata{{"step", "7"}, {"\"", "\n\xc3\xa9"}});
  for (const auto& t : tensors) {
    const auto found = file.find(t.name);
    REQUIRE(found.has_value());
    CHECK(found->type == t.type);
    CHECK(std::ranges::equal(found->bytes, t.bytes));
  }
  SUBCASE("and a second writing gives the same bytes") {
    interop::write_safetensors(folder / "again", file.tensors(), file.metadata());
    CHECK(contents(folder / "again") == contents(path));
  }
  SUBCASE("and elements lie aligned for their type, widest first") {
    std::size_t last = 8;
    std::uint64_t at = 0;
    for (const auto& t : file.tensors()) {
      const std::size_t width = size_of(t.type.element);
      CHECK(width <= last);
      CHECK(at % width == 0);
      CHECK(reinterpret_cast<std::uintptr_t>(t.bytes.data()) % width == 0);
      last = width;
      at += t.bytes.size();
    }
    std::uint64_t length = 0;
    std::memcpy(&length, contents(path).data(), sizeof length);
    CHECK(length % 8 == 0);
  }
}

TEST_CASE("a file without tensors loads and can be written") {
  CHECK(parse(file_of("{}")).tensors().empty());
  const scratch_directory folder("safetensors");
  interop::write_safetensors(folder / "none", {});
  CHECK(contents(folder / "none") == file_of("{}      "));
  interop::write_safetensors(folder / "none", {}, {{"k", "v"}});
  CHECK(interop::safetensors_file::open(folder / "none").metadata().at("k") == "v");
}

TEST_CASE("the written bytes are those of the published form") {
  const scratch_directory folder("safetensors");
  const std::byte b{7};
  const std::int64_t l = -1;
  const float f = 1;
  const std::vector<interop::named_tensor> tensors{
      {"b", {dtype::u8, {1}}, {&b, 1}},
      {"z", {dtype::f32, {}}, std::as_bytes(std::span(&f, 1))},
      {"a", {dtype::f32, {1, 1}}, std::as_bytes(std::span(&f, 1))},
      {"l", {dtype::i64, {1}}, std::as_bytes(std::span(&l, 1))}};
  interop::write_safetensors(folder / "f", tensors);
  std::string header = R"({"l":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                       R"("a":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},)"
                       R"("z":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
                       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(contents(folder / "f") ==
        file_of(header) +
            std::string("\xff\xff\xff\xff\xff\xff\xff\xff\0\0\x80\x3f\0\0\x80\x3f\7", 17));
}

TEST_CASE("tensors of all types are in the order of the reference implementation") {
  // What safetensors 0.6 lists for one tensor of each type of NumPy, named by its type.
  constexpr std::string_view order[] = {"U64", "I64", "F64", "C64", "F32", "U32", "I32",
                                        "F16", "U16", "I16", "I8",  "U8",  "BOOL"};
  std::vector<interop::named_tensor> tensors;
  const std::array<std::byte, 8> zeros{};
  for (const dtype_facts& t : dtype_table) {
    if (std::ranges::find(order, t.safetensors) == std::end(order)) continue;
    const auto element = dtype(&t - dtype_table);
    tensors.push_back({t.safetensors, {element, {1}}, std::span(zeros).first(t.size)});
  }
  const scratch_directory folder("safetensors");
  interop::write_safetensors(folder / "order", tensors);
  const std::string file = contents(folder / "order");
  std::size_t at = 0;
  for (std::string_view type : order) {
    const auto next = file.find("\"" + std::string(type) + "\":{\"dtype\":\"" + std::string(type));
    CHECK(next != file.npos);
    CHECK(next > at);
    at = next;
  }
}

TEST_CASE("what cannot be written is refused by name and leaves the old file") {
  const scratch_directory folder("safetensors");
  const auto path = folder / "model";
  std::ofstream(path) << "old";
  const std::byte four[4]{}, two{2};
  const auto refusal_of = [&](std::vector<interop::named_tensor> tensors,
                              const interop::safetensors_metadata& metadata = {}) -> std::string {
    try {
      interop::write_safetensors(path, tensors, metadata);
    } catch (const file_error& e) { return e.what(); }
    return {};
  };
  const interop::named_tensor good{"w", {dtype::f32, {1}}, four};
  CHECK(refusal_of({good, good}) ==
        "cannot write tensor \"w\": its name is taken twice; rename one");
  CHECK(refusal_of({{"w", {dtype::f32, {2}}, four}}) ==
        "cannot write tensor \"w\": f32[2] takes 8 bytes, but 4 were given; pass all of it");
  CHECK(refusal_of({{"__metadata__", {dtype::f32, {1}}, four}}).find("another") !=
        std::string::npos);
  CHECK(refusal_of({{"w", {dtype::record, {}}, {}}}).find("of dtype record") != std::string::npos);
  const std::array<std::byte, 16> sixteen{};
  CHECK(refusal_of({{"w", {dtype::c128, {1}}, sixteen}}) ==
        "cannot write tensor \"w\" of dtype c128: safetensors has none like it; write its parts");
  CHECK(refusal_of({{"w", {dtype::f32, {-1}}, four}}).find("an extent of") != std::string::npos);
  CHECK(refusal_of({{"w", {dtype::boolean, {}}, {&two, 1}}}).find("the byte 2") !=
        std::string::npos);
  CHECK(refusal_of({{"\xff", {dtype::f32, {1}}, four}}).find("not UTF-8") != std::string::npos);
  CHECK(refusal_of({good}, {{"k", "\xff"}}).find("not UTF-8") != std::string::npos);
  CHECK(contents(path) == "old");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a header length that cannot be true is refused before memory is taken for it") {
  refused("", {"has 0 bytes", "at least 8"});
  refused("1234567", {"has 7 bytes"});
  refused(with_length(~std::uint64_t{0}, "{}"), {"header of 18446744073709551615 bytes"});
  refused(with_length(100'000'001, "{}"), {"header of 100000001 bytes, but only 2 follow"});
  refused(with_length(3, "{}"), {"header of 3 bytes, but only 2 follow"});
  refused(with_length(0, ""), {"not JSON"});
}

TEST_CASE("files of PyTorch, NumPy and Keras are called what they are") {
  using namespace std::string_literals;
  refused("PK\3\4\0\0\10\10\0\0\0\0"s, {"is a zip archive, as torch.save", "save_file"});
  refused("\x89HDF\r\n\x1a\n\0\0\0\0"s, {"is an HDF5 file, as Keras", "save_file"});
}

TEST_CASE(
    "a header longer than the limit is refused before it is read, unless the limit is raised") {
  const scratch_directory folder("safetensors");
  const auto path = folder / "long";
  std::ofstream(path, std::ios::binary) << with_length(25'000'001, "{}");
  fs::resize_file(path, 8 + 25'000'001);
  const std::string said = "\"" + path.string() +
                           "\" has a header of 25000001 bytes, but at most 25000000 are allowed; "
                           "raise max_header of safetensors_file::open if you trust the file";
  CHECK_THROWS_WITH_AS(interop::safetensors_file::open(path), said.c_str(), file_error);
  CHECK_THROWS_WITH_AS(interop::safetensors_file::open(path, 25'000'001),
                       doctest::Contains("hold no NUL"), file_error);
  const std::string bytes = file_of(two_tensors, 11);
  const auto parse_within = [&](std::uint64_t limit) {
    return interop::safetensors_file::parse(std::as_bytes(std::span(bytes)), "m", limit);
  };
  CHECK(parse_within(two_tensors.size()).tensors().size() == 2);
  CHECK_THROWS_AS(parse_within(two_tensors.size() - 1), file_error);
}

TEST_CASE("too little memory is an error that names the file and its bytes") {
  if (!test::memory_can_be_limited) return;
  const scratch_directory folder("safetensors");
  const auto refusal_of = [&](const std::string& start, std::size_t size, std::size_t memory) {
    const auto path = folder / "large";
    std::ofstream(path, std::ios::binary) << start;
    fs::resize_file(path, size);
    const auto said =
        test::refusal_with_memory(memory, [&] { interop::safetensors_file::open(path); });
    CHECK(said.starts_with("cannot read \"" + path.string() + "\": no memory for "));
    return said;
  };
  const std::string large =
      file_of(R"({"w":{"dtype":"U8","shape":[67108864],"data_offsets":[0,67108864]}})");
  CHECK(refusal_of(large, large.size() + (64u << 20), 16u << 20).find(" 67108864 bytes") !=
        std::string::npos);
  // The text of this header fits, but not the names in it.
  std::string header = "{";
  for (int i = 0; header.size() < 20'000'000; ++i) {
    header += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  header.back() = '}';
  const std::string many = file_of(header);
  CHECK(refusal_of(many, many.size(), 40u << 20).find(std::to_string(many.size()) + " bytes") !=
        std::string::npos);
}

TEST_CASE("a cut file is refused and names the tensor") {
  refused(file_of(two_tensors, 10), {"tensor \"flags\"", "data_offsets [8,11]", "10 bytes"});
  refused(file_of(two_tensors, 12), {"has 12 bytes of data, but its tensors take 11"});
}

TEST_CASE("a file that is cut anywhere is refused") {
  const std::string whole = file_of(two_tensors, 11);
  REQUIRE(refusal(whole).empty());
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK_FALSE(refusal(whole.substr(0, n)).empty());
}

TEST_CASE("data offsets that lie are refused by the tensor's name") {
  const auto one = [](const char* offsets, std::size_t bytes = 4) {
    return file_of(
        R"({"w":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(offsets) + "}}", bytes);
  };
  REQUIRE(refusal(one("[0,4]")).empty());
  refused(one("[4,0]"), {"tensor \"w\"", "[4,0]", "end before they begin"});
  refused(one("[0,8]"), {"tensor \"w\"", "[0,8]", "holds 4 bytes"});
  refused(one("[18446744073709551612,18446744073709551615]"), {"tensor \"w\"", "holds 4 bytes"});
  refused(one("[0,3]"), {"tensor \"w\" is f32[1], 4 bytes, but has data_offsets [0,3]"});
  refused(one("[0]"), {"tensor \"w\"", "not two numbers"});
  refused(one("[0,4,4]"), {"tensor \"w\"", "not two numbers"});
  refused(one("[-1,3]"), {"tensor \"w\"", "the negative number -1 in its data_offsets"});
  refused(one("[4,8]", 8), {"tensor \"w\"", "[4,8]", "a hole after byte 0"});
}

TEST_CASE("overlaps and holes between tensors are refused with both names or the place") {
  const auto two = [](const char* second, std::size_t bytes) {
    return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"U8","shape":[4],"data_offsets":)" +
                       std::string(second) + "}}",
                   bytes);
  };
  REQUIRE(refusal(two("[4,8]", 8)).empty());
  refused(two("[2,6]", 6), {"tensor \"b\" with data_offsets [2,6] overlaps tensor \"a\""});
  refused(two("[0,4]", 4), {"tensor \"b\"", "overlaps tensor \"a\""});
  refused(two("[6,10]", 10), {"tensor \"b\"", "leaves a hole after byte 4"});
}

TEST_CASE("shapes that lie are refused by the tensor's name") {
  const auto shaped = [](const std::string& shape, std::size_t bytes = 4) {
    return file_of(R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,)" +
                       std::to_string(bytes) + "]}}",
                   bytes);
  };
  REQUIRE(refusal(shaped("[1,1]")).empty());
  refused(shaped("[-1]"), {"tensor \"w\"", "the negative number -1 in its shape"});
  refused(shaped("[2]"), {"tensor \"w\" is f32[2], 8 bytes"});
  refused(shaped("[1.0]"), {"tensor \"w\"", "\"1.0\"", "no integer"});
  refused(shaped("[18446744073709551616]"), {"tensor \"w\"", "no integer of 64 bits"});
  refused(shaped("[4294967296]"), {"tensor \"w\"", "an extent of 4294967296", "split it"});
  refused(shaped("[2147483647,2147483647,2147483647]"), {"tensor \"w\"", "overflows 63 bits"});
  refused(shaped("[0,2147483647,2147483647,2147483647]", 0), {"tensor \"w\"", "overflows 63 bits"});
  refused(shaped("[1,1,1,1,1,1,1,1,1]"), {"tensor \"w\"", "more than the 8 dimensions"});
  refused(shaped("4"), {"tensor \"w\"", "a number in its shape"});
  refused(shaped("[\"1\"]"), {"tensor \"w\"", "a string in its shape"});
  refused(shaped("null"), {"tensor \"w\"", "null in its shape"});
}

TEST_CASE("dtypes that cella lacks are refused by name") {
  for (const char* dtype : {"F8_E4M3", "C128", "f32", ""}) {
    refused(
        file_of(R"({"w":{"dtype":")" + std::string(dtype) +
                R"(","shape":[0],"data_offsets":[0,0]}})"),
        {"tensor \"w\"", "the dtype \"" + std::string(dtype) + "\"", "save it as one of F32, F64"});
  }
}

TEST_CASE("a boolean that is neither 0 nor 1 is refused") {
  refused(file_of(R"({"w":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})") + "\1\2",
          {"tensor \"w\" holds the byte 2 for the boolean 1"});
}

TEST_CASE("deep JSON is refused at its first wrong bracket") {
  for (char c : {'[', '{'}) {
    refused(file_of(std::string(1'000'000, c)), {"not JSON"});
    refused(file_of("{\"w\":" + std::string(1'000'000, c)), {});
    refused(file_of("{\"w\":{\"shape\":" + std::string(1'000'000, c)), {"tensor \"w\""});
    refused(file_of("{\"__metadata__\":{\"k\":" + std::string(1'000'000, c)), {"metadata"});
  }
  refused(file_of(R"({"w":[]})"), {"tensor \"w\" has an array in its entry"});
  refused(file_of(R"({"w":3})"), {"tensor \"w\" has a number in its entry"});
}

TEST_CASE("duplicates are refused, because readers would differ on which one counts") {
  const std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  refused(file_of("{\"w\":" + entry + ",\"w\":" + entry + "}"), {"tensor \"w\" is there twice"});
  refused(file_of("{\"w\":" + entry + ",\"\\u0077\":" + entry + "}"), {"\"w\" is there twice"});
  refused(file_of(R"({"__metadata__":{},"__metadata__":{}})"), {"\"__metadata__\" is there twice"});
  refused(file_of(R"({"__metadata__":{"k":"a","k":"b"}})"), {"the metadata \"k\" twice"});
  refused(file_of(R"({"w":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}})"),
          {"tensor \"w\" has the field \"dtype\" twice"});
}

TEST_CASE("missing and unknown fields are refused by name") {
  refused(file_of(R"({"w":{"dtype":"U8","shape":[0]}})"), {"tensor \"w\" lacks", "data_offsets"});
  refused(file_of(R"({"w":{"dtype":"U8","data_offsets":[0,0]}})"), {"tensor \"w\" lacks", "shape"});
  refused(file_of(R"({"w":{"shape":[0],"data_offsets":[0,0]}})"), {"tensor \"w\" lacks", "dtype"});
  refused(file_of(R"({"w":{"strides":[0]}})"), {"tensor \"w\" has the unknown field \"strides\""});
  refused(file_of(R"({"__metadata__":{"k":1}})"), {"the metadata has a number in its field \"k\""});
}

TEST_CASE("a header that is not JSON is refused with the place and the reason") {
  refused(file_of("not json"), {"not JSON"});
  refused(file_of(" {}"), {"must begin with {"});
  refused(file_of("{\"w\" 3}"), {"not JSON, at its byte 6"});
  refused(file_of("{} {}"), {"not JSON, at its byte 4"});
  refused(file_of("{"), {"not JSON"});
  refused(file_of(std::string("{}\0{\"w\":1}", 10)), {"hold no NUL"});
}

TEST_CASE("names that are not UTF-8 are refused, and messages stay printable and short") {
  refused(file_of("{\"\xff\":1}"), {"ill-formed UTF-8"});
  refused(file_of("{\"\xc3\":1}"), {"ill-formed UTF-8"});
  CHECK(refusal(file_of("{\"" + std::string(1'000'000, 'x') + "\xff\":1}")).size() < 300);
  const auto said = refusal(file_of("{\"\\u001b[2J" + std::string(1'000'000, 'x') + "\":1}"));
  CHECK(said.size() < 300);
  CHECK(said.find('\x1b') == said.npos);
  CHECK(said.find("a number in its entry") != said.npos);
}

TEST_CASE("2000 mutations of a valid file load whole or are refused") {
  const std::string valid = file_of(two_tensors, 11);
  std::mt19937 random(20);
  int loaded = 0, refusals = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string s = valid;
    for (auto edits = 1 + random() % 4; edits-- > 0;) {
      if (s.empty()) s = valid;
      const std::size_t at = random() % s.size();
      switch (random() % 5) {
        case 0:
          s[at] = static_cast<char>(random());
          break;
        case 1:
          s.erase(at, 1 + random() % 8);
          break;
        case 2:
          s.insert(at, s.substr(random() % s.size(), random() % 16));
          break;
        case 3:
          s[at] = "0123456789-[]{}\",:."[random() % 19];
          break;
        default:
          s.resize(at + 1);
      }
      // A length that fits lets the edit reach the code behind it.
      if (random() % 2 && s.size() > 8) {
        const std::uint64_t length = s.size() > 19 ? s.size() - 19 : 0;
        std::memcpy(s.data(), &length, sizeof length);
      }
    }
    try {
      const auto file = parse(s);
      ++loaded;
      for (const auto& t : file.tensors()) {
        CHECK(t.type.bytes() == static_cast<std::int64_t>(t.bytes.size()));
      }
    } catch (const file_error& e) {
      ++refusals;
      CHECK(std::string_view(e.what()).starts_with("\"m.safetensors\""));
    }
  }
  CHECK(loaded + refusals == 2000);
  CHECK(loaded > 10);
  CHECK(refusals > 1000);
}
