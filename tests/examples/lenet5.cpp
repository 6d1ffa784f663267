#include <doctest/doctest.h>

#include <cmath>

#include "program.hpp"
#include "support/outside_data.hpp"

using namespace cella::test;

namespace {

const std::string lenet5 = quoted(std::string(CELLA_LENET5)) + " ";
const std::string tiny = lenet5 + "--epochs 1 --samples 320 ";

/// A tiny training run whose file several tests read.
struct trained {
  scratch_folder folder{"lenet5"};
  outcome ran = run(folder, tiny + "--save 'my weights.safetensors' --json 'a b.json'");
  nlohmann::json figures = read_json(folder / "a b.json");
  std::filesystem::path weights = folder / "my weights.safetensors";
};
trained& once() {
  static trained t;
  return t;
}

}  // namespace

TEST_CASE("--help names every option") {
  const scratch_folder folder("help");
  const outcome r = run(folder, lenet5 + "--help");
  CHECK(r.status == 0);
  CHECK(r.err == "");
  for (const char* option : {"--data", "--eager", "--epochs", "--samples", "--batch", "--seed",
                             "--lr", "--save", "--load", "--resume", "--threads", "--json"}) {
    INFO(option);
    CHECK(r.out.find(option) != r.out.npos);
  }
}

TEST_CASE("a bad value ends with status 2, a message that names the option, and nothing else") {
  const scratch_folder folder("values");
  for (const std::string option :
       {"--epochs -1", "--epochs two", "--epochs 99999999999999999999", "--samples 0", "--batch 0",
        "--batch 50", "--seed -1", "--seed x", "--lr 0", "--lr -0.1", "--lr nan", "--lr inf",
        "--threads -1", "--data", "--save", "--colour", "--eager=perhaps"}) {
    INFO(option);
    const outcome r = run(folder, lenet5 + option);
    CHECK(r.status == 2);
    CHECK(r.out == "");
    const std::string name = option.substr(0, option.find_first_of(" ="));
    CHECK(r.err.find(name) != r.err.npos);
  }
  CHECK(run(folder, lenet5 + "digits").status == 2);
  CHECK(folder.files().empty());
}

TEST_CASE("files and folders that are not there are named before any work") {
  const scratch_folder folder("missing");
  struct wrong {
    std::string options, words;
  };
  const wrong cases[]{{"--epochs 0 --load nowhere.safetensors", "nowhere.safetensors"},
                      {"--data nowhere", "train-images-idx3-ubyte"},
                      {"--save nowhere/a.safetensors", "nowhere/a.safetensors"},
                      {"--save .", "folder"},
                      {"--save ''", "file name"},
                      {"--json nowhere/a.json", "nowhere/a.json"}};
  for (const auto& [options, words] : cases) {
    INFO(options);
    const outcome r = run(folder, lenet5 + options);
    CHECK(r.status == 2);
    CHECK(r.out == "");
    CHECK(r.err.starts_with("lenet5: "));
    CHECK(r.err.find(words) != r.err.npos);
  }
  CHECK(folder.files().empty());
}

TEST_CASE("a run says what it did, on the streams and in its JSON file") {
  const trained& t = once();
  CHECK(t.ran.status == 0);
  CHECK(t.ran.err.find("epoch 1/1 10/10  loss ") != t.ran.err.npos);
  for (const char* words :
       {"LeNet-5: 61,706 parameters, graph mode, batches of 32",
        "generated digits: 320 for training, 4,000 for testing", "saved in my weights.safetensors",
        "loaded into a new model", "predicted:", " before, "}) {
    INFO(words);
    CHECK(t.ran.out.find(words) != t.ran.out.npos);
  }
  // No colours, no redrawn lines where nobody looks.
  CHECK(t.ran.out.find_first_of("\x1b\r") == std::string::npos);
  CHECK(t.ran.err.find_first_of("\x1b\r") == std::string::npos);

  CHECK(t.figures["parameters"] == 61706);
  CHECK(t.figures["epochs"] == 1);
  CHECK(t.figures["train_samples"] == 320);
  CHECK(t.figures["test_samples"] == 4000);
  CHECK(t.figures["mode"] == "graph");
  CHECK(t.figures["seconds"] > 0.0);
  // Ten steps teach little.
  CHECK(t.figures["test_accuracy"] > 0.0);
  CHECK(t.figures["test_accuracy"] < 0.9);
  CHECK(std::filesystem::exists(t.weights));
  CHECK_FALSE(std::filesystem::exists(t.folder / "lenet5.safetensors"));
}

