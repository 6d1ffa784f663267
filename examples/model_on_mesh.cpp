// A model that ranks train together: threads of this process, or processes that mpirun has started.
//
//   model_on_mesh --mesh data=2 --threads-as-ranks
//   mpirun -n 2 model_on_mesh --mesh data=2 --mode zero1
#include <CLI/CLI.hpp>
#include <cella/data/digits.hpp>
#include <cella/models/lenet.hpp>
#include <cella/parallel/run_ranks.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <cella/train/on_mesh.hpp>
#include <iostream>
#include <string>

using namespace cella;
using namespace cella::parallel;

namespace {

using classifier = model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{},
                         optim::sgd{.momentum = 0.9}, model_options{.compiled = false}>;

struct settings {
  std::string mesh = "data=2", mode = "data", log = "losses.csv", file = "digits.safetensors";
  int samples = 2000, epochs = 2;
  bool threads = false;
};

/// What one rank does: what one device would do, but for an option.
void train_model(const settings& s, const device_mesh& mesh, const communicator& c) {
  const auto samples = data::digits(s.samples, 1).to_memory();
  const auto test = data::digits(1000, 2).to_memory();
  classifier m({.seed = 1, .mesh = train::on_mesh(mesh, c, {.mode = mode_called(s.mode)})});
  m.fit(samples.shuffle(1), {.epochs = s.epochs, .learning_rate = 0.02}, metrics::accuracy{},
        train::progress_bar{}, train::csv_log{s.log});
  const auto scores = m.evaluate(test, metrics::accuracy{});
  m.save(s.file);
  if (m.rank() == 0) std::cout << "accuracy " << scores["accuracy"] << "\n";
}

void run(const settings& s) {
  const device_mesh mesh = parse_mesh(s.mesh);
  run_ranks(mesh, s.threads, [&](int, const communicator& c) { train_model(s, mesh, c); });
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app{"Trains LeNet-5 on generated digits, on the ranks of a mesh"};
  app.add_option("--mesh", s.mesh, "axes and their sizes: data=2,model=2");
  app.add_option("--mode", s.mode, "serial, data, zero1, zero2, zero3 or automatic");
  app.add_option("--samples", s.samples);
  app.add_option("--epochs", s.epochs);
  app.add_option("--log", s.log, "a table with a row for each epoch");
  app.add_option("--save", s.file);
  app.add_flag("--threads-as-ranks", s.threads);
  CLI11_PARSE(app, argc, argv);
  try {
    run(s);
  } catch (const error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
