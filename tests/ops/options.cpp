// Options describe themselves: all operations' through text and bytes.
#include <doctest/doctest.h>

#include <cella/graph/option_bytes.hpp>
#include <cella/graph/option_hash.hpp>
#include <cella/graph/print.hpp>
#include <cella/interop/option_json.hpp>
#include <cella/ops/list.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

using namespace cella;

namespace {

/// Options in which no field has its default.
attributes unusual(const op_info& op) {
  detail::option_bytes bytes{};
  int next = 3;
  auto put = [&](int offset, const auto& value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  };
  for (const option_field& f : op.options->fields) {
    switch (f.kind) {
      case option_kind::number:
        put(f.offset, 0.1 * next++);
        break;
      case option_kind::integer:
        for (int i = 0; i < f.count; ++i) put(f.offset + 4 * i, std::int32_t(next++));
        break;
      case option_kind::element:
        put(f.offset, stored_dtype{std::int32_t(dtype::i64)});
        break;
      case option_kind::extents:
        put(f.offset, shape{2, 3, 4});
        break;
      case option_kind::axes:
        put(f.offset, std::array<std::int8_t, max_rank>{2, 0, 1, -1, -1, -1, -1, -1});
        break;
      case option_kind::axis_set:
        put(f.offset, std::uint32_t{5});
        break;
      case option_kind::characters:
        put(f.offset, std::array<char, 4>{'a', 'b', 'c', '\0'});
        break;
    }
  }
  return std::bit_cast<attributes>(bytes);
}

std::string text_of(const op_info& op, const attributes& options, int rank = 3) {
  node n;
  n.op = &op;
  n.attributes = options;
  n.type = {dtype::f32, {}};
  for (int d = 0; d < rank; ++d) n.type.shape.push_back(2);
  return detail::options_text(n);
}

std::string refusal(const op_info& op, const std::vector<std::byte>& bytes) {
  try {
    read_options(op, bytes);
  } catch (const file_error& e) { return e.what(); }
  return "";
}
std::string json_refusal(const op_info& op, const std::string& json) {
  try {
    options_from_json(op, nlohmann::ordered_json::parse(json));
  } catch (const file_error& e) { return e.what(); }
  return "";
}

/// Options with one bit of them changed.
attributes with_other_bit(const attributes& o, std::size_t bit) {
  auto bytes = o.as<detail::option_bytes>();
  bytes[bit / 8] = char(bytes[bit / 8] ^ (1 << bit % 8));
  return std::bit_cast<attributes>(bytes);
}

}  // namespace

TEST_CASE("every operation is in the list") {
  std::set<std::string> declared, listed;
  const auto folder = std::filesystem::path(CELLA_SOURCE_DIR) / "include/cella/ops";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path());
    const std::regex name("  static constexpr std::string_view name = \"([a-z0-9_]+)\";");
    for (std::string line; std::getline(in, line);) {
      std::smatch found;
      if (std::regex_match(line, found, name)) declared.insert(found[1]);
    }
  }
  for (const op_info* op : all_operations::infos) listed.emplace(op->name);
  CHECK(declared.size() > 90);
  CHECK(declared == listed);
  CHECK(listed.size() == all_operations::size);
}

TEST_CASE("options of all operations come back from bytes") {
  int with_options = 0;
  for (const op_info* op : all_operations::infos) {
    INFO(op->name);
    if (!op->options) {
      CHECK(read_options(*op, write_options(*op, {})) == attributes{});
      continue;
    }
    ++with_options;
    for (const attributes& o : {unusual(*op), op->options->defaults}) {
      const std::vector<std::byte> bytes = write_options(*op, o);
      CHECK(read_options(*op, bytes) == o);
      // Wherever they are cut, that is said.
      for (std::size_t n = 0; n < bytes.size(); ++n) {
        const std::string why = refusal(*op, {bytes.begin(), bytes.begin() + std::ptrdiff_t(n)});
        CHECK(why == "the options of the operation \"" + std::string(op->name) + "\" are cut");
      }
    }
    CHECK(!(unusual(*op) == op->options->defaults));
    bool hidden = true;  // the result's type shows them, or the values that they name are shown
    for (const option_field& f : op->options->fields)
      hidden &= f.kind == option_kind::extents || f.kind == option_kind::element;
    hidden |= op->traits.stored;
    CHECK((text_of(*op, unusual(*op)) == "") == hidden);
  }
  CHECK(with_options > 35);
}

