#include "candidates.hpp"

#include <cella/backend/cpu/blocked/convolution.hpp>
#include <cella/backend/cpu/blocked/depthwise.hpp>
#include <cella/backend/cpu/blocked/stem.hpp>
#include <cella/backend/cpu/blocked/winograd_weight_gradient.hpp>
#include <cella/backend/cpu/convolution/implicit_gemm.hpp>
#include <cella/backend/cpu/convolution/input_gradient.hpp>
#include <cella/backend/cpu/convolution/weight_gradient.hpp>
#include <cella/backend/cpu/lanes/convolution_weights.hpp>
#include <cella/backend/host/buffer.hpp>
#include <chrono>
#include <random>

namespace cella::tune {

namespace {

using T = float;
constexpr int L = cpu::lanes<T>;

/// Stores vectors of the lanes or of blocks.
struct store_vectors {
  T* to;
  void operator()(cpu::vec<T> v, std::int64_t element, int) const {
    cpu::store(to + element * L, v);
  }
};
/// Stores runs of plain filters.
struct store_runs {
  T* to;
  void operator()(cpu::vec<T> v, std::int64_t offset, int count) const {
    cpu::store_first(to + offset, count, v);
  }
};

/// Elements that are numbers, not denormal: what the kernels compute does not matter here.
class array {
 public:
  explicit array(std::int64_t elements) : bytes_(std::size_t(elements) * sizeof(T) + 1024) {
    std::minstd_rand random(1);
    std::uniform_real_distribution<T> uniform(-1, 1);
    for (std::int64_t i = 0; i < elements; ++i) data()[i] = uniform(random);
  }
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  std::byte* scratch() const { return bytes_.data(); }

 private:
  aligned_buffer bytes_;
};

std::int64_t elements(double n) { return std::int64_t(n) + 64; }

}  // namespace

struct candidates::memory {
  convolution_shape s;
  cpu::convolution_extents plain;
  cpu::lanes_convolution_extents in_lanes;
  cpu::blocked_convolution_extents blocks;
  cpu::stem_extents stem;
  array image, result, filter;  // of the largest layout
  array packed, scratch;

  static double batch(const convolution_shape& s) {
    return double(ceil_divide(s.samples, L)) * L / s.samples;
  }
  static double bordered(const convolution_shape& s) {
    return double(s.height + 2 * s.walk.before[0]) * (s.width + 2 * s.walk.before[1]) /
           (double(s.height) * s.width);
  }
  static cpu::convolution_axis axis(const convolution_shape& s, std::size_t d) {
    return {d == 0 ? s.height : s.width,
            s.kernel[d],
            s.walk.stride[d],
            s.walk.before[d],
            s.walk.after[d],
            s.walk.dilation[d]};
  }
  std::int64_t packed_size() const {
    std::int64_t n = elements(s.filter_size()) * cpu::weight_gradient_slices<T>(blocks);
    if (has_kernel(convolution_algorithm::minimal, s))
      n = std::max(n, cpu::winograd::gradient_slices<T>(blocks) *
                          cpu::winograd::gradient_sums_size<T>(blocks));
    return n + std::int64_t{L} * 1024;
  }
  std::int64_t scratch_size() const {
    std::int64_t bytes = std::max({cpu::convolution_scratch<T>(plain),
                                   cpu::convolution_input_gradient_scratch<T>(plain),
                                   cpu::convolution_weight_gradient_scratch<T>(plain)});
    std::int64_t n = cpu::lanes_convolution_weight_gradient_scratch<T>(in_lanes) * 4;
    if (s.stem()) n = std::max(n, cpu::stem_image_size<T>(stem));
    if (has_kernel(convolution_algorithm::minimal, s)) {
      const auto forward = cpu::winograd::forward_tiles(blocks);
      const auto backward = cpu::winograd::backward_tiles(blocks);
      bytes =
          std::max({bytes, cpu::winograd::scratch<T>(forward, blocks.in_blocks, blocks.out_blocks),
                    cpu::winograd::scratch<T>(backward, blocks.out_blocks, blocks.in_blocks)});
      n = std::max(n, cpu::winograd::gradient_tiles_size<T>(blocks));
    }
    return std::max(n, bytes / std::int64_t{sizeof(T)}) + 1024;
  }

