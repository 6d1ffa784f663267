// Measures what the ranks at hand can do, for the model of costs that divides programs among them:
// messages and collective operations along each axis of the mesh, products, memory.
//
// usage: cella-measure-mesh [--mesh data=2] [--output FILE] [--threads-as-ranks]
// Started by mpirun, ranks are its processes, else threads of this one. FILE is what
// `load_topology` reads, and train_parallel with --topology, or, where its name ends in .hpp, a
// header for the compiler (`measured_mesh`); without it nothing is written.
#include <unistd.h>

#include <cella/backend/cpu/run/peak.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/parallel/measure_mesh.hpp>
#include <cella/parallel/run_ranks.hpp>
#include <cella/parallel/topology.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace cella;
using namespace cella::parallel;

namespace {

/// Of a product of matrices of f32, in the median.
double flops_of_product() {
  constexpr int n = 512;
  builder b;
  const var x{&b, b.input({dtype::f32, {n, n}}, input_role::argument, "x")},
      y{&b, b.input({dtype::f32, {n, n}}, input_role::argument, "y")};
  const node_id out = matmul(x, y).id;
  b.g.outputs.push_back({});
  b.end({&out, 1});
  loaded_program product(b.g, dtype::f32);
  aligned_buffer values(2 * sizeof(float) * n * n);
  product.bind(0, values.data());
  product.bind(1, values.data() + sizeof(float) * n * n);
  std::vector<double> seconds;
  for (int i = 0; i < 31; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    product();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i > 0) seconds.push_back(took.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 15, seconds.end());
  return 2.0 * n * n * n / seconds[15];
}

/// Of a copy that no cache holds.
double memory_bytes_per_second() { return cpu::measured_copy(std::size_t{1} << 27, 0.2); }

void print(const device_mesh& m) {
  std::printf("%-10s %5s  %-15s %12s %12s\n", "axis", "ranks", "what", "latency", "bandwidth");
  const auto row = [](const mesh_axis& a, std::string_view what, const link_speed& s) {
    std::printf("%-10s %5d  %-15.*s %9.2f us %7.2f GB/s\n", std::string(a.name.view()).c_str(),
                a.size, int(what.size()), what.data(), 1e6 * s.latency, 1e-9 * s.bytes_per_second);
  };
  for (int a = 0; a < m.axis_count; ++a) {
    if (m[a].size == 1) continue;
    row(m[a], "message", {m[a].bytes_per_second, m[a].latency});
    for (int k = int(move_kind::all_gather); k < move_kinds; ++k)
      row(m[a], move_name(move_kind(k)), m[a].measured[std::size_t(k)]);
    row(m[a], "all_reduce in 2", m[a].started);
    std::printf("%-17s sums go on while a rank computes: %.0f %%\n", "", 100 * m[a].overlap);
  }
  std::printf("a rank: %.1f GFLOP/s of a product, memory %.1f GB/s and %.1f GB\n",
              1e-9 * m.each.flops_per_second, 1e-9 * m.each.memory_bytes_per_second,
              1e-9 * m.each.memory_bytes);
}

/// What one rank does; all measure at the same time.
void measure(const device_mesh& m, int rank, const communicator& c, const std::string& output) {
  device_mesh found = measure_axes(m, c);
  found.each.flops_per_second = smallest_of_ranks(m, c, flops_of_product());
  found.each.memory_bytes_per_second = smallest_of_ranks(m, c, memory_bytes_per_second());
  // Ranks are taken to be on this machine; of several the one with least memory counts.
  found.each.memory_bytes = smallest_of_ranks(
      m, c, double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) / m.ranks());
  if (rank > 0) return;
  print(found);
  if (!output.empty()) save_topology(found, output);
}

}  // namespace

int main(int argc, char** argv) {
  std::string mesh = "data=2", output;
  bool threads =
      std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr && std::getenv("PMI_SIZE") == nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--mesh" && i + 1 < argc) {
      mesh = argv[++i];
    } else if (word == "--output" && i + 1 < argc) {
      output = argv[++i];
    } else if (word == "--threads-as-ranks") {
      threads = true;
    } else {
      std::fprintf(stderr,
                   "usage: %s [--mesh data=2] [--output FILE] [--threads-as-ranks]\n"
                   "Started by mpirun, ranks are its processes, else threads of this one.\n",
                   argv[0]);
      return 2;
    }
  }
  try {
    const device_mesh m = parse_mesh(mesh);
    run_ranks(m, threads, [&](int r, const communicator& c) { measure(m, r, c, output); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cella-measure-mesh: %s\n", e.what());
    return 1;
  }
}
