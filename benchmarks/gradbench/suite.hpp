// The command line of the GradBench suite: `EVAL INPUT.json FUNCTION` prints the function's result
// as JSON, then one line of timing per run.
#pragma once

#include <array>
#include <cella/graph/error.hpp>
#include <cella/runtime/compile.hpp>
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradbench {

using json = nlohmann::json;
using numbers = std::vector<double>;

/// Sizes that a problem's programs are compiled for; sizes.hpp lists them.
template <int... N>
struct sizes {};
template <class... Sizes>
struct size_list {};

/// One run of a program of the suite.
class evaluation {
 public:
  /// Reads the input that the command line names.
  evaluation(int argc, char** argv) {
    if (argc != 3) throw cella::error(std::string("usage: ") + argv[0] + " INPUT.json FUNCTION");
    std::ifstream file(argv[1]);
    if (!file)
      throw cella::error(std::string(argv[1]) + " cannot be read; name an input of the suite");
    input = json::parse(file);
    function_ = argv[2];
  }

  json input;

  /// Calls `f.template operator()<N...>()` for the entry of `List` that equals `wanted`.
  template <class List, std::size_t Count, class F>
  void with_sizes(const std::array<int, Count>& wanted, F f) {
    bool found = false;
    std::string known;
    for_each_sizes(
        List{}, [&]<int... N>(sizes<N...>) {
          static_assert(sizeof...(N) == Count);
          known += known.empty() ? "" : ", ";
          known += text(std::array<int, Count>{N...});
          if (found || wanted != std::array<int, Count>{N...}) return;
          found = true;
          f.template operator()<N...>();
        });
    if (!found)
      throw cella::error("the input's sizes are " + text(wanted) +
                         " and this program is compiled for " + known +
                         "; add them to benchmarks/gradbench/sizes.hpp");
  }

  /// If the command line asks for this function: makes it from the arguments, calls it as often as
  /// the input wants, and prints its result.
  template <class Function, class... Arguments>
  void function(std::string_view name, const Arguments&... arguments) {
    names_ += names_.empty() ? "" : ", ";
    names_ += name;
    if (name != function_) return;
    done_ = true;
    const auto began = clock::now();
    Function f(arguments...);
    const auto prepared = since(began);
    const int min_runs = input.value("min_runs", 1);
    const double min_seconds = input.value("min_seconds", 0.0);
    std::vector<long long> times;
    double elapsed = 0;
    while (int(times.size()) < min_runs || elapsed < min_seconds) {
      const auto start = clock::now();
      f();
      times.push_back(since(start));
      elapsed += double(times.back()) * 1e-9;
    }
    std::cout << f.result() << '\n' << timing("prepare", prepared);
    for (long long t : times) std::cout << timing("evaluate", t);
  }

  /// Throws unless the function that was asked for has run.
  void finish() const {
    if (!done_)
      throw cella::error("there is no function " + function_ + " here; the functions are " +
                         names_);
  }

 private:
  using clock = std::chrono::steady_clock;

  static long long since(clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count();
  }
  static std::string timing(std::string_view name, long long nanoseconds) {
    return "{\"name\": \"" + std::string(name) +
           "\", \"nanoseconds\": " + std::to_string(nanoseconds) + "}\n";
  }
  template <std::size_t Count>
  static std::string text(const std::array<int, Count>& n) {
    std::string s;
    for (int x : n) s += (s.empty() ? "" : " x ") + std::to_string(x);
    return s;
  }
  template <class... Sizes, class F>
  static void for_each_sizes(size_list<Sizes...>, F f) {
    (f(Sizes{}), ...);
  }

  std::string function_;
  std::string names_;
  bool done_ = false;
};

/// `main` of a program of the suite: `body` gets the evaluation.
template <class Body>
int run(int argc, char** argv, Body body) try {
  evaluation e(argc, argv);
  body(e);
  e.finish();
  return 0;
} catch (const std::exception& e) {
  std::cerr << argv[0] << ": " << e.what() << '\n';
  return 1;
}

/// A tensor of doubles as an argument of a program.
template <int... Extents>
using reals = cella::tensor<cella::dtype::f64, Extents...>;

using cella::compiled;

/// A function of a vector, as a row [1,N], whose result is a vector, or a number if it has one
/// element.
template <class Cell, int N>
class vector_function {
 public:
  explicit vector_function(const numbers& x) : x_(x) {}
  void operator()() {
    const auto y = run_(x_);
    result_.assign(y.begin(), y.end());
  }
  json result() const { return result_.size() == 1 ? json(result_[0]) : json(result_); }

 private:
  const numbers& x_;
  numbers result_;
  compiled<Cell, reals<1, N>> run_;
};

/// The rows of a matrix, one after the other.
inline numbers flat(const json& rows) {
  numbers all;
  for (const json& row : rows) {
    for (const json& x : row) all.push_back(x);
  }
  return all;
}
/// A matrix as rows of this many numbers.
inline json rows_of(std::span<const double> all, std::size_t columns) {
  json rows = json::array();
  for (std::size_t i = 0; i < all.size(); i += columns) {
    const auto row = all.subspan(i, columns);
    rows.push_back(numbers(row.begin(), row.end()));
  }
  return rows;
}

}  // namespace gradbench