  explicit memory(const convolution_shape& shape)
      : s(shape),
        plain{s.samples, s.channels, s.filters, s.walk.groups, axis(s, 0), axis(s, 1)},
        in_lanes{cpu::lane_blocks<T>(s.samples),
                 s.channels,
                 s.height,
                 s.width,
                 s.filters,
                 s.kernel[0],
                 s.kernel[1],
                 s.walk.stride[0],
                 s.walk.stride[1],
                 s.walk.before[0],
                 s.walk.before[1]},
        blocks{s.samples,        s.channels / L,   s.height,         s.width,
               s.filters / L,    s.kernel[0],      s.kernel[1],      s.walk.stride[0],
               s.walk.stride[1], s.walk.before[0], s.walk.before[1], s.out_height(),
               s.out_width()},
        stem{s.samples,        s.channels,     s.height,         s.width,          s.filters / L,
             s.kernel[0],      s.kernel[1],    s.walk.stride[0], s.walk.stride[1], s.walk.before[0],
             s.walk.before[1], s.out_height(), s.out_width()},
        image(elements(s.image_size() * batch(s) * bordered(s))),
        result(elements(s.result_size() * batch(s))),
        filter(elements(s.filter_size())),
        packed(packed_size()),
        scratch(scratch_size()) {}