TEST_CASE("--epochs 0 --load only evaluates: the same accuracy, and no file is written") {
  const trained& t = once();
  const scratch_folder folder("load");
  const outcome r =
      run(folder, lenet5 + "--epochs 0 --load " + quoted(t.weights) + " --json found.json");
  CHECK(r.status == 0);
  CHECK(r.err == "");
  const auto figures = read_json(folder / "found.json");
  CHECK(figures["test_accuracy"] == t.figures["test_accuracy"]);
  CHECK(figures["epochs"] == 0);
  CHECK(folder.files() == std::vector<std::string>{"found.json"});
}

TEST_CASE("a cut file of weights is refused") {
  const trained& t = once();
  const scratch_folder folder("cut");
  const std::string whole = read_text(t.weights);
  REQUIRE(whole.size() > 61706 * 4);
  for (const std::size_t size :
       {std::size_t(0), std::size_t(7), std::size_t(200), whole.size() / 2, whole.size() - 1}) {
    INFO(size);
    std::ofstream(folder / "cut.safetensors", std::ios::binary) << whole.substr(0, size);
    const outcome r = run(folder, lenet5 + "--epochs 0 --load cut.safetensors");
    CHECK(r.status == 2);
    CHECK(r.out == "");
    CHECK(r.err.find("cut.safetensors") != r.err.npos);
  }
}

TEST_CASE("a cut file of images is refused") {
  const scratch_folder folder("idx");
  // Says that it holds five images of 28 by 28, and ends.
  std::ofstream(folder / "train-images-idx3-ubyte", std::ios::binary)
      << std::string("\0\0\x08\x03\0\0\0\x05\0\0\0\x1c\0\0\0\x1c", 16);
  std::ofstream(folder / "train-labels-idx1-ubyte", std::ios::binary)
      << std::string("\0\0\x08\x01\0\0\0\x05\1\2\3\4\5", 13);
  const outcome r = run(folder, lenet5 + "--data .");
  CHECK(r.status == 2);
  CHECK(r.out == "");
  CHECK(r.err.find("train-images-idx3-ubyte") != r.err.npos);
}

TEST_CASE(
    "--eager runs the same cells: nearly the same net comes out, and it says that it is slow") {
  const trained& t = once();
  const scratch_folder folder("eager");
  const outcome r = run(folder, tiny + "--eager --json eager.json");
  CHECK(r.status == 0);
  const auto figures = read_json(folder / "eager.json");
  CHECK(figures["mode"] == "eager");
  const auto difference = [&](const char* name) {
    return std::abs(double(figures[name]) - double(t.figures[name]));
  };
  CHECK(difference("test_accuracy") < 0.01);
  CHECK(difference("test_loss") < 0.001);
  CHECK(r.out.find("61,706 parameters, eager mode") != r.out.npos);
  CHECK(std::filesystem::exists(folder / "lenet5.safetensors"));
}

