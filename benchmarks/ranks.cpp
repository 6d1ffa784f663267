// Times the training steps of workloads that are divided among ranks, beside what the simulator
// predicts of them, and prints one line of JSON.
//
// usage: ranks {resnet20_32|gpt_8|mlp128_wide|lenet32} [--mesh data=2] [--mode data] [--threads 1]
//              [--topology FILE] [--threads-as-ranks]
// Started by mpirun, ranks are its processes, else threads of this one. `--threads` is of each
// rank. Steps run for eight seconds, 3,000 at most and five at least.
#include <algorithm>
#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/models/mlp.hpp>
#include <cella/models/resnet.hpp>
#include <cella/nn/losses.hpp>
#include <cella/parallel/lone_rank.hpp>
#include <cella/parallel/measure_mesh.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/parallel/run_ranks.hpp>
#include <cella/parallel/shared_statistics.hpp>
#include <cella/parallel/simulation.hpp>
#include <cella/parallel/timed_communicator.hpp>
#include <cella/parallel/topology.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/train/step.hpp>
#include <cstdlib>
#include <iostream>
#include <random>

using namespace cella;
using namespace cella::parallel;

namespace {

struct settings {
  std::string workload, mesh = "data=2", mode = "data", topology;
  int threads = 1;
  bool threads_as_ranks = std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr;
};

struct work {
  graph step;
  int classes;
};
template <class Net, class Loss, class Optimizer>
work traced(const tensor_type& x, const tensor_type& y, int classes, Optimizer optimizer) {
  training_step<Net, Loss, Optimizer> step{{}, {}, optimizer};
  const std::array types{x, y};
  return {compiled_once::optimize(trace(step, types, {.training = true})), classes};
}
work work_of(const std::string& name) {
  const optim::sgd momentum{.momentum = 0.9};
  if (name == "resnet20_32")
    return traced<models::resnet20<>, cross_entropy_loss>({dtype::f32, {32, 3, 32, 32}},
                                                          {dtype::i32, {32}}, 10, momentum);
  if (name == "mlp128_wide")
    return traced<models::mlp<784, 1024, 1024, 10>, cross_entropy_loss>(
        {dtype::f32, {128, 784}}, {dtype::i32, {128}}, 10, momentum);
  if (name == "gpt_8")
    return traced<models::gpt<1024, 256, 4, 4, 128>, nn::token_cross_entropy>(
        {dtype::i32, {8, 128}}, {dtype::i32, {1024}}, 1024, optim::adam{});
  if (name == "lenet32")
    return traced<models::lenet5, cross_entropy_loss>({dtype::f32, {32, 1, 28, 28}},
                                                      {dtype::i32, {32}}, 10, momentum);
  throw error("there are resnet20_32, gpt_8, mlp128_wide and lenet32");
}

/// Random first values, alike on all ranks.
void fill(rank_program& run, int classes) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  for (const rank_inputs::input& in : run.inputs()) {
    aligned_buffer whole(std::size_t(in.whole.bytes()));
    const float scale = in.role == input_role::argument ? 1.f : in.is_kept() ? 0.05f : 0.f;
    for (std::int64_t k = 0; k < in.whole.size(); ++k) {
      if (in.whole.element == dtype::i32)
        reinterpret_cast<std::int32_t*>(whole.data())[k] =
            std::int32_t(random() % unsigned(classes));
      else if (in.role != input_role::slot)
        reinterpret_cast<float*>(whole.data())[k] = scale * normal(random);
    }
    run.set(in.index, {whole.data(), in.whole});
  }
  run.scalar("learning_rate", 1e-3);
  run.scalar("step", 1);
}

struct times {
  double median{}, least{}, exchanging{};  ///< milliseconds; the last is a median, too
};
/// All ranks take as many steps: the first one says how many.
times measure(rank_program& run, const timed_communicator& timed, int steps) {
  std::vector<double> all, exchanging;
  for (int k = 0; k < 3; ++k) run();
  for (int k = 0; k < steps; ++k) {
    const double before = timed.seconds();
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    all.push_back(took.count());
    exchanging.push_back(1e3 * (timed.seconds() - before));
  }
  std::sort(all.begin(), all.end());
  std::sort(exchanging.begin(), exchanging.end());
  const std::size_t middle = all.size() / 2;
  return {all[middle], all[0], exchanging[middle]};
}
int steps_of_eight_seconds(double milliseconds) {
  return std::clamp(int(8000 / milliseconds), 5, 3000);
}