TEST_CASE("options of all operations come back from JSON, through its text") {
  for (const op_info* op : all_operations::infos) {
    INFO(op->name);
    if (!op->options) {
      CHECK(options_to_json(*op, {}).dump() == "{}");
      CHECK(options_from_json(*op, nlohmann::ordered_json::object()) == attributes{});
      continue;
    }
    for (const attributes& o : {unusual(*op), op->options->defaults}) {
      const std::string json = options_to_json(*op, o).dump();
      INFO(json);
      CHECK(options_from_json(*op, nlohmann::ordered_json::parse(json)) == o);
    }
    // Each field alone is read, and the others have their defaults.
    const nlohmann::ordered_json all = options_to_json(*op, unusual(*op));
    CHECK(all.size() == op->options->fields.size());
    for (const auto& [field, value] : all.items()) {
      const attributes one = options_from_json(*op, {{field, value}});
      const nlohmann::ordered_json back = options_to_json(*op, one);
      CHECK(back[field] == value);
      CHECK(back != options_to_json(*op, op->options->defaults));
      if (all.size() > 1) CHECK(back != all);
      const std::string why = json_refusal(*op, "{\"" + field + "\": {}}");
      CHECK(why.starts_with("the options of the operation \"" + std::string(op->name) +
                            "\" have in the field \"" + field + "\" the value {}; it must be "));
    }
  }
}

TEST_CASE("options as JSON are plain to read and to write") {
  auto json = [](const op_info& op, const attributes& o) { return options_to_json(op, o).dump(); };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(json(info_of<clamp_op>, clamp_op::options{-infinity, 0.1}) ==
        R"({"low":"-inf","high":0.1})");
  CHECK(json(info_of<clamp_op>, clamp_op::options{std::nan(""), infinity}) ==
        R"({"low":"nan","high":"inf"})");
  CHECK(json(info_of<sum_op>, axes_options{0b101}) == R"({"axes":[0,2]})");
  CHECK(json(info_of<cast_op>, cast_op::options{{std::int32_t(dtype::bf16)}}) ==
        R"({"element":"bf16"})");
  CHECK(json(info_of<transpose_op>, transpose_op::options{{2, 0, 1, -1, -1, -1, -1, -1}}) ==
        R"({"permutation":[2,0,1]})");
  CHECK(json(info_of<print_op>, print_op::options{{'"', 'x', '"'}}) == R"({"label":"\"x\""})");
  CHECK(json(info_of<convolution_op>, convolution_options{.window = {.stride = {2, 1}}}) ==
        R"({"stride":[2,1],"before":[0,0],"after":[0,0],"dilation":[1,1],"groups":1,)"
        R"("extents":[0,0]})");

  auto clamped = [](const std::string& text) {
    return options_from_json(info_of<clamp_op>, nlohmann::ordered_json::parse(text))
        .as<clamp_op::options>();
  };
  CHECK(clamped(R"({"high": "inf", "low": 3})").low == 3);
  CHECK(clamped(R"({"high": "inf", "low": 3})").high == infinity);
  CHECK(std::isnan(clamped(R"({"low": "nan"})").low));
  CHECK(std::signbit(clamped(json(info_of<clamp_op>, clamp_op::options{-0.0, 0})).low));
}

TEST_CASE("JSON that is no operation's options is refused by operation and field") {
  const std::string cumsum = "the options of the operation \"cumsum\" ";
  const std::string axis = cumsum + "have in the field \"axis\" the value ";
  auto refused = [](const std::string& json) { return json_refusal(info_of<cumsum_op>, json); };
  CHECK(refused("[0]") == cumsum + "are no JSON object");
  CHECK(refused(R"({"axes": 1})") == cumsum + "have an unknown field \"axes\"");
  for (const std::string value :
       {"1.5", "\"1\"", "[1]", "null", "2147483648", "-2147483649", "18446744073709551615"})
    CHECK(refused("{\"axis\": " + value + "}") ==
          axis + value + "; it must be an integer of 32 bits");
  CHECK(refused(R"({"axis": -2147483648, "reverse": 2147483647})") == "");
  CHECK(json_refusal(info_of<add_op>, R"({"axis": 0})") ==
        "the options of the operation \"add\" have an unknown field \"axis\"");

  auto must = [](const op_info& op, const std::string& json) {
    const std::string why = json_refusal(op, json);
    return why.substr(std::min(why.size(), why.find("it must be ")));
  };
  const std::string extents = "it must be a list of at most 8 extents";
  CHECK(must(info_of<reshape_op>, R"({"shape": [1,2,3,4,5,6,7,8,9]})") == extents);
  CHECK(must(info_of<reshape_op>, R"({"shape": [1,-1]})") == extents);
  CHECK(must(info_of<transpose_op>, R"({"permutation": [-1]})") ==
        "it must be a list of at most 8 axes");
  CHECK(must(info_of<sum_op>, R"({"axes": [32]})") == "it must be a list of axes");
  CHECK(must(info_of<max_pool_op>, R"({"kernel": [2]})") == "it must be a list of 2 integers");
  CHECK(must(info_of<cast_op>, R"({"element": "float"})") ==
        "it must be the name of an element type");
  CHECK(must(info_of<clamp_op>, R"({"low": "infinity"})") ==
        R"(it must be a number, "inf", "-inf" or "nan")");
  const std::string label = "it must be a string of less than 64 bytes";
  CHECK(must(info_of<print_op>, "{\"label\": \"" + std::string(64, 'x') + "\"}") == label);
  CHECK(must(info_of<print_op>, "{\"label\": \"" + std::string(63, 'x') + "\"}") == "");
  CHECK(must(info_of<print_op>, R"({"label": "a\u0000b"})") == label);
}

