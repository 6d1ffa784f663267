// Runs ONNX's own tests (onnx/backend/test/data of the package `onnx`) on the run-time tier and on
// the interpreter, and keeps the score by operator.
//
//   onnx_nodes DIR [--json FILE] [--page FILE [--check]] [--only PART] [--verbose]
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cella/interop/file.hpp>
#include <cella/interop/onnx_model.hpp>
#include <cella/ops/numbers.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "test_data.hpp"

using namespace cella;
namespace fs = std::filesystem;

namespace {

struct outcome {
  std::string status;  ///< passed, failed, unsupported
  std::string why;
};

using tensors = std::vector<onnx_tensor>;

::onnx::ModelProto read_model(const fs::path& file) {
  return test::read_message<::onnx::ModelProto>(file);
}
using model_fields = std::vector<::onnx::ValueInfoProto>;
/// The inputs that are no initializers, in their order.
model_fields inputs_of(const ::onnx::ModelProto& m) {
  std::set<std::string> given;
  for (const auto& t : m.graph().initializer()) given.insert(t.name());
  model_fields all;
  for (const auto& i : m.graph().input())
    if (!given.contains(i.name())) all.push_back(i);
  return all;
}

/// ONNX's tests keep bfloat16, which NumPy lacks, as integers of 16 bits.
void as_in_model(onnx_tensor& t, const tensor_type& model) {
  if (model.element == dtype::bf16 && t.type.element == dtype::u16) t.type.element = dtype::bf16;
}
/// What differs between a result and what ONNX's tests expect; empty if nothing does. The
/// tolerances are those of ONNX's own runner; numbers of 16 bits without NumPy's help are cut off
/// there, where they are rounded by the standard, so that they may differ in the last place.
std::string difference(const tensor_ref& got, onnx_tensor& expected) {
  as_in_model(expected, got.type);
  const tensor_ref wanted{expected.bytes.data(), expected.type};
  text types;
  types << got.type << " instead of " << wanted.type;
  if (got.type != wanted.type) return std::string(types.view());
  const double relative = got.type.element == dtype::bf16 ? 1.0 / 128 : 1e-3;
  for (std::int64_t i = 0; i < wanted.type.size(); ++i) {
    const double x = read_element(got, i), y = read_element(wanted, i);
    const bool same =
        (std::isnan(x) && std::isnan(y)) || x == y ||
        (is_floating(got.type.element) && std::abs(x - y) <= 1e-7 + relative * std::abs(y));
    if (!same)
      return "element " + std::to_string(i) + " is " + std::to_string(x) + " instead of " +
             std::to_string(y);
  }
  return {};
}
std::string compare(const std::string& tier, const std::vector<tensor_ref>& got,
                    tensors& expected) {
  if (got.size() != expected.size())
    return tier + ": " + std::to_string(got.size()) + " results instead of " +
           std::to_string(expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const std::string d = difference(got[k], expected[k]);
    if (!d.empty()) return tier + ": result " + std::to_string(k) + ": " + d;
  }
  return {};
}

std::string run_interpreter(const graph& g, tensors& in, tensors& expected) {
  value_store values;
  for (std::size_t k = 0; k < in.size(); ++k)
    values.bind(g.input(int(k)), {in[k].bytes.data(), in[k].type});
  interpret(g, values);
  std::vector<tensor_ref> got;
  for (node_id n : g.regions[0].outputs) got.push_back(values.value(n));
  return compare("interpreted", got, expected);
}
std::string run_planned(const graph& g, tensors& in, tensors& expected) {
  const graph optimized = compiled_once::optimize(g);
  if (const text why = loaded_program::refusal(optimized, dtype::f32); !why.empty())
    return "not planned: " + std::string(why.view());
  loaded_program run(optimized, dtype::f32);
  for (std::size_t k = 0; k < in.size(); ++k) run.bind(int(k), in[k].bytes.data());
  run();
  std::vector<tensor_ref> got;
  for (std::size_t k = 0; k < g.regions[0].outputs.size(); ++k) got.push_back(run.result(int(k)));
  return compare("planned", got, expected);
}

/// Runs a model on both tiers, a large one on kernels only.
outcome run_model(const fs::path& model, test::test_data in, tensors expected, bool large) {
  onnx_settings settings;
  settings.elements = in.elements;
  for (std::size_t k = 0; k < in.names.size(); ++k)
    for (int d = 0; d < in.tensors[k].type.rank(); ++d)
      settings.extents[in.names[k] + "." + std::to_string(d)] = in.tensors[k].type[d];
  graph g;
  for (;;) {
    try {
      g = load_onnx(model, settings);
      break;
    } catch (const onnx_value_needed& e) {
      const auto at = std::ranges::find(in.names, e.input);
      if (at == in.names.end() || settings.values.contains(e.input)) return {"failed", e.what()};
      settings.values[e.input] = in.tensors[std::size_t(at - in.names.begin())];
    } catch (const onnx_not_supported& e) { return {"unsupported", e.what()}; }
  }
  tensors open;  // what the graph still takes
  for (std::size_t k = 0; k < in.names.size(); ++k)
    if (!settings.values.contains(in.names[k])) open.push_back(std::move(in.tensors[k]));
  for (std::size_t k = 0; k < open.size(); ++k) {
    as_in_model(open[k], g.type(g.input(int(k))));
    if (g.type(g.input(int(k))) != open[k].type) return {"failed", "an input has another type"};
  }
  std::string why = large ? "" : run_interpreter(g, open, expected);
  if (why.empty()) why = run_planned(g, open, expected);
  return why.empty() ? outcome{"passed", ""} : outcome{"failed", why};
}
/// A whole network of ONNX's folder `light`: its input is what ONNX's runner makes.
outcome run_network(const fs::path& model) {
  onnx_tensor x{{dtype::f32, {1, 3, 224, 224}}, {}};
  const std::int64_t size = x.type.size();
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < size; ++i) numbers.push_back(float(double(i) / double(size)));
  const auto bytes = std::as_bytes(std::span(numbers));
  x.bytes.assign(bytes.begin(), bytes.end());
  test::test_data in;
  in.add(inputs_of(read_model(model)).at(0).name(), std::move(x));
  const fs::path y = model.parent_path() / (model.stem().string() + "_output_0.pb");
  return run_model(model, std::move(in), {load_onnx_tensor(y).second}, true);
}
outcome run_test(const fs::path& folder) {
  if (folder.extension() == ".onnx") return run_network(folder);
  const fs::path model = folder / "model.onnx";
  try {
    const ::onnx::ModelProto m = read_model(model);
    const model_fields results{m.graph().output().begin(), m.graph().output().end()};
    outcome last{"unsupported", "no data"};
    for (int k = 0;; ++k) {
      const fs::path data = folder / ("test_data_set_" + std::to_string(k));
      if (!fs::exists(data)) return last;
      last = run_model(model, test::read_data(data, "input", inputs_of(m)),
                       test::read_data(data, "output", results).tensors, false);
      if (last.status != "passed") return last;
    }
  } catch (const onnx_not_supported& e) {
    return {"unsupported", e.what()};
  } catch (const std::exception& e) { return {"failed", e.what()}; }
}
/// The same in a process of its own: what crashes has failed.
outcome run_apart(const fs::path& folder) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(60);
    const outcome o = run_test(folder);
    const std::string s = o.status + "\n" + o.why;
    const auto written = write(ends[1], s.data(), std::min<std::size_t>(s.size(), 4000));
    _exit(written < 0);
  }
  close(ends[1]);
  std::string all(4096, '\0');
  std::size_t size = 0;
  for (ssize_t n; (n = read(ends[0], all.data() + size, all.size() - size)) > 0;)
    size += std::size_t(n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  all.resize(size);
  const auto cut = all.find('\n');
  if (cut == all.npos) return {"failed", "signal " + std::to_string(WTERMSIG(status))};
  return {all.substr(0, cut), all.substr(cut + 1)};
}