TEST_CASE("--batch, --seed, --lr and --threads reach the training") {
  const trained& t = once();
  const scratch_folder folder("options");
  const auto accuracy = [&](const std::string& options) {
    const outcome r = run(folder, tiny + options + " --json o.json");
    CHECK(r.status == 0);
    return double(read_json(folder / "o.json")["test_loss"]);
  };
  const double before = t.figures["test_loss"];
  CHECK(accuracy("--seed 1") == before);
  CHECK(accuracy("--seed 2") != before);
  CHECK(accuracy("--lr 0.001") != before);
  CHECK(accuracy("--batch 64") != before);
  CHECK(read_json(folder / "o.json")["batch"] == 64);
  CHECK(accuracy("--threads 2") == doctest::Approx(before).epsilon(1e-4));
}

TEST_CASE("a learning rate that is too large ends with a message, not with a useless net") {
  const scratch_folder folder("diverges");
  const outcome r = run(folder, lenet5 + "--epochs 3 --samples 640 --lr 900");
  CHECK(r.status == 2);
  CHECK(r.err.find("smaller --lr") != r.err.npos);
  CHECK(folder.files().empty());
}

TEST_CASE("Ctrl-C while training saves, and --resume ends with the same net, bit for bit") {
  const scratch_folder folder("interrupted");
  const std::string options = "--epochs 60 --samples 1500 ";
  CHECK(run(folder, lenet5 + options + "--save whole.safetensors --json whole.json").status == 0);
  // Each piece is interrupted a little later, until one ends. Ctrl-C may come while it fine-tunes,
  // or where nothing is trained, and it ends as other programs do.
  std::string resume;
  int interrupts = 0;
  outcome r;
  for (double seconds = 1; seconds < 60; seconds += 0.5) {
    r = run(folder, "timeout --foreground --preserve-status --signal=INT " +
                        std::to_string(seconds) + " " + lenet5 + options +
                        "--save parts.safetensors --json parts.json" + resume);
    if (r.status != 130) break;
    if (r.out.find("interrupted") == r.out.npos) continue;
    ++interrupts;
    CHECK(r.err.find("lenet5:") == r.err.npos);
    CHECK(r.out.find("interrupted after step ") != r.out.npos);
    CHECK(r.out.find("go on with the same options and --resume parts.resume.safetensors\n") !=
          r.out.npos);
    REQUIRE(std::filesystem::exists(folder / "parts.resume.safetensors"));
    resume = " --resume parts.resume.safetensors";
  }
  CHECK(r.status == 0);
  CHECK(interrupts > 0);
  CHECK(read_text(folder / "parts.safetensors") == read_text(folder / "whole.safetensors"));
  const auto whole = read_json(folder / "whole.json"), parts = read_json(folder / "parts.json");
  for (const char* name : {"test_accuracy", "test_loss", "dark_accuracy_after"})
    CHECK(parts[name] == whole[name]);
}

TEST_CASE("a file that Ctrl-C did not write is no file to resume with") {
  const trained& t = once();
  const scratch_folder folder("resume");
  const outcome r = run(folder, tiny + "--resume " + quoted(t.weights));
  CHECK(r.status == 2);
  CHECK(r.err.find("my weights.safetensors") != r.err.npos);
  CHECK(run(folder, tiny + "--resume a --load b").status == 2);
}

#ifdef NDEBUG
TEST_CASE("without arguments it reads 97.5 % of the generated digits") {
  const scratch_folder folder("generated");
  CHECK(run(folder, lenet5 + "--json o.json").status == 0);
  const auto figures = read_json(folder / "o.json");
  CHECK(figures["test_accuracy"] > 0.975);
  CHECK(figures["dark_accuracy_after"] > double(figures["dark_accuracy_before"]) + 0.5);
}

TEST_CASE("it reads 97.5 % of MNIST's test digits" * doctest::test_suite("outside")) {
  const auto mnist = cella::test::outside_data("CELLA_DATA", "mnist");
  if (!mnist) return;
  const scratch_folder folder("mnist");
  const auto from = quoted(*mnist);
  CHECK(run(folder, lenet5 + "--data " + from + " --epochs 12 --json o.json").status == 0);
  CHECK(read_json(folder / "o.json")["test_accuracy"] > 0.975);
}
#endif
