#include <doctest/doctest.h>

#include <cella/data/csv.hpp>
#include <cella/data/dataset.hpp>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "support/scratch_directory.hpp"

using namespace cella;
using namespace cella::data;
using cella::test::scratch_directory;

namespace {

csv_table parse(const std::string& bytes, const csv_options& options = {}) {
  return parse_csv(bytes, "t.csv", options);
}
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const file_error& e) { return e.what(); }
  return "accepted";
}
std::string refusal_of(const std::string& bytes) {
  return message_of([&] { parse(bytes); });
}
template <class T>
std::vector<T> all_of(const column<T>& c) {
  return {c.view().begin(), c.view().end()};
}

}  // namespace

TEST_CASE("columns of numbers are taken by name, in the order asked for") {
  const auto t = parse("a,b,c\n1,2.5,-3e2\n4, 5 ,+6\n");
  CHECK(t.rows() == 2);
  CHECK(t.names() == std::vector<std::string>{"a", "b", "c"});
  const auto x = t.values({"c", "a"});
  CHECK(x.extents() == shape{2, 2});
  CHECK(all_of(x) == std::vector<float>{-300, 1, 6, 4});
  CHECK(all_of(t.values({"b"})) == std::vector<float>{2.5f, 5});
  CHECK(t.values<double>({"b"}).view()[0] == 2.5);
}

TEST_CASE("labels are whole numbers, or words by their place in a list") {
  const auto t = parse("n,word\n3,oak\n-1,elm\n0,oak\n");
  CHECK(all_of(t.labels("n")) == std::vector<std::int32_t>{3, -1, 0});
  const auto w = t.labels("word", {"elm", "oak"});
  CHECK(all_of(w) == std::vector<std::int32_t>{1, 0, 1});
  CHECK(all_of(t.labels("word", {"elm", "oak", "elm"})) == std::vector<std::int32_t>{1, 0, 1});
  CHECK(message_of([&] { t.labels("word", {"oak"}); }) ==
        "\"t.csv\", line 3, column 2 (\"word\"): \"elm\" is none of the words given; add it to "
        "them");
}

TEST_CASE("quotes are read as RFC 4180 says") {
  // The examples of section 2 of the RFC, rules 1 to 7, with both line ends.
  for (const std::string end : {"\n", "\r\n"}) {
    const auto t = parse("x,y,z" + end + "\"aaa\",\"b" + end + "bb\",\"ccc\"" + end +
                         "zzz,yyy,\"b\"\"bb\"" + end + ",\"\",\"x,y\"");
    REQUIRE(t.rows() == 3);
    CHECK(t.text(0, "x") == "aaa");
    CHECK(t.text(0, "y") == "b" + end + "bb");
    CHECK(t.text(1, "z") == "b\"bb");
    CHECK(t.text(2, "x") == "");
    CHECK(t.text(2, "y") == "");
    CHECK(t.text(2, "z") == "x,y");
  }
  CHECK(parse("\xef\xbb\xbf\"a\"\n1\n").names() == std::vector<std::string>{"a"});
  CHECK(parse("a\n\"\"\n").rows() == 1);
}

TEST_CASE("other separators, and tables without a header") {
  const csv_options options{.separator = ';', .header = false};
  const auto t = parse("1;2,5\n3;4\n", options);
  CHECK(t.names() == std::vector<std::string>{"0", "1"});
  CHECK(all_of(t.values({"0"})) == std::vector<float>{1, 3});
  CHECK(t.text(0, "1") == "2,5");
  CHECK(parse("a,b\n").rows() == 0);
  CHECK_THROWS_AS(parse("a\n", {.separator = '"'}), error);
}

