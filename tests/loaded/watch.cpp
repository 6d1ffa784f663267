#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cella/nn/layers.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/transform/trace.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace cella;

namespace {

struct environment {
  const char* name;
  environment(const char* n, const std::string& value) : name(n) { ::setenv(n, value.c_str(), 1); }
  ~environment() { ::unsetenv(name); }
};

/// Sums the products up; then a logarithm of them.
struct log_of_product {
  constexpr var operator()(var x) const { return log(matmul(x, x)) + 1; }
};
struct log_alone {
  constexpr var operator()(var x) const { return sum(log(x - 1) * x); }
};
struct masked {
  constexpr var operator()(var x) const {
    return softmax(select(x > 0.f, x, full_like(x, -std::numeric_limits<double>::infinity())), 1);
  }
};
struct small_net {
  nn::dense<8, 16> hidden{};
  nn::dense<16, 4> out{};
  constexpr var operator()(var x) const { return out(relu(hidden(x))); }
};

constexpr tensor_type two_by_two{dtype::f32, {2, 2}};

template <class Cell>
graph traced(const tensor_type& t) {
  Cell cell{};
  return compiled_once::optimize(trace(cell, std::array{t}));
}
/// Runs a plan of `Cell`, which has no parameters; what it throws.
template <class Cell>
std::string fault_of_plan(std::vector<float> x) {
  loaded_program run(traced<Cell>(two_by_two), dtype::f32);
  run.bind(0, reinterpret_cast<std::byte*>(x.data()));
  try {
    run();
  } catch (const number_error& e) { return e.what(); }
  return {};
}
template <class Cell>
std::string fault_of_program(std::vector<float> x) {
  using program = inference_program<Cell, tensor<dtype::f32, 2, 2>>;
  Cell cell;
  parameter_store store(cell, 1);
  executable<program> run(store);
  try {
    run(x);
  } catch (const number_error& e) { return e.what(); }
  return {};
}

/// Standard error, as a text, while `f` runs.
std::string errors_of(const std::function<void()>& f) {
  std::FILE* const file = std::tmpfile();
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::string all;
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) all.push_back(char(c));
  std::fclose(file);
  return all;
}
/// A plan of the small net, on inputs of its own.
struct planned_net {
  graph g = traced<small_net>({dtype::f32, {32, 8}});
  loaded_program run{g, dtype::f32};
  std::vector<std::vector<float>> memory;
  planned_net() {
    for (int i = 0; i < int(g.inputs.size()); ++i) {
      memory.emplace_back(std::size_t(g.type(g.input(i)).size()), 0.5f);
      run.bind(i, reinterpret_cast<std::byte*>(memory.back().data()));
    }
  }
};

}  // namespace

TEST_CASE("a plan stops at the first NaN or infinity with the sentence of a program") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const environment wanted("CELLA_DEBUG", "nan");
  CHECK(fault_of_plan<log_of_product>({1, 2, 3, 4}).empty());
  for (const std::vector<float>& x :
       {std::vector<float>{1, -2, 3, 4}, {0, 0, 0, 0}, {1, nan, 3, 4}, {1, 2, inf, 4}}) {
    const std::string said = fault_of_plan<log_of_product>(x);
    CAPTURE(said);
    CHECK(said == fault_of_program<log_of_product>(x));
  }
  CHECK(fault_of_plan<log_of_product>({1, -2, 3, 4}).find("log at watch.cpp:") !=
        std::string::npos);
  CHECK(fault_of_plan<log_alone>({2, 3, 0.5f, 4}).find("made nan") != std::string::npos);
  // A mask of infinities is no fault.
  CHECK(fault_of_plan<masked>({1, -2, 3, 4}).empty());
}

TEST_CASE("without CELLA_DEBUG nobody looks for NaN") {
  CHECK(fault_of_plan<log_of_product>({1, -2, 3, 4}).empty());
}

TEST_CASE("a profile of a plan names each kernel call and its cell, and writes a trace") {
  const auto file = std::filesystem::temp_directory_path() /
                    ("cella-profile-" + std::to_string(::getpid()) + ".json");
  const std::string table = errors_of([&] {
    const environment wanted("CELLA_PROFILE", file.string());
    planned_net net;
    for (int i = 0; i < 3; ++i) net.run();
  });
  CAPTURE(table);
  CHECK(table.find("profile of 3 steps, 1 thread") != std::string::npos);
  CHECK(table.find("product") != std::string::npos);
  CHECK(table.find("hidden watch.cpp:") != std::string::npos);
  std::stringstream trace;
  // A process numbers its files from the second on.
  for (const auto& e : std::filesystem::directory_iterator(file.parent_path())) {
    if (!e.path().stem().string().starts_with(file.stem().string())) continue;
    trace << std::ifstream(e.path()).rdbuf();
    std::filesystem::remove(e.path());
  }
  CHECK(trace.str().find("\"ph\": \"X\"") != std::string::npos);
  CHECK(errors_of([] { planned_net().run(); }).empty());
}

TEST_CASE("a plan is explained like a program") {
  planned_net net;
  std::ostringstream out;
  net.run.explain(out, 90);
  const std::string said = out.str();
  CAPTURE(said);
  for (const char* part : {"== planned: ", "== steps: inference in f32, ", "kernel",
                           "cell and source", "product", "hidden  watch.cpp:", "hidden.weight",
                           "result 0: ", "== memory, in bytes", "arena", "value in the arena"}) {
    CAPTURE(part);
    CHECK(said.find(part) != std::string::npos);
  }
  // The arithmetic of both products and biases is the program's.
  const auto flops = [](const std::string& text) {
    const auto at = text.find(" steps ");
    std::istringstream in(text.substr(at + 7));
    double mflop = 0;
    in >> mflop;
    return mflop;
  };
  std::ostringstream of_program;
  print_steps<inference_program<small_net, tensor<dtype::f32, 32, 8>>>(of_program);
  CHECK(flops(said) > 0);
  CHECK(flops(said) == doctest::Approx(flops(of_program.str())).epsilon(0.3));
}
