#include <doctest/doctest.h>

#include "program.hpp"

using namespace cella::test;

TEST_CASE("twelve_steps prints each step and ends with a net that reads digits") {
  const scratch_folder folder("steps");
  const outcome r = run(folder, quoted(std::string(CELLA_TWELVE_STEPS)) + " --json o.json");
  CHECK(r.status == 0);
  for (int step = 1; step <= 12; ++step) {
    INFO(step);
    const std::string number = (step < 10 ? " " : "") + std::to_string(step) + ". ";
    CHECK(("\n" + r.out).find("\n" + number) != std::string::npos);
  }
  const auto figures = read_json(folder / "o.json");
  CHECK(figures["test_accuracy"] > 0.93);
  CHECK(figures["dark_accuracy_after"] > double(figures["dark_accuracy_before"]) + 0.3);
}

TEST_CASE("own_loop trains without a model") {
  const scratch_folder folder("loop");
  CHECK(run(folder, quoted(std::string(CELLA_OWN_LOOP)) + " --json o.json").status == 0);
  CHECK(read_json(folder / "o.json")["test_accuracy"] > 0.93);
  CHECK(read_json(folder / "o.json")["steps"] == 1000);
}

TEST_CASE(
    "first_model, which is made of the headers alone, says what it needs to plan at run time") {
  const scratch_folder folder("headers");
  const outcome r =
      run(folder, "CELLA_EXECUTION=runtime " + quoted(std::string(CELLA_FIRST_MODEL)));
  CHECK(r.status != 0);
  CHECK(r.err.find("link cella::kernels") != r.err.npos);
}

TEST_CASE("embed reads digits with what lenet5 saved, as well as lenet5 does") {
  const scratch_folder folder("scatter_slice");
  const std::string embed = quoted(std::string(CELLA_EMBED)) + " ";
  const outcome trained =
      run(folder, quoted(std::string(CELLA_LENET5)) + " --epochs 3 --samples 2000 --json l.json");
  CHECK(trained.status == 0);
  CHECK(run(folder, embed + "lenet5.safetensors --json o.json").status == 0);
  // Its digits are the first half of those that lenet5 tests with.
  const double accuracy = read_json(folder / "o.json")["accuracy"];
  CHECK(accuracy ==
        doctest::Approx(double(read_json(folder / "l.json")["test_accuracy"])).epsilon(0.03));
  CHECK(accuracy > 0.5);

  const outcome missing = run(folder, embed + "nowhere.safetensors");
  CHECK(missing.status == 2);
  CHECK(missing.out == "");
  CHECK(missing.err.find("nowhere.safetensors") != missing.err.npos);
  std::ofstream(folder / "cut.safetensors", std::ios::binary)
      << read_text(folder / "lenet5.safetensors").substr(0, 1000);
  CHECK(run(folder, embed + "cut.safetensors").status == 2);
}
