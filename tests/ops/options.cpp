// Options describe themselves: all operations' through text and bytes.
#include <doctest/doctest.h>

#include <cella/graph/option_bytes.hpp>
#include <cella/graph/print.hpp>
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
