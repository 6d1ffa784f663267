// Runs a model from an ONNX file, and says how long a call takes.
//
//   run_onnx net.onnx --input x=image.npy --output scores_ --seconds 2
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cella/backend/host/threads.hpp>
#include <cella/interop/npy.hpp>
#include <cella/interop/onnx_model.hpp>
#include <cella/ops/strided.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
using pairs = std::vector<std::string>;

/// Calls f(name, value) for each `NAME=VALUE`.
template <class F>
void for_each_pair(const pairs& all, const char* option, F f) {
  for (const std::string& s : all) {
    const auto equals = s.rfind('=');
    if (equals == s.npos) throw cella::error(std::string(option) + " takes NAME=..., but got " + s);
    f(s.substr(0, equals), s.substr(equals + 1));
  }
}
double milliseconds(clock_type::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}
std::string shown(const cella::tensor_type& t) { return std::string((cella::text() << t).view()); }

}  // namespace

int main(int argc, char** argv) try {
  std::string file, output, json;
  pairs inputs, extents, values;
  int threads = 1;
  double seconds = 0;
  CLI::App app("Runs a model from an ONNX file.");
  app.add_option("model", file, "The ONNX file")->required();
  app.add_option("--input", inputs, "An input; what is not given is zeros")
      ->type_name("NAME=FILE.npy");
  app.add_option("--value", values, "An input on which shapes depend")->type_name("NAME=FILE.npy");
  app.add_option("--extent", extents, "An extent that the model leaves open")
      ->type_name("NAME=NUMBER");
  app.add_option("--output", output, "Write results to files whose names begin so")
      ->type_name("PREFIX");
  app.add_option("--threads", threads, "Threads")->check(CLI::PositiveNumber);
  app.add_option("--seconds", seconds, "Repeat the call for so long");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  cella::onnx_settings settings;
  for_each_pair(extents, "--extent", [&](const std::string& name, const std::string& number) {
    settings.extents[name] = std::stoll(number);
  });
  for_each_pair(values, "--value", [&](const std::string& name, const std::string& path) {
    auto array = cella::interop::read_npy(path);
    settings.values[name] = {array.type, std::move(array.bytes)};
  });
  std::map<std::string, cella::interop::npy_array> given;
  for_each_pair(inputs, "--input", [&](const std::string& name, const std::string& path) {
    given[name] = cella::interop::read_npy(path);
  });

  const auto start = clock_type::now();
  const cella::graph g = cella::compiled_once::optimize(cella::load_onnx(file, settings));
  cella::thread_pool pool(threads);
  cella::loaded_program run(g, cella::dtype::f32, &pool);
  const double load_ms = milliseconds(clock_type::now() - start);

  std::vector<std::vector<std::byte>> memory;
  for (int i = 0; i < int(g.inputs.size()); ++i) {
    const std::string name(g.view(g.inputs[std::size_t(i)].name));
    const cella::tensor_type type = g.type(g.input(i));
    memory.emplace_back(std::size_t(type.bytes()));
    const auto array = given.find(name);
    if (array != given.end()) {
      if (array->second.type != type)
        throw cella::error("the input " + name + " is " + shown(type) + ", but its file has " +
                           shown(array->second.type));
      memory.back() = array->second.bytes;
      given.erase(array);
    }
    run.bind(i, memory.back().data());
    std::cout << "input " << name << " " << shown(type) << "\n";
  }
  if (!given.empty()) throw cella::error("the model has no input " + given.begin()->first);

  run();
  std::size_t count = 0;
  for (const cella::output_info& o : g.outputs) {
    if (o.updates >= 0) continue;
    const cella::tensor_ref y = run.result(int(count));
    std::string name(g.view(o.name));
    std::cout << "result " << name << " " << shown(y.type) << ":";
    for (std::int64_t k = 0; k < std::min<std::int64_t>(y.type.size(), 5); ++k)
      std::cout << " " << cella::read_element(y, k);
    std::cout << (y.type.size() > 5 ? " ...\n" : "\n");
    if (!output.empty()) {
      std::ranges::replace(name, '/', '_');
      cella::interop::write_npy(output + name + ".npy", y.type,
                                {y.data, std::size_t(y.type.bytes())});
    }
    ++count;
  }

  std::vector<double> times;
  const auto end = clock_type::now() + std::chrono::nanoseconds(std::int64_t(1e9 * seconds));
  do {
    const auto before = clock_type::now();
    run();
    times.push_back(milliseconds(clock_type::now() - before));
  } while (clock_type::now() < end);
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  std::cout << "loaded in " << load_ms << " ms; a call takes " << median << " ms, " << times[0]
            << " at least, with " << threads << (threads == 1 ? " thread\n" : " threads\n");
  if (!json.empty()) {
    std::ofstream(json) << nlohmann::json{{"model", std::filesystem::path(file).stem().string()},
                                          {"threads", threads},
                                          {"load_ms", load_ms},
                                          {"median_ms", median},
                                          {"min_ms", times[0]}}
                        << "\n";
  }
  return 0;
} catch (const std::exception& e) {
  std::cerr << "run_onnx: " << e.what() << "\n";
  return 2;
}
