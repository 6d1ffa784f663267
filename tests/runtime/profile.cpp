#include <doctest/doctest.h>
#include <unistd.h>

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/runtime/executable.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace cella;

namespace {

/// One step of a small net in a program whose calls are timed; where the trace lies.
struct small_net {
  nn::dense<8, 16> hidden{};
  nn::dense<16, 4> out{};
  constexpr var operator()(var x) const { return out(relu(hidden(x))); }
};
using inference = inference_program<small_net, tensor<dtype::f32, 32, 8>>;

/// Sets an environment variable for as long as it lives.
class environment {
 public:
  environment(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~environment() { unsetenv(name_); }

 private:
  const char* name_;
};
/// Standard error for as long as it lives.
class captured_errors {
 public:
  captured_errors() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~captured_errors() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(file_);
  }
  captured_errors(const captured_errors&) = delete;
  captured_errors& operator=(const captured_errors&) = delete;

  std::string text() const {
    std::fflush(stderr);
    std::string all;
    std::rewind(file_);
    for (int c; (c = std::fgetc(file_)) != EOF;) all.push_back(char(c));
    return all;
  }

 private:
  std::FILE* file_;
  int before_;
};

}  // namespace

TEST_CASE("a profile names each kernel call and its cell, and writes a trace") {
  const auto file = std::filesystem::temp_directory_path() / "cella_profile_test.json";
  std::filesystem::remove(file);
  small_net net;
  parameter_store store(net, 1);
  const std::vector<float> x(32 * 8, 1.0f);
  const captured_errors errors;
  {
    const environment wanted("CELLA_PROFILE", file.string());
    executable<inference> run(store);
    for (int i = 0; i < 3; ++i) run(x);
  }
  CHECK(errors.text().find("profile of 3 steps, 1 thread") != std::string::npos);
  CHECK(errors.text().find("product") != std::string::npos);
  CHECK(errors.text().find("hidden profile.cpp:") != std::string::npos);
  std::stringstream trace;
  trace << std::ifstream(file).rdbuf();
  CHECK(trace.str().find("\"traceEvents\"") != std::string::npos);
  CHECK(trace.str().find("\"ph\": \"X\"") != std::string::npos);
  std::filesystem::remove(file);
}

TEST_CASE("without CELLA_PROFILE nothing is timed or written") {
  small_net net;
  parameter_store store(net, 1);
  const std::vector<float> x(32 * 8, 1.0f);
  const captured_errors errors;
  {
    executable<inference> run(store);
    run(x);
  }
  CHECK(errors.text().empty());
}

namespace {
struct curved_net {
  nn::dense<8, 16> hidden{};
  nn::dense<16, 4> out{};
  constexpr var operator()(var x) const {
    x = hidden(x);
    return out(tanh(x) + sigmoid(x) * exp(-square(x)) + gelu_tanh(x));
  }
};
}  // namespace

TEST_CASE("fast_math computes the same in a lower precision") {
  using exact = inference_program<curved_net, tensor<dtype::f32, 32, 8>>;
  curved_net net;
  parameter_store store(net, 1);
  std::vector<float> x(32 * 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 17) * 0.3f - 2;
  executable<exact> one(store);
  executable<with_fast_math<exact>> other(store);
  one(x);
  other(x);
  double largest = 0;
  for (std::size_t i = 0; i < one.result().size(); ++i)
    largest = std::max(largest, std::abs(double{one.result()[i]} - double{other.result()[i]}));
  CHECK(largest < 1e-4);
  CHECK(largest > 0);
}
