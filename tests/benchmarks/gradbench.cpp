// The programs of benchmarks/gradbench on inputs of the suite, against its reference results. The
// suite is where CELLA_GRADBENCH says.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "support/command.hpp"
#include "support/outside_data.hpp"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

cella::test::command_outcome run(const std::string& problem, const std::string& arguments) {
  return cella::test::run_command("'" + std::string(CELLA_GRADBENCH_PROGRAMS) + "/" + problem +
                                  "' " + arguments);
}

/// As the suite compares: 1e-6 relative to numbers above 1; more members than expected are allowed.
bool close(const json& found, const json& wanted) {
  if (wanted.is_object()) {
    return found.is_object() && std::ranges::all_of(wanted.items(), [&](const auto& member) {
             return found.contains(member.key()) && close(found[member.key()], member.value());
           });
  }
  if (wanted.is_array()) {
    bool same = found.is_array() && found.size() == wanted.size();
    for (std::size_t i = 0; same && i < wanted.size(); ++i) same = close(found[i], wanted[i]);
    return same;
  }
  if (!wanted.is_number()) return found == wanted;
  const double x = found.get<double>(), y = wanted.get<double>();
  return std::abs(x - y) <= 1e-6 * std::max(1.0, std::abs(y));
}

}  // namespace

TEST_CASE("each program of GradBench yields the suite's results, and a time for each run" *
          doctest::test_suite("outside")) {
  const auto reference = cella::test::outside_data("CELLA_GRADBENCH", "reference");
  if (!reference) return;
  int compared = 0;
  for (const char* name :
       {"ba_1", "det_8", "gmm_10_25_1000", "ht_complicated", "ht_simple", "kmeans_10_1000_8",
        "llsq_1024", "lse_10000", "lstm_2_1024", "ode_1000_10"}) {
    const std::string problem = std::string(name).substr(0, std::string(name).find('_'));
    for (const auto& file : fs::directory_iterator(*reference)) {
      const std::string stem = file.path().stem().string();
      const std::string input = stem.substr(0, stem.rfind('.'));
      if (input != name) continue;
      INFO(stem);
      const std::string function = stem.substr(stem.rfind('.') + 1);
      const auto path = reference->parent_path() / "in" / (input + ".json");
      const auto r = run(problem, "'" + path.string() + "' " + function);
      REQUIRE(r.status == 0);
      std::ifstream wanted(file.path());
      CHECK(close(json::parse(r.out.substr(0, r.out.find('\n'))), json::parse(wanted)));
      CHECK(r.out.find("{\"name\": \"evaluate\", \"nanoseconds\": ") != std::string::npos);
      ++compared;
    }
  }
  CHECK(compared == 20);
}

TEST_CASE("a size that a GradBench program is not compiled for is refused by both sizes") {
  const auto path = fs::temp_directory_path() / "cella_gradbench_lse.json";
  std::ofstream(path) << R"({"x": [1, 2, 3], "min_runs": 1, "min_seconds": 0})";
  const auto r = run("lse", "'" + path.string() + "' primal");
  fs::remove(path);
  CHECK(r.status == 1);
  CHECK(r.out.find("the input's sizes are 3 and this program is compiled for 10000") !=
        std::string::npos);
  CHECK(r.out.find("sizes.hpp") != std::string::npos);
}

TEST_CASE("a function that a GradBench program lacks is refused by name") {
  const auto path = fs::temp_directory_path() / "cella_gradbench_ba.json";
  std::ofstream(path) << R"({"n": 1, "m": 1, "p": 1, "cam": [0,0,0,0,0,0,1,0,0,0,0],
                             "x": [1,1,1], "w": 1, "feat": [0,0]})";
  const auto r = run("ba", "'" + path.string() + "' hessian");
  fs::remove(path);
  CHECK(r.status == 1);
  CHECK(r.out.find("no function hessian here; the functions are objective, jacobian") !=
        std::string::npos);
}