/// What a test is counted under: its operator, if it has but one.
std::string operator_of(const fs::path& folder) {
  const ::onnx::ModelProto m = read_model(folder / "model.onnx");
  if (m.graph().node_size() != 1) return "(several)";
  const auto& n = m.graph().node(0);
  const std::string domain = n.domain() == "ai.onnx" ? "" : n.domain();
  return domain.empty() ? n.op_type() : domain + "." + n.op_type();
}
/// A fault without the path of the file.
std::string without_path(const std::string& why) {
  const auto end = why.find(".onnx\": ");
  const std::string rest = end == why.npos ? why : why.substr(end + 8);
  const auto node = rest.rfind("node ", 0) == 0 ? rest.find(") ") : rest.npos;
  if (node != rest.npos) return rest.substr(node + 2);
  const auto tensor = rest.find(".pb\" ");
  return tensor == rest.npos ? rest : rest.substr(tensor + 5);
}

struct score {
  std::map<std::string, std::map<std::string, int>> operators, suites;
  std::map<std::string, std::string> reasons;  ///< by operator, of a test that does not pass
};
/// The score as a part of a page.
std::string as_page(const score& s) {
  auto count = [](const std::map<std::string, int>& counts, const char* status) {
    const auto at = counts.find(status);
    return at == counts.end() ? 0 : at->second;
  };
  std::string all = "| tests | passed | failed | not supported |\n| --- | ---: | ---: | ---: |\n";
  for (const auto& [suite, counts] : s.suites)
    all += "| `" + suite + "` | " + std::to_string(count(counts, "passed")) + " | " +
           std::to_string(count(counts, "failed")) + " | " +
           std::to_string(count(counts, "unsupported")) + " |\n";
  std::string whole, parts;
  int complete = 0;
  for (const auto& [op, counts] : s.operators) {
    const int passed = count(counts, "passed"), failed = count(counts, "failed"),
              lacking = count(counts, "unsupported");
    if (failed + lacking == 0) {
      whole += (whole.empty() ? "" : ", ") + ("`" + op + "` " + std::to_string(passed));
      complete += op != "(several)";
      continue;
    }
    parts += "| `" + op + "` | " + std::to_string(passed) + " | " + std::to_string(failed) + " | " +
             std::to_string(lacking) + " | " + s.reasons.at(op) + " |\n";
  }
  all += "\nAll tests pass of these " + std::to_string(complete) +
         " operators (the number is that of their tests in `node`): " + whole + ".\n";
  all +=
      "\nOf others some do not:\n\n| operator | passed | failed | not supported | e.g. |\n"
      "| --- | ---: | ---: | ---: | --- |\n" +
      parts;
  return all;
}
/// Puts the score between the marks of a page; or, to check, says whether it is there.
bool write_page(const fs::path& file, const std::string& part, bool check) {
  std::ifstream in(file);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string begin = "<!-- begin: score -->\n", end = "<!-- end: score -->";
  const auto first = page.find(begin), last = page.find(end);
  if (first == page.npos || last == page.npos)
    throw std::runtime_error(file.string() + " has no marks between which the score belongs");
  const std::string made = page.substr(0, first + begin.size()) + part + page.substr(last);
  if (made == page) return true;
  if (check) {
    std::cout << file.string() << " does not have this score; onnx_nodes DIR --page writes it:\n"
              << part;
    return false;
  }
  interop::write_atomically(file, [&](interop::output_file& f) { f.write(made); });
  return true;
}
fs::path data_folder(const fs::path& given) {
  for (const char* inner : {"onnx-1.15.0/onnx/backend/test/data", "onnx/backend/test/data", "."})
    if (fs::exists(given / inner / "node")) return given / inner;
  throw std::runtime_error("there is no onnx/backend/test/data in " + given.string() +
                           "; pip download --no-deps onnx==1.15.0 and unpack it there");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs ONNX's own tests");
  std::string directory, json, page, only;
  bool check = false, verbose = false;
  app.add_option("DIR", directory, "Folder of the package onnx, or of onnx-1.15.0")->required();
  app.add_option("--json", json, "Write the score to this file");
  app.add_option("--page", page, "Write the score into this page, docs/onnx.md");
  app.add_flag("--check", check, "Do not write the page: fail if it has another score");
  app.add_option("--only", only, "Only tests whose name holds this");
  app.add_flag("--verbose", verbose, "Print each test that does not pass, and why");
  CLI11_PARSE(app, argc, argv);
  try {
    const fs::path data = data_folder(directory);
    score s;
    nlohmann::json others = nlohmann::json::object();
    for (const std::string suite :
         {"node", "simple", "pytorch-operator", "pytorch-converted", "light"}) {
      std::set<fs::path> folders;
      for (const auto& entry : fs::directory_iterator(data / suite))
        if (entry.path().extension() == ".onnx" || fs::exists(entry.path() / "model.onnx"))
          folders.insert(entry.path());
      for (const fs::path& folder : folders) {
        const std::string name = suite + "/" + folder.filename().string();
        if (name.find(only) == name.npos) continue;
        const outcome o = run_apart(folder);
        ++s.suites[suite][o.status];
        if (suite == "node") ++s.operators[operator_of(folder)][o.status];
        if (o.status == "passed") continue;
        if (suite == "node") {
          std::string& reason = s.reasons[operator_of(folder)];
          if (reason.empty() || o.status == "failed") reason = without_path(o.why);
        }
        others[name] = {{"status", o.status}, {"why", o.why}};
        if (verbose) std::cout << o.status << " " << name << ": " << o.why << "\n";
      }
    }
    for (const auto& [suite, counts] : s.suites) {
      std::cout << suite << ":";
      for (const auto& [status, count] : counts) std::cout << " " << count << " " << status;
      std::cout << "\n";
    }
    auto& total = s.suites["node"];
    if (!json.empty()) {
      const nlohmann::json written{{"passed", total["passed"]},
                                   {"failed", total["failed"]},
                                   {"unsupported", total["unsupported"]},
                                   {"operators", s.operators},
                                   {"suites", s.suites},
                                   {"not_passed", others}};
      interop::write_atomically(json,
                                [&](interop::output_file& f) { f.write(written.dump(1) + "\n"); });
    }
    if (!page.empty()) return write_page(page, as_page(s), check) ? 0 : 1;
    return total["failed"] == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "onnx_nodes: " << e.what() << "\n";
    return 2;
  }
}