void time_rank(const settings& s, const work& w, const parallel_plan& p, int rank,
               const communicator& c) {
  const std::unique_ptr<thread_pool> pool(s.threads > 1 ? new thread_pool(s.threads) : nullptr);
  // What this rank computes without the others is measured: the rest is predicted.
  double alone = 0;
  {
    const communicator lone = lone_rank(p.mesh, rank);
    const timed_communicator timed(lone);
    rank_program run(w.step, p, rank, timed.get(), dtype::f32, pool.get());
    fill(run, w.classes);
    run.scalar("learning_rate", 0);
    const double once = measure(run, timed, 20).median;
    alone = measure(run, timed, std::clamp(int(500 / once), 20, 2000)).median;
  }
  const timed_communicator timed(c);
  rank_program run(w.step, p, rank, timed.get(), dtype::f32, pool.get());
  fill(run, w.classes);
  const double slowest = -smallest_of_ranks(p.mesh, c, -alone);
  const times found = measure(run, timed, steps_of_eight_seconds(slowest));
  if (rank > 0) return;
  const simulation predicted =
      simulate(p, {.compute_factor = 1e-3 * slowest / computing_seconds(step_of(p), 0)});
  std::cout << nlohmann::ordered_json{{"framework", "cella"},
                                      {"version", CELLA_VERSION},
                                      {"workload", s.workload},
                                      {"mode", s.mode},
                                      {"ranks", p.mesh.ranks()},
                                      {"threads", s.threads},
                                      {"median_ms", found.median},
                                      {"min_ms", found.least},
                                      {"exposed_ms", found.exchanging},
                                      {"alone_ms", slowest},
                                      {"predicted_ms", 1e3 * predicted.seconds},
                                      {"predicted_exposed_ms", 1e3 * predicted.exposed_seconds}}
            << std::endl;
}

mode mode_of(const std::string& name) {
  for (mode one :
       {mode::serial, mode::data, mode::zero1, mode::zero2, mode::zero3, mode::automatic})
    if (name == mode_name(one)) return one;
  throw error("there are the modes serial, data, zero1, zero2, zero3 and automatic");
}

void time_all(const settings& s) {
  device_mesh m = parse_mesh(s.mesh);
  if (!s.topology.empty()) m = with_topology(m, load_topology(s.topology));
  work w = work_of(s.workload);
  if (m.ranks() > 1) w.step = share_statistics(w.step);
  const parallel_plan p = plan_for(w.step, m, {.mode = mode_of(s.mode)});
  run_ranks(m, s.threads_as_ranks, [&](int r, const communicator& c) { time_rank(s, w, p, r, c); });
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bool understood = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::string* const value = word == "--mesh"       ? &s.mesh
                               : word == "--mode"     ? &s.mode
                               : word == "--topology" ? &s.topology
                                                      : nullptr;
    if (value && i + 1 < argc)
      *value = argv[++i];
    else if (word == "--threads" && i + 1 < argc)
      s.threads = std::atoi(argv[++i]);
    else if (word == "--threads-as-ranks")
      s.threads_as_ranks = true;
    else if (word[0] != '-' && s.workload.empty())
      s.workload = word;
    else
      understood = false;
  }
  if (!understood || s.workload.empty() || s.threads < 1) {
    std::cerr
        << "usage: ranks {resnet20_32|gpt_8|mlp128_wide|lenet32} [--mesh data=2] [--mode data] "
           "[--threads 1] [--topology FILE] [--threads-as-ranks]\n";
    return 2;
  }
  try {
    time_all(s);
  } catch (const std::exception& e) {
    std::cerr << "ranks: " << e.what() << "\n";
    return 1;
  }
}
