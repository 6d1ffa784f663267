// Tables of numbers and words from CSV files, as columns of samples.
// Source: RFC 4180, Common Format and MIME Type for CSV files, 2005.
//
//   const auto table = data::read_csv("houses.csv");
//   data::tensor_dataset samples(table.values({"rooms", "area"}), table.values({"price"}));
#pragma once

#include <cella/data/tensor.hpp>
#include <cella/interop/file.hpp>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace cella::data {

/// How a CSV file is written, and what is allowed.
struct csv_options {
  char separator = ',';
  bool header = true;  ///< the first record names the columns; else their names are "0", "1", ...
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
};

/// What a CSV file holds: records of as many fields each, which become numbers when they are asked
/// for. What is asked for and is not there throws `file_error`, which names line and column.
class csv_table {
 public:
  std::int64_t rows() const { return static_cast<std::int64_t>(lines_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  /// A field as it stands in the file, without quotes.
  std::string_view text(std::int64_t row, std::string_view name) const {
    return field(row, place(name));
  }

  /// Columns as numbers of type `T`: [rows(), number of names]. Blanks around a number are skipped;
  /// one too near to 0 for the type is rounded to 0.
  template <class T = float>
  column<T> values(const std::vector<std::string>& names) const;
  /// One column of whole numbers as labels: [rows()].
  column<std::int32_t> labels(std::string_view name) const {
    return {shape{rows()}, numbers<std::int32_t>({place(name)})};
  }
  /// One column of words as labels: the number of each in `words`, from 0. [rows()]
  column<std::int32_t> labels(std::string_view name, const std::vector<std::string>& words) const;

 private:
  friend csv_table parse_csv(std::string bytes, const std::string& name,
                             const csv_options& options);
  struct reader;
  struct piece {
    std::size_t first{}, length{};
  };

  std::string_view field(std::int64_t row, std::size_t column) const {
    const piece p = fields_[static_cast<std::size_t>(row) * names_.size() + column];
    return std::string_view(bytes_).substr(p.first, p.length);
  }
  std::size_t place(std::string_view name) const;
  template <class T>
  static bool is_rounded_to_zero(std::string_view text, T& value);
  template <class T>
  std::vector<T> numbers(const std::vector<std::size_t>& columns) const;
  file_error fault(std::size_t row, std::size_t column, const std::string& what) const {
    return file_error(file_ + ", line " + std::to_string(lines_[row]) + ", column " +
                      std::to_string(column + 1) + " (" + interop::in_quotes(names_[column]) +
                      "): " + interop::in_quotes(field(std::int64_t(row), column)) + " " + what);
  }

  std::string file_;   // in quotes
  std::string bytes_;  // of the file; quoted fields are unquoted in their places
  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> places_;  // of the names
  std::vector<piece> fields_;
  std::vector<std::int64_t> lines_;  // in which each record begins, from 1
};

/// Reads a table: fields between separators, records of equal length in lines that end with LF or
/// CR LF, fields with separators, line breaks or quotes in quotes, quotes in them doubled. A mark
/// of UTF-8 at the front is skipped, one of UTF-16 refused. Throws `file_error` for a file that is
/// missing, too large, or no such table, an empty line among the reasons.
csv_table read_csv(const std::filesystem::path& path, const csv_options& options = {});

/// The same from memory; `name` is for messages.
csv_table parse_csv(std::string bytes, const std::string& name, const csv_options& options = {});

/// Goes through the bytes once, field by field.
struct csv_table::reader {
  csv_table& to;
  const csv_options& options;
  std::size_t at{};
  std::int64_t line = 1;

  [[noreturn]] void refuse(std::int64_t where, const std::string& what) const {
    throw file_error(to.file_ + ", line " + std::to_string(where) + ": " + what);
  }
  bool at_line_end() const {
    const std::string& b = to.bytes_;
    return at == b.size() || b[at] == '\n' || (b[at] == '\r' && b.compare(at, 2, "\r\n") == 0);
  }
  piece quoted() {
    std::string& b = to.bytes_;
    const std::int64_t began = line;
    const std::size_t first = ++at;
    std::size_t end = first;
    for (;; ++at) {
      if (at == b.size()) refuse(began, "a quote is opened and never closed; close it");
      if (b[at] == '"' && (++at == b.size() || b[at] != '"')) break;
      line += b[at] == '\n';
      b[end++] = b[at];
    }
    if (!at_line_end() && b[at] != options.separator)
      refuse(line, "text follows a closing quote; double the quotes within a field");
    return {first, end - first};
  }
  piece plain() {
    const std::size_t first = at;
    for (; !at_line_end() && to.bytes_[at] != options.separator; ++at) {
      if (to.bytes_[at] == '"')
        refuse(line, "a quote stands within a field; put the field in quotes and double this one");
      if (to.bytes_[at] == '\r')
        refuse(line, "a carriage return ends no line; let lines end with LF or CR LF");
    }
    return {first, at - first};
  }
  std::vector<piece> record() {
    std::vector<piece> fields;
    if (at_line_end()) refuse(line, "the line is empty; take it out");
    for (;; ++at) {
      fields.push_back(at < to.bytes_.size() && to.bytes_[at] == '"' ? quoted() : plain());
      if (at_line_end()) break;
    }
    if (at < to.bytes_.size()) at += to.bytes_[at] == '\r' ? 2 : 1;
    ++line;
    return fields;
  }
};

inline csv_table parse_csv(std::string bytes, const std::string& name, const csv_options& options) {
  const char s = options.separator;
  if (s == '"' || s == '\n' || s == '\r')
    throw error("read_csv: a quote or a line end separates no fields; give another separator");
  csv_table table;
  table.file_ = interop::in_quotes(name, 4096);
  table.bytes_ = std::move(bytes);
  csv_table::reader in{table, options};
  if (table.bytes_.starts_with("\xef\xbb\xbf")) in.at = 3;
  if (table.bytes_.starts_with("\xff\xfe") || table.bytes_.starts_with("\xfe\xff"))
    in.refuse(1, "the text is UTF-16; save it as UTF-8");
  if (in.at == table.bytes_.size()) in.refuse(1, "the file is empty; give one with a table");
  while (in.at < table.bytes_.size()) {
    const std::int64_t began = in.line;
    const auto fields = in.record();
    if (table.names_.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i) {
        auto own = options.header ? table.bytes_.substr(fields[i].first, fields[i].length)
                                  : std::to_string(i);
        if (!table.places_.emplace(own, i).second)
          in.refuse(began, "two columns are called " + interop::in_quotes(own) + "; rename one");
        table.names_.push_back(std::move(own));
      }
      if (options.header) continue;
    }
    if (fields.size() != table.names_.size()) {
      in.refuse(began, "there are " + std::to_string(fields.size()) + " fields, but " +
                           std::to_string(table.names_.size()) +
                           " columns; mend the line, or name the right separator");
    }
    table.fields_.insert(table.fields_.end(), fields.begin(), fields.end());
    table.lines_.push_back(began);
  }
  if (table.lines_.size() > std::size_t(std::numeric_limits<std::int32_t>::max()))
    throw file_error(table.file_ + " has 2^31 records or more; split it");
  return table;
}

inline csv_table read_csv(const std::filesystem::path& path, const csv_options& options) {
  const auto bytes = interop::read_file(path, options.max_bytes);
  return interop::with_memory(interop::in_quotes(path.native(), 4096), bytes.size(), [&] {
    return parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.native(),
                     options);
  });
}