TEST_CASE("what is no table is refused with its line") {
  CHECK(refusal_of("") == "\"t.csv\", line 1: the file is empty; give one with a table");
  CHECK(refusal_of("a,b\n1,2\n3\n") ==
        "\"t.csv\", line 3: there are 1 fields, but 2 columns; mend the line, or name the right "
        "separator");
  CHECK(refusal_of("a\n1\n\n2\n") == "\"t.csv\", line 3: the line is empty; take it out");
  CHECK(refusal_of("a\n\"1\n2\n") ==
        "\"t.csv\", line 2: a quote is opened and never closed; close it");
  CHECK(refusal_of("a,b\n\"1\" ,2\n") ==
        "\"t.csv\", line 2: text follows a closing quote; double the quotes within a field");
  CHECK(refusal_of("a\n1\"2\n") ==
        "\"t.csv\", line 2: a quote stands within a field; put the field in quotes and double "
        "this one");
  CHECK(refusal_of("a\r1\r") ==
        "\"t.csv\", line 1: a carriage return ends no line; let lines end with LF or CR LF");
  CHECK(refusal_of("a,a\n") == "\"t.csv\", line 1: two columns are called \"a\"; rename one");
}

TEST_CASE("what is no number is refused with its line and column") {
  // The record of line 2 goes on in line 3.
  const auto t = parse("note,n\n\"two\nlines\",1\nx,1e999\ny,nan\nz,\nw,1.5\n");
  CHECK(message_of([&] { t.values({"n"}); }) ==
        "\"t.csv\", line 4, column 2 (\"n\"): \"1e999\" lies outside of the numbers of the type "
        "asked for");
  CHECK(message_of([&] { t.values({"note"}); }) ==
        "\"t.csv\", line 2, column 1 (\"note\"): \"two?lines\" is no number; mend it, or leave "
        "the record out");
  CHECK(message_of([&] {
          parse("n\nnan\n").values({"n"});
        }).ends_with("\"nan\" is not finite; leave the record out"));
  CHECK(message_of([&] {
          parse("n\n\"\"\n").values({"n"});
        }).ends_with("\"\" is no number; mend it, or leave the record out"));
  CHECK(message_of([&] {
          parse("n\n1.5\n").labels("n");
        }).ends_with("\"1.5\" is no whole number; mend it, or leave the record out"));
  CHECK(message_of([&] {
          parse("n\n3000000000\n").labels("n");
        }).ends_with("lies outside of the numbers of the type asked for"));
  CHECK(message_of([&] { parse("n\n+-1\n").values({"n"}); }) != "accepted");
  CHECK(message_of([&] { parse("n,m\n1,2\n").values({"N"}); }) ==
        "\"t.csv\": there is no column \"N\"; there are: \"n\", \"m\"");
}

TEST_CASE("numbers too near to 0 for their type are rounded, and no others") {
  const auto t = parse("n\n1e-50\n-1e-50\n1e-40\n1e-320\n");
  CHECK(all_of(t.values({"n"})) == std::vector<float>{0, 0, 1e-40f, 0});
  CHECK(std::signbit(all_of(t.values({"n"}))[1]));
  CHECK(all_of(t.values<double>({"n"})) == std::vector<double>{1e-50, -1e-50, 1e-40, 1e-320});
  CHECK(all_of(parse("n\n-1e-400\n").values<double>({"n"})) == std::vector<double>{0});
  for (const char* n : {"1e39", "-1e39", "1e-50x"})
    CHECK_THROWS_AS(parse("n\n" + std::string(n) + "\n").values({"n"}), file_error);
  CHECK_THROWS_AS(parse("n\n1e-50\n").values<std::int32_t>({"n"}), file_error);
}

TEST_CASE("a text in UTF-16 is told from one whose columns have other names") {
  for (const std::string mark : {"\xff\xfe", "\xfe\xff"})
    CHECK(refusal_of(mark + "n") == "\"t.csv\", line 1: the text is UTF-16; save it as UTF-8");
}

TEST_CASE("a file is read from disk, and not one that is too large") {
  const scratch_directory directory("csv");
  const auto path = directory / "t.csv";
  std::ofstream(path) << "x,y\n1,2\n3,4\n";
  const auto t = read_csv(path);
  const tensor_dataset samples(t.values({"x"}), t.values({"y"}));
  CHECK(samples.size() == 2);
  CHECK(samples.column<1>()[1] == 4);
  CHECK_THROWS_AS(read_csv(path, {.max_bytes = 5}), file_error);
  CHECK_THROWS_AS(read_csv(directory / "none.csv"), file_error);
}