  void run_plain(convolution_pass p) {
    if (p == convolution_pass::forward)
      cpu::convolution(plain, image.data(), filter.data(), cpu::store_to<T>{result.data()},
                       scratch.scratch(), {0, cpu::convolution_units<T>(plain)});
    else if (p == convolution_pass::image_gradient)
      cpu::convolution_input_gradient(plain, filter.data(), result.data(),
                                      cpu::store_to<T>{image.data()}, scratch.scratch(),
                                      {0, cpu::convolution_input_gradient_units<T>(plain)});
    else
      cpu::convolution_weight_gradient(plain, image.data(), result.data(),
                                       cpu::store_to<T>{packed.data()}, scratch.scratch(),
                                       {0, cpu::convolution_weight_gradient_units<T>(plain)});
  }
  template <int K>
  void run_lanes(convolution_pass p) {
    const auto& e = in_lanes;
    if (p == convolution_pass::forward)
      cpu::lanes_convolution<K>({0, cpu::lanes_convolution_units(e)}, e, image.data(),
                                filter.data(), store_vectors{result.data()});
    else if (p == convolution_pass::image_gradient)
      cpu::lanes_convolution_input_gradient({0, cpu::lanes_convolution_input_gradient_units(e)}, e,
                                            result.data(), filter.data(),
                                            store_vectors{image.data()});
    else
      cpu::lanes_convolution_weight_gradient<K>(
          {0, cpu::lanes_convolution_weight_gradient_units<K>(e)}, e, image.data(), result.data(),
          scratch.data(), store_runs{packed.data()});
  }
  void run_stem(convolution_pass p) {
    cpu::pad_stem<T>({0, stem.samples * stem.channels}, stem, image.data(), scratch.data());
    if (p == convolution_pass::forward) {
      cpu::pack_stem_filters<T>({0, stem.out_blocks}, stem, filter.data(), packed.data());
      cpu::stem_convolution<T>({0, cpu::stem_units<T>(stem)}, stem, scratch.data(), packed.data(),
                               store_vectors{result.data()});
    } else {
      cpu::stem_weight_gradient<T>({0, cpu::stem_gradient_units<T>(stem)}, stem, scratch.data(),
                                   result.data(), packed.data());
    }
  }
  void run_depthwise(convolution_pass p) {
    const auto& e = blocks;
    cpu::stem_extents f = stem;
    f.channels = 1;
    if (p == convolution_pass::filter_gradient) {
      cpu::depthwise_weight_gradient<T>({0, cpu::depthwise_weight_gradient_units(e)}, e,
                                        image.data(), result.data(), packed.data());
      cpu::finish_stem_filters<T>({0, e.out_blocks}, f, packed.data(), store_runs{filter.data()});
      return;
    }
    cpu::pack_stem_filters<T>({0, e.out_blocks}, f, filter.data(), packed.data());
    if (p == convolution_pass::forward)
      cpu::depthwise_convolution<T>({0, cpu::depthwise_units(e)}, e, image.data(), packed.data(),
                                    store_vectors{result.data()});
    else
      cpu::depthwise_input_gradient<T>({0, cpu::depthwise_units(e)}, e, result.data(),
                                       packed.data(), store_vectors{image.data()});
  }
  void run_direct(convolution_pass p) {
    const auto& e = blocks;
    if (p == convolution_pass::forward) {
      cpu::pack_filters<T>({0, e.out_blocks}, e.in_blocks, e.taps(), filter.data(), packed.data());
      cpu::blocked_convolution<T>({0, cpu::blocked_convolution_units<T>(e)}, e, image.data(),
                                  packed.data(), store_vectors{result.data()});
    } else if (p == convolution_pass::image_gradient) {
      cpu::pack_filters_transposed<T>({0, e.in_blocks}, e.in_blocks, e.out_blocks, e.taps(),
                                      filter.data(), packed.data());
      cpu::blocked_input_gradient<T>({0, cpu::blocked_input_gradient_units<T>(e)}, e, result.data(),
                                     packed.data(), store_vectors{image.data()});
    } else {
      cpu::blocked_weight_gradient<T>({0, cpu::blocked_weight_gradient_units<T>(e)}, e,
                                      image.data(), result.data(), packed.data());
      cpu::finish_filters<T>({0, e.out_blocks}, e, packed.data(), store_runs{filter.data()});
    }
  }
  void run_winograd(convolution_pass p) {
    namespace w = cpu::winograd;
    const auto& e = blocks;
    if (p == convolution_pass::forward) {
      w::transform_filters<T, false>({0, e.out_blocks}, e.in_blocks, e.out_blocks, filter.data(),
                                     packed.data());
      cpu::winograd_convolution<T>({0, w::units<T>(w::forward_tiles(e), e.in_blocks, e.out_blocks)},
                                   e, image.data(), packed.data(), store_vectors{result.data()},
                                   scratch.scratch());
    } else if (p == convolution_pass::image_gradient) {
      w::transform_filters<T, true>({0, e.in_blocks}, e.in_blocks, e.out_blocks, filter.data(),
                                    packed.data());
      cpu::winograd_input_gradient<T>(
          {0, w::units<T>(w::backward_tiles(e), e.out_blocks, e.in_blocks)}, e, result.data(),
          packed.data(), store_vectors{image.data()}, scratch.scratch());
    } else {
      for (int k = 0; k < w::gradient_phases<T>(e); ++k)
        w::sum_gradients<T>({0, w::gradient_phase_units<T>(e, k)}, e, k, image.data(),
                            result.data(), scratch.data(), packed.data());
      w::finish_gradient<T>({0, e.out_blocks}, e, packed.data(), store_runs{filter.data()});
    }
  }
};

candidates::candidates(const convolution_shape& shape) : memory_(new memory(shape)) {}
candidates::~candidates() = default;

void candidates::run(convolution_algorithm a, convolution_pass p) {
  memory& m = *memory_;
  switch (a) {
    case convolution_algorithm::plain:
      return m.run_plain(p);
    case convolution_algorithm::lanes: {
      const int k = m.s.walk.stride[1] == 1 ? m.s.kernel[1] : 0;
      return k == 3 ? m.run_lanes<3>(p) : k == 5 ? m.run_lanes<5>(p) : m.run_lanes<0>(p);
    }
    case convolution_algorithm::direct:
      return m.s.depthwise() ? m.run_depthwise(p) : m.s.stem() ? m.run_stem(p) : m.run_direct(p);
    default:
      return m.run_winograd(p);
  }
}

double measured_nanoseconds(candidates& c, convolution_algorithm a, convolution_pass p,
                            double seconds) {
  using clock = std::chrono::steady_clock;
  double best = 1e30;
  c.run(a, p);
  const auto end = clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < 3 || clock::now() < end; ++i) {
    const auto start = clock::now();
    c.run(a, p);
    const std::chrono::duration<double, std::nano> took = clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

}  // namespace cella::tune
