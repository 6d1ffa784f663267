// Measures every kernel that can compute a convolution on this machine, beside what the cost model
// (backend/cpu/plan/convolution_cost.hpp) says, and writes what the build should know of the
// machine.
//
// usage: cella-tune [--output FILE] [--seconds S] [SHAPE...]
// SHAPE is SAMPLESxCHANNELSxHEIGHTxWIDTH:FILTERS:KERNEL[:STRIDE[:PADDING[:GROUPS]]]; without one,
// the convolutions of the workloads. FILE is cella_tuning.hpp in the folder that the build is told
// with -DCELLA_TUNING=FOLDER; without it nothing is written.
#include <algorithm>
#include <cella/backend/cpu/run/peak.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tune/candidates.hpp"

namespace {

using namespace cella;
using tune::candidates;

constexpr int L = cpu::lanes<float>;

convolution_shape square(int samples, int channels, int size, int filters, int kernel,
                         int stride = 1, int padding = -1, int groups = 1) {
  const int p = padding < 0 ? kernel / 2 : padding;
  return {samples,
          channels,
          size,
          size,
          filters,
          {kernel, kernel},
          {{stride, stride}, {p, p}, {p, p}, {1, 1}, groups},
          dtype::f32,
          L};
}

const std::vector<convolution_shape>& shapes_of_workloads() {
  static const std::vector<convolution_shape> all{square(32, 1, 28, 6, 5, 1, 2),
                                                  square(32, 6, 14, 16, 5, 1, 0),
                                                  square(8, 6, 14, 16, 5, 1, 0),
                                                  square(1, 6, 14, 16, 5, 1, 0),
                                                  square(32, 3, 32, 16, 3),
                                                  square(32, 16, 32, 16, 3),
                                                  square(32, 16, 32, 32, 3, 2),
                                                  square(32, 32, 16, 32, 3),
                                                  square(32, 64, 8, 64, 3),
                                                  square(8, 24, 16, 24, 3),
                                                  square(32, 24, 16, 24, 3),
                                                  square(8, 3, 224, 64, 7, 2),
                                                  square(8, 64, 56, 64, 3),
                                                  square(8, 128, 28, 128, 3),
                                                  square(8, 256, 14, 256, 3),
                                                  square(8, 512, 7, 512, 3),
                                                  square(8, 128, 56, 128, 3, 2),
                                                  square(8, 256, 28, 256, 3, 2),
                                                  square(8, 64, 56, 256, 1, 1, 0),
                                                  square(8, 256, 56, 64, 1, 1, 0),
                                                  square(8, 1024, 14, 256, 1, 1, 0),
                                                  square(8, 256, 56, 512, 1, 2, 0),
                                                  square(8, 32, 112, 32, 3, 1, 1, 32),
                                                  square(8, 64, 112, 64, 3, 2, 1, 64),
                                                  square(8, 256, 28, 256, 3, 1, 1, 256),
                                                  square(8, 512, 14, 512, 3, 1, 1, 512),
                                                  square(1, 64, 56, 64, 3),
                                                  square(1, 128, 28, 128, 3),
                                                  square(1, 256, 14, 256, 3),
                                                  square(1, 512, 7, 512, 3),
                                                  square(1, 1024, 14, 256, 1, 1, 0)};
  return all;
}

std::string written(const convolution_shape& s) {
  std::ostringstream out;
  out << s.samples << 'x' << s.channels << 'x' << s.height << 'x' << s.width << ':' << s.filters
      << ':' << s.kernel[0] << ':' << s.walk.stride[0] << ':' << s.walk.before[0];
  if (s.walk.groups > 1) out << ':' << s.walk.groups;
  return out.str();
}
bool read(const char* from, convolution_shape& s) {
  int n = 0, c = 0, h = 0, w = 0, f = 0, k = 0, stride = 1, padding = -1, groups = 1;
  const int found = std::sscanf(from, "%dx%dx%dx%d:%d:%d:%d:%d:%d", &n, &c, &h, &w, &f, &k, &stride,
                                &padding, &groups);
  if (found < 6 || std::min({n, c, h, w, f, k, stride, groups}) < 1) return false;
  if (c % groups || f % groups) return false;
  s = square(n, c, h, f, k, stride, found < 8 ? -1 : padding, groups);
  s.width = w;
  return s.out_height() > 0 && s.out_width() > 0 && s.walk.before[0] >= 0;
}

std::vector<measured_convolution> measure(const std::vector<convolution_shape>& shapes,
                                          double seconds) {
  std::vector<measured_convolution> all;
  for (const convolution_shape& s : shapes) {
    candidates c(s);
    for (int p = 0; p < convolution_passes; ++p) {
      measured_convolution m{s, convolution_pass(p), {}};
      for (int a = 0; a < convolution_algorithms; ++a) {
        if (has_kernel(convolution_algorithm(a), s, m.pass))
          m.nanoseconds[std::size_t(a)] =
              tune::measured_nanoseconds(c, convolution_algorithm(a), m.pass, seconds);
      }
      all.push_back(m);
    }
    std::fprintf(stderr, "%s\n", written(s).c_str());
  }
  return all;
}

/// Whether a kernel took less than three times as long as the fastest: elsewhere the model need not
/// be right.
bool competes(const measured_convolution& x, double nanoseconds) {
  for (double other : x.nanoseconds) {
    if (other > 0 && nanoseconds > 3 * other) return false;
  }
  return nanoseconds > 0;
}

/// The constants with which the model comes closest to what was measured: the median of the shares
/// that single measurements imply. Those of which less than `few` are known keep their defaults.
convolution_machine fitted(const std::vector<measured_convolution>& all) {
  constexpr std::size_t few = 5;
  convolution_machine best;
  best.rate = cpu::measured_peak<float>() / (2e9 * L);
  best.copies = cpu::measured_copy(std::size_t{1} << 26, 1) * 1e-9;
  const auto fit = [&](convolution_machine& m, int a) {
    double error = 0;
    for (std::size_t p = 0; p < convolution_passes; ++p) {
      std::vector<double> logs;
      for (const measured_convolution& x : all) {
        const double found = x.nanoseconds[std::size_t(a)];
        if (x.pass != convolution_pass(p) || !competes(x, found)) continue;
        const auto at = [&](double share) {
          m.share[std::size_t(a)][p] = share;
          return modelled_nanoseconds(convolution_algorithm(a), x.shape, x.pass, m);
        };
        const double fixed = at(1e30), steps = at(1) - fixed;
        logs.push_back(std::log(steps / std::max(found - fixed, 0.2 * found)));
      }
      m.share[std::size_t(a)][p] = convolution_machine{}.share[std::size_t(a)][p];
      if (logs.size() < few) continue;
      std::sort(logs.begin(), logs.end());
      const double median = logs[logs.size() / 2];
      for (double l : logs) error += std::abs(l - median);
      m.share[std::size_t(a)][p] = std::exp(median);
    }
    return error;
  };
  for (int a = 0; a < convolution_algorithms; ++a) fit(best, a);
  constexpr int minimal = int(convolution_algorithm::minimal);
  double least = 1e30;
  convolution_machine tried = best;
  for (double rate = 0.2; rate < 8; rate *= 1.1) {
    tried.transforms = rate;
    const double error = fit(tried, minimal);
    if (error > 0 && error < least) best = tried, least = error;
  }
  return best;
}

struct verdict {
  convolution_algorithm fastest, chosen;
  double lost;  ///< by the model's choice, as a part of the fastest time
};
/// `blocks`: only among the kernels of that layout, which is the choice within a program.
verdict judge(const measured_convolution& x, const convolution_machine& m, bool blocks) {
  verdict v{};
  double fastest = 1e30, modelled = 1e30, chosen = 0;
  for (int a = blocks ? 2 : 0; a < convolution_algorithms; ++a) {
    const double found = x.nanoseconds[std::size_t(a)];
    if (found <= 0) continue;
    const auto algorithm = convolution_algorithm(a);
    const double says = modelled_nanoseconds(algorithm, x.shape, x.pass, m);
    if (found < fastest) fastest = found, v.fastest = algorithm;
    if (says < modelled) modelled = says, chosen = found, v.chosen = algorithm;
  }
  v.lost = fastest < 1e30 ? chosen / fastest - 1 : 0;
  return v;
}

void print(const std::vector<measured_convolution>& all, const convolution_machine& m) {
  std::printf("measured | modelled microseconds\n%-22s %-15s", "convolution", "pass");
  for (int a = 0; a < convolution_algorithms; ++a)
    std::printf(" %19.*s", int(name(convolution_algorithm(a)).size()),
                name(convolution_algorithm(a)).data());
  std::printf("  fastest  chosen\n");
  int wrong = 0, wrong_in_blocks = 0;
  double lost = 0, lost_in_blocks = 0;
  for (const measured_convolution& x : all) {
    std::printf("%-22s %-15s", written(x.shape).c_str(), std::string(name(x.pass)).c_str());
    for (int a = 0; a < convolution_algorithms; ++a) {
      const double found = x.nanoseconds[std::size_t(a)];
      if (found > 0)
        std::printf(" %9.1f|%9.1f", found * 1e-3,
                    modelled_nanoseconds(convolution_algorithm(a), x.shape, x.pass, m) * 1e-3);
      else
        std::printf(" %19s", "");
    }
    const verdict v = judge(x, m, false), b = judge(x, m, true);
    std::printf("  %-8s %s", std::string(name(v.fastest)).c_str(),
                std::string(name(v.chosen)).c_str());
    if (v.lost > 0) std::printf(" (+%.0f%%)", 100 * v.lost);
    std::printf("\n");
    wrong += v.lost > 0.05;
    wrong_in_blocks += b.lost > 0.05;
    lost = std::max(lost, v.lost);
    lost_in_blocks = std::max(lost_in_blocks, b.lost);
  }
  std::printf(
      "the model's choice is more than 5%% slower than the fastest kernel in %d of %zu cases, at "
      "most by %.0f%%; among kernels in blocks in %d, at most by %.0f%%\n",
      wrong, all.size(), 100 * lost, wrong_in_blocks, 100 * lost_in_blocks);
}

/// Written beside the file, then moved: a build never sees half of it.
bool write(const std::string& path, const std::vector<measured_convolution>& all,
           const convolution_machine& m) {
  const std::string draft = path + ".new";
  std::ofstream out(draft);
  out << "// Written by cella-tune: what backend/cpu/plan/convolution_cost.hpp should know of one "
         "machine.\n"
         "// Included by it; not to be edited.\n\nnamespace cella::tuning {\n\n"
         "inline constexpr convolution_machine machine{\n    "
      << m.rate << ", " << m.transforms << ", " << m.copies << ", " << m.cache << ",\n    {{";
  for (const auto& of_passes : m.share) {
    out << (&of_passes == &m.share[0] ? "{" : ", {");
    for (std::size_t p = 0; p < of_passes.size(); ++p) out << (p ? ", " : "") << of_passes[p];
    out << "}";
  }
  out << "}}};\n\ninline constexpr std::array<measured_convolution, " << all.size()
      << "> measured{{\n";
  for (const measured_convolution& x : all) {
    const auto pair = [](const std::array<std::int32_t, 2>& a) {
      return "{" + std::to_string(a[0]) + ", " + std::to_string(a[1]) + "}";
    };
    const convolution_shape& s = x.shape;
    out << "    {{" << s.samples << ", " << s.channels << ", " << s.height << ", " << s.width
        << ", " << s.filters << ", " << pair(s.kernel) << ", {" << pair(s.walk.stride) << ", "
        << pair(s.walk.before) << ", " << pair(s.walk.after) << ", " << pair(s.walk.dilation)
        << ", " << s.walk.groups << "}, dtype::f32, " << s.lanes << "},\n     convolution_pass("
        << int(x.pass) << "),\n     {";
    for (std::size_t a = 0; a < x.nanoseconds.size(); ++a)
      out << (a ? ", " : "") << x.nanoseconds[a];
    out << "}},\n";
  }
  out << "}};\n\n}  // namespace cella::tuning\n";
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(draft, path, failed);
  if (out && !failed) return true;
  std::fprintf(stderr, "cella-tune: cannot write %s\n", path.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::string output;
  double seconds = 0.05;
  std::vector<convolution_shape> shapes;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    convolution_shape s;
    if (word == "--output" && i + 1 < argc) {
      output = argv[++i];
    } else if (word == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (read(argv[i], s)) {
      shapes.push_back(s);
    } else {
      std::fprintf(
          stderr,
          "usage: %s [--output FILE] [--seconds S] [SHAPE...]\n"
          "SHAPE is SAMPLESxCHANNELSxHEIGHTxWIDTH:FILTERS:KERNEL[:STRIDE[:PADDING[:GROUPS]]]\n",
          argv[0]);
      return 2;
    }
  }
  const auto measured = measure(shapes.empty() ? shapes_of_workloads() : shapes, seconds);
  const convolution_machine machine =
      shapes.empty() || !output.empty() ? fitted(measured) : tuning::machine;
  std::printf(
      "model: %.2f multiply-adds of vectors and %.2f vectors of transforms per ns, memory "
      "%.1f GB/s\n",
      machine.rate, machine.transforms, machine.copies);
  for (int a = 0; a < convolution_algorithms; ++a) {
    const auto& share = machine.share[std::size_t(a)];
    std::printf("  %-9s reaches %3.0f%% forward, %3.0f%% image gradient, %3.0f%% filter gradient\n",
                std::string(name(convolution_algorithm(a))).c_str(), 100 * share[0], 100 * share[1],
                100 * share[2]);
  }
  print(measured, machine);
  return output.empty() || write(output, measured, machine) ? 0 : 1;
}