inline std::size_t csv_table::place(std::string_view name) const {
  if (const auto found = places_.find(name); found != places_.end()) return found->second;
  std::string all;
  for (const std::string& n : names_) all += (all.empty() ? "" : ", ") + interop::in_quotes(n);
  if (all.size() > 400) all = all.substr(0, 400) + " ...";
  throw file_error(file_ + ": there is no column " + interop::in_quotes(name) +
                   "; there are: " + all);
}

/// Whether a number that the type does not hold lies too near to 0 for it; `value` is what is
/// nearest to it then.
template <class T>
bool csv_table::is_rounded_to_zero([[maybe_unused]] std::string_view text, T& value) {
  if constexpr (std::floating_point<T>) {
    long double wide{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), wide);
    if (code != std::errc{} || !(wide > -1 && wide < 1)) return false;
    value = static_cast<T>(wide);
    return true;
  }
  return false;
}

template <class T>
std::vector<T> csv_table::numbers(const std::vector<std::size_t>& columns) const {
  std::vector<T> all;
  all.reserve(lines_.size() * columns.size());
  for (std::size_t row = 0; row < lines_.size(); ++row) {
    for (const std::size_t c : columns) {
      std::string_view f = field(std::int64_t(row), c);
      while (!f.empty() && (f.front() == ' ' || f.front() == '\t')) f.remove_prefix(1);
      while (!f.empty() && (f.back() == ' ' || f.back() == '\t')) f.remove_suffix(1);
      if (f.size() > 1 && f[0] == '+' && f[1] != '-') f.remove_prefix(1);
      T value{};
      const auto [end, code] = std::from_chars(f.data(), f.data() + f.size(), value);
      if (code == std::errc::result_out_of_range && !is_rounded_to_zero(f, value))
        throw fault(row, c, "lies outside of the numbers of the type asked for");
      if ((code != std::errc{} && code != std::errc::result_out_of_range) ||
          end != f.data() + f.size()) {
        throw fault(row, c,
                    std::integral<T> ? "is no whole number; mend it, or leave the record out"
                                     : "is no number; mend it, or leave the record out");
      }
      if constexpr (std::floating_point<T>) {
        if (!(value - value == 0)) throw fault(row, c, "is not finite; leave the record out");
      }
      all.push_back(value);
    }
  }
  return all;
}

template <class T>
column<T> csv_table::values(const std::vector<std::string>& names) const {
  std::vector<std::size_t> columns;
  for (const std::string& n : names) columns.push_back(place(n));
  return {shape{rows(), std::int64_t(names.size())}, numbers<T>(columns)};
}

inline column<std::int32_t> csv_table::labels(std::string_view name,
                                              const std::vector<std::string>& words) const {
  const std::size_t c = place(name);
  std::map<std::string_view, std::int32_t> numbers;  // of equal words the first one's
  for (const std::string& word : words) numbers.emplace(word, std::int32_t(&word - words.data()));
  std::vector<std::int32_t> all;
  for (std::size_t row = 0; row < lines_.size(); ++row) {
    const auto word = numbers.find(field(std::int64_t(row), c));
    if (word == numbers.end()) throw fault(row, c, "is none of the words given; add it to them");
    all.push_back(word->second);
  }
  return {shape{rows()}, std::move(all)};
}

}  // namespace cella::data