TEST_CASE("every field of every operation's options counts in their hash, and its name does") {
  std::set<std::uint64_t> seen;
  std::size_t hashed = 0;
  for (const op_info* op : all_operations::infos) {
    INFO(op->name);
    CHECK(seen.insert(hash(*op, {})).second);
    ++hashed;
    if (!op->options) continue;
    const attributes o = unusual(*op);
    CHECK(seen.insert(hash(*op, o)).second);
    ++hashed;
    CHECK(hash(*op, read_options(*op, write_options(*op, o))) == hash(*op, o));
    for (const option_field& f : op->options->fields)
      for (int bit = 0; bit < 8 * detail::bytes_of(f); ++bit) {
        const std::size_t at = std::size_t(8 * f.offset + bit);
        CHECK(seen.insert(hash(*op, with_other_bit(o, at))).second);
        ++hashed;
      }
  }
  CHECK(seen.size() == hashed);
  CHECK(hashed > 5000);
}

TEST_CASE("the hash is FNV-1a, in constant evaluation too") {
  // Published: of "foobar" it is 85944171f73967e8. Here a zero ends the name.
  op_info op;
  op.name = "foobar";
  static_assert([] {
    op_info named;
    named.name = "foobar";
    return hash(named, {});
  }() == 0x85944171f73967e8u * 1099511628211u);
  CHECK(hash(op, {}) == 0x85944171f73967e8u * 1099511628211u);
  static_assert(hash(info_of<cumsum_op>, cumsum_op::options{.axis = 1}) !=
                hash(info_of<cumsum_op>, cumsum_op::options{.reverse = 1}));
}

TEST_CASE("a field that bytes lack has its default") {
  const op_info& op = info_of<cumsum_op>;
  const cumsum_op::options written{.axis = 2, .reverse = 1, .exclusive = 1};
  std::vector<std::byte> bytes = write_options(op, written);
  bytes[0] = std::byte{2};                           // fields
  bytes.resize(bytes.size() - (1 + 9 + 1 + 1 + 4));  // without "exclusive"
  CHECK(read_options(op, bytes) == attributes(cumsum_op::options{.axis = 2, .reverse = 1}));
}

TEST_CASE("bytes of another operation, or hostile ones, are refused by name") {
  const std::vector<std::byte> slice = write_options(info_of<slice_op>, slice_op::options{});
  CHECK(refusal(info_of<cumsum_op>, slice) ==
        "the options of the operation \"cumsum\" have an unknown field \"shape\"");
  std::vector<std::byte> longer = slice;
  longer.push_back({});
  CHECK(refusal(info_of<slice_op>, longer) ==
        "the options of the operation \"slice\" are longer than their fields");
  std::vector<std::byte> rank = slice;
  rank[2 + 1 + 5 + 1 + 1] = std::byte{200};  // of its extents
  CHECK(refusal(info_of<slice_op>, rank) ==
        "the options of the operation \"slice\" have extents that no tensor has");
  std::vector<std::byte> cast = write_options(info_of<cast_op>, cast_op::options{{}});
  cast.back() = std::byte{'?'};
  CHECK(refusal(info_of<cast_op>, cast) ==
        "the options of the operation \"cast\" name the unknown element type \"f3?\"");
}

TEST_CASE("what has its default is not told, an axis always is") {
  CHECK(text_of(info_of<softmax_op>, detail::axis_options{}) == " {axis=0}");
  CHECK(text_of(info_of<cumsum_op>, cumsum_op::options{.axis = 1}) == " {axis=1}");
  CHECK(text_of(info_of<cumsum_op>, cumsum_op::options{.axis = 1, .reverse = 1}) ==
        " {axis=1, reverse=1}");
  CHECK(text_of(info_of<slice_op>, slice_op::options{{2, 2}}) == "");
  CHECK(text_of(info_of<slice_op>, slice_op::options{{2, 2}, {0, 3}}) == " {start=[0,3]}");
  CHECK(text_of(info_of<clamp_op>, clamp_op::options{0, 6}) == " {low=0, high=6}");
  CHECK(text_of(info_of<sum_op>, axes_options{0b101}) == " {axes=[0,2]}");
  CHECK(text_of(info_of<convolution_op>, convolution_options{.window = {.stride = {2, 2}}}) ==
        " {stride=[2,2]}");
  matmul_op::options o{iteration_space::no_axes, iteration_space::no_axes,
                       iteration_space::no_axes};
  o.a = {0, 1, -1, -1, -1, -1, -1, -1};
  o.b = {1, 2, -1, -1, -1, -1, -1, -1};
  o.result = {0, 2, -1, -1, -1, -1, -1, -1};
  CHECK(text_of(info_of<matmul_op>, o) == " {ij,jk->ik}");
}
