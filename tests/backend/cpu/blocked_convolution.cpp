#include <cella/backend/cpu/blocked/convolution.hpp>
#include <cella/backend/cpu/blocked/depthwise.hpp>
#include <cella/backend/cpu/blocked/pairs.hpp>
#include <cella/backend/cpu/blocked/stem.hpp>
#include <cella/backend/cpu/blocked/unit_convolution.hpp>
#include <cella/backend/cpu/blocked/unit_weight_gradient.hpp>
#include <cella/backend/cpu/blocked/winograd_weight_gradient.hpp>

#include "blocked_reference.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Numbers that S has.
template <class S, class T>
aligned<T> as_stored(aligned<T> a) {
  for (std::int64_t i = 0; i < a.size; ++i) a[i] = static_cast<T>(S(a[i]));
  return a;
}

/// The three convolutions of one shape in double precision, on plain tensors of numbers of type S.
template <class T, class S = T>
struct reference {
  blocked_convolution_extents e;
  int in, out;
  aligned<T> x, w, dy;
  std::vector<double> y, dx, dw;

  reference(const blocked_convolution_extents& extents, int in_channels, std::mt19937& random)
      : e(extents),
        in(in_channels),
        out(e.out_blocks * lanes<T>),
        x(as_stored<S>(random_aligned<T>(e.samples * in * e.in_plane(), random))),
        w(as_stored<S>(random_aligned<T>(std::int64_t{out} * in * e.taps(), random))),
        dy(as_stored<S>(random_aligned<T>(e.samples * out * e.out_plane(), random))),
        y(std::size_t(dy.size)),
        dx(std::size_t(x.size)),
        dw(std::size_t(w.size)) {
    for_each_product(e, in, out, [&](int n, int c, int p, std::int64_t f, int o, int q) {
      const std::int64_t a = (std::int64_t{n} * in + c) * e.in_plane() + p;
      const std::int64_t b = (std::int64_t{n} * out + o) * e.out_plane() + q;
      y[std::size_t(b)] += double(x[a]) * double(w[f]);
      dx[std::size_t(a)] += double(dy[b]) * double(w[f]);
      dw[std::size_t(f)] += double(x[a]) * double(dy[b]);
    });
  }
  aligned<T> blocks(const aligned<T>& plain, int channels, std::int64_t pixels) const {
    aligned<T> b(plain.size);
    in_parts(blocked_image_units(e.samples, channels / lanes<T>),
             [&](work_range u) { pack_blocks<T>(u, int(pixels), plain.data(), b.data()); });
    return b;
  }
  double error_in_blocks(const std::vector<double>& expected, const aligned<T>& found, int channels,
                         std::int64_t pixels) const {
    return worst<T>(expected, [&](std::int64_t i) {
      const auto plane = i / pixels;
      return found[in_blocks<T>(channels, int(pixels), int(plane / channels), int(plane % channels),
                                int(i % pixels))];
    });
  }
};

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

template <class T>
void check_direct(const blocked_convolution_extents& e, std::mt19937& random) {
  const reference<T> r(e, e.in_blocks * lanes<T>, random);
  const auto x = r.blocks(r.x, r.in, e.in_plane()), dy = r.blocks(r.dy, r.out, e.out_plane());
  aligned<T> filters(r.w.size), y(r.dy.size), dx(r.x.size), dw(r.w.size);
  in_parts(e.out_blocks, [&](work_range u) {
    pack_filters<T>(u, e.in_blocks, e.taps(), r.w.data(), filters.data());
  });
  // What is handed over twice counts twice.
  std::fill_n(y.data(), y.size, T{0});
  in_parts(blocked_convolution_units<T>(e), [&](work_range u) {
    blocked_convolution<T>(u, e, x.data(), filters.data(), add_blocks<T>{y.data()});
  });
  CHECK(r.error_in_blocks(r.y, y, r.out, e.out_plane()) < tolerance<T>);
  in_parts(e.in_blocks, [&](work_range u) {
    pack_filters_transposed<T>(u, e.in_blocks, e.out_blocks, e.taps(), r.w.data(), filters.data());
  });
  in_parts(blocked_input_gradient_units<T>(e), [&](work_range u) {
    blocked_input_gradient<T>(u, e, dy.data(), filters.data(), store_blocks<T>{dx.data()});
  });
  CHECK(r.error_in_blocks(r.dx, dx, r.in, e.in_plane()) < tolerance<T>);
  aligned<T> sums(weight_gradient_slices<T>(e) * filter_elements<T>(e));
  in_parts(blocked_weight_gradient_units<T>(e), [&](work_range u) {
    blocked_weight_gradient<T>(u, e, x.data(), dy.data(), sums.data());
  });
  in_parts(e.out_blocks,
           [&](work_range u) { finish_filters<T>(u, e, sums.data(), store_runs<T>{dw.data()}); });
  CHECK(worst<T>(r.dw, [&](std::int64_t i) { return dw[i]; }) < tolerance<T>);
}

/// The same numbers in memory as S.
template <class S, class T>
aligned<S> stored_as(const aligned<T>& from) {
  aligned<S> to(from.size);
  for (std::int64_t i = 0; i < from.size; ++i) to[i] = S(from[i]);
  return to;
}

/// In pairs of bf16, of filters that are stored as S.
template <class S>
void check_pairs(const blocked_convolution_extents& e, std::mt19937& random) {
  using T = float;
  constexpr int L = lanes<T>;
  const reference<T, bfloat16> r(e, e.in_blocks * L, random);
  const auto x = stored_as<bfloat16>(r.blocks(r.x, r.in, e.in_plane()));
  const auto dy = stored_as<bfloat16>(r.blocks(r.dy, r.out, e.out_plane()));
  const auto w = stored_as<S>(r.w);
  const auto words = [](const auto& a) { return reinterpret_cast<const T*>(a.bytes.data()); };
  aligned<T> filters(r.w.size / 2), y(r.dy.size), dx(r.x.size), dw(r.w.size);
  in_parts(e.out_blocks, [&](work_range u) {
    pack_filter_pairs<T>(u, e.in_blocks, e.taps(), w.data(), filters.data());
  });
  std::fill_n(y.data(), y.size, T{0});
  in_parts(blocked_convolution_units<T, 2>(e), [&](work_range u) {
    blocked_convolution<T, 2>(u, e, words(x), filters.data(), add_blocks<T>{y.data()});
  });
  CHECK(r.error_in_blocks(r.y, y, r.out, e.out_plane()) < tolerance<T>);
  in_parts(e.in_blocks, [&](work_range u) {
    pack_filter_pairs_transposed<T>(u, e.in_blocks, e.out_blocks, e.taps(), w.data(),
                                    filters.data());
  });
  in_parts(blocked_input_gradient_units<T, 2>(e), [&](work_range u) {
    blocked_input_gradient<T, 2>(u, e, words(dy), filters.data(), store_blocks<T>{dx.data()});
  });
  CHECK(r.error_in_blocks(r.dx, dx, r.in, e.in_plane()) < tolerance<T>);
  aligned<T> sums(weight_gradient_slices<T>(e) * filter_elements<T>(e));
  aligned<std::byte> scratch(paired_weight_gradient_scratch<T>(e));
  in_parts(paired_weight_gradient_units<T>(e), [&](work_range u) {
    paired_weight_gradient<T>(u, e, x.data(), dy.data(), sums.data(), scratch.data());
  });
  in_parts(e.out_blocks,
           [&](work_range u) { finish_filters<T>(u, e, sums.data(), store_runs<T>{dw.data()}); });
  CHECK(worst<T>(r.dw, [&](std::int64_t i) { return dw[i]; }) < tolerance<T>);
}

/// What a matrix unit computes, all three passes of which the image's, or dy's, have whole tiles.
template <class Unit>
struct unit_results {
  using T = float;
  aligned<T> y, dx, dw;

  unit_results(const reference<T, bfloat16>& r)
      : y(r.dy.size), dx(r.x.size), dw(r.w.size), e_(r.e), filters_(r.w.size / 2) {
    const auto x = stored_as<bfloat16>(r.blocks(r.x, r.in, e_.in_plane()));
    const auto dy = stored_as<bfloat16>(r.blocks(r.dy, r.out, e_.out_plane()));
    const auto words = [](const auto& a) { return reinterpret_cast<const T*>(a.bytes.data()); };
    if (forward()) {
      pack_filter_pairs<T>({0, e_.out_blocks}, e_.in_blocks, e_.taps(), r.w.data(),
                           filters_.data());
      // What is handed over twice counts twice.
      std::fill_n(y.data(), y.size, T{0});
      aligned<std::byte> scratch(unit_convolution_scratch<T>(e_));
      in_parts(unit_convolution_units<T>(e_), [&](work_range u) {
        unit_convolution<Unit, T>(u, e_, words(x), filters_.data(), add_blocks<T>{y.data()},
                                  scratch.data());
      });
    }
    if (backward()) {
      pack_filter_pairs_transposed<T>({0, e_.in_blocks}, e_.in_blocks, e_.out_blocks, e_.taps(),
                                      r.w.data(), filters_.data());
      std::fill_n(dx.data(), dx.size, T{0});
      aligned<std::byte> scratch(unit_input_gradient_scratch<T>(e_));
      in_parts(unit_input_gradient_units<T>(e_), [&](work_range u) {
        unit_input_gradient<Unit, T>(u, e_, words(dy), filters_.data(), add_blocks<T>{dx.data()},
                                     scratch.data());
      });
    }
    aligned<T> sums(weight_gradient_slices<T>(e_) * filter_elements<T>(e_));
    aligned<std::byte> scratch(unit_weight_gradient_scratch<T>(e_));
    in_parts(unit_weight_gradient_units<T>(e_), [&](work_range u) {
      unit_weight_gradient<Unit, T>(u, e_, x.data(), dy.data(), sums.data(), scratch.data());
    });
    in_parts(e_.out_blocks, [&](work_range u) {
      finish_filters<T>(u, e_, sums.data(), store_runs<T>{dw.data()});
    });
  }
  bool forward() const { return e_.in_blocks % 2 == 0; }
  bool backward() const { return e_.out_blocks % 2 == 0; }

 private:
  const blocked_convolution_extents& e_;
  aligned<T> filters_;
};

[[maybe_unused]] bool same_bits(const aligned<float>& a, const aligned<float>& b) {
  return std::memcmp(a.data(), b.data(), sizeof(float) * std::size_t(a.size)) == 0;
}

template <class Own = matrix_unit>
void check_unit(const blocked_convolution_extents& e, std::mt19937& random) {
  using T = float;
  const reference<T, bfloat16> r(e, e.in_blocks * lanes<T>, random);
  const unit_results<emulated_unit> found(r);
  if (found.forward()) CHECK(r.error_in_blocks(r.y, found.y, r.out, e.out_plane()) < tolerance<T>);
  if (found.backward()) CHECK(r.error_in_blocks(r.dx, found.dx, r.in, e.in_plane()) < tolerance<T>);
  CHECK(worst<T>(r.dw, [&](std::int64_t i) { return found.dw[i]; }) < tolerance<T>);
  if constexpr (!std::is_void_v<Own>) {
    const unit_results<Own> own(r);
    if (found.forward()) CHECK(same_bits(own.y, found.y));
    if (found.backward()) CHECK(same_bits(own.dx, found.dx));
    CHECK(same_bits(own.dw, found.dw));
  }
}

template <class T>
void check_winograd(const blocked_convolution_extents& e, std::mt19937& random) {
  const reference<T> r(e, e.in_blocks * lanes<T>, random);
  const auto x = r.blocks(r.x, r.in, e.in_plane()), dy = r.blocks(r.dy, r.out, e.out_plane());
  aligned<T> filters(cpu::winograd::filter_size(e.in_blocks, e.out_blocks, lanes<T>));
  aligned<T> y(r.dy.size), dx(r.x.size), dw(r.w.size);
  const auto forward = cpu::winograd::forward_tiles(e), backward = cpu::winograd::backward_tiles(e);
  aligned<T> scratch(std::max(cpu::winograd::scratch<T>(forward, e.in_blocks, e.out_blocks),
                              cpu::winograd::scratch<T>(backward, e.out_blocks, e.in_blocks)) /
                     std::int64_t{sizeof(T)});
  auto* const bytes = reinterpret_cast<std::byte*>(scratch.data());
  in_parts(e.out_blocks, [&](work_range u) {
    cpu::winograd::transform_filters<T, false>(u, e.in_blocks, e.out_blocks, r.w.data(),
                                               filters.data());
  });
  in_parts(cpu::winograd::units<T>(forward, e.in_blocks, e.out_blocks), [&](work_range u) {
    winograd_convolution<T>(u, e, x.data(), filters.data(), store_blocks<T>{y.data()}, bytes);
  });
  CHECK(r.error_in_blocks(r.y, y, r.out, e.out_plane()) < tolerance<T>);
  in_parts(e.in_blocks, [&](work_range u) {
    cpu::winograd::transform_filters<T, true>(u, e.in_blocks, e.out_blocks, r.w.data(),
                                              filters.data());
  });
  in_parts(cpu::winograd::units<T>(backward, e.out_blocks, e.in_blocks), [&](work_range u) {
    winograd_input_gradient<T>(u, e, dy.data(), filters.data(), store_blocks<T>{dx.data()}, bytes);
  });
  CHECK(r.error_in_blocks(r.dx, dx, r.in, e.in_plane()) < tolerance<T>);
  aligned<T> tiles(cpu::winograd::gradient_tiles_size<T>(e));
  aligned<T> sums(cpu::winograd::gradient_slices<T>(e) * cpu::winograd::gradient_sums_size<T>(e));
  for (int k = 0; k < cpu::winograd::gradient_phases<T>(e); ++k) {
    in_parts(cpu::winograd::gradient_phase_units<T>(e, k), [&](work_range u) {
      cpu::winograd::sum_gradients<T>(u, e, k, x.data(), dy.data(), tiles.data(), sums.data());
    });
  }
  in_parts(e.out_blocks, [&](work_range u) {
    cpu::winograd::finish_gradient<T>(u, e, sums.data(), store_runs<T>{dw.data()});
  });
  CHECK(worst<T>(r.dw, [&](std::int64_t i) { return dw[i]; }) < tolerance<T>);
}

template <class T>
void check_stem(const blocked_convolution_extents& e, int channels, std::mt19937& random) {
  const reference<T> r(e, channels, random);
  const bool as_it_is = e.pointwise() && e.width >= cpu::detail::blocked_pixels;
  const stem_extents s{e.samples,           channels,        e.height,       e.width,
                       e.out_blocks,        e.kernel_height, e.kernel_width, e.stride_vertical,
                       e.stride_horizontal, e.padding_top,   e.padding_left, e.out_height,
                       e.out_width,         as_it_is};
  const auto dy = r.blocks(r.dy, r.out, e.out_plane());
  aligned<T> padded(stem_image_size<T>(s)), filters(stem_filter_size<T>(s)), y(r.dy.size),
      dw(r.w.size);
  std::fill_n(padded.data(), padded.size, T{0});
  in_parts(s.samples * s.channels,
           [&](work_range u) { pad_stem<T>(u, s, r.x.data(), padded.data()); });
  in_parts(s.out_blocks,
           [&](work_range u) { pack_stem_filters<T>(u, s, r.w.data(), filters.data()); });
  in_parts(stem_units<T>(s), [&](work_range u) {
    stem_convolution<T>(u, s, s.as_it_is ? r.x.data() : padded.data(), filters.data(),
                        store_blocks<T>{y.data()});
  });
  CHECK(r.error_in_blocks(r.y, y, r.out, e.out_plane()) < tolerance<T>);
  in_parts(stem_gradient_units<T>(s), [&](work_range u) {
    stem_weight_gradient<T>(u, s, padded.data(), dy.data(), filters.data());
  });
  in_parts(s.out_blocks, [&](work_range u) {
    finish_stem_filters<T>(u, s, filters.data(), store_runs<T>{dw.data()});
  });
  CHECK(worst<T>(r.dw, [&](std::int64_t i) { return dw[i]; }) < tolerance<T>);
}

/// Each channel is a convolution of one channel with one filter: the reference computes them one by
/// one.
template <class T>
void check_depthwise(const blocked_convolution_extents& e, std::mt19937& random) {
  constexpr int L = lanes<T>;
  const int channels = e.in_blocks * L, taps = e.taps();
  const auto x = random_aligned<T>(e.samples * channels * e.in_plane(), random);
  const auto dy = random_aligned<T>(e.samples * channels * e.out_plane(), random);
  const auto w = random_aligned<T>(std::int64_t{channels} * taps, random);
  aligned<T> packed(w.size), y(dy.size), dx(x.size), sums(w.size), dw(w.size);
  std::vector<double> wanted_y(std::size_t(y.size)), wanted_dx(std::size_t(x.size)),
      wanted_dw(std::size_t(w.size));
  blocked_convolution_extents one = e;
  one.samples = 1;
  for (int n = 0; n < e.samples; ++n) {
    for (int c = 0; c < channels; ++c) {
      for_each_product(one, 1, 1, [&](int, int, int p, std::int64_t f, int, int q) {
        const auto a = in_blocks<T>(channels, int(e.in_plane()), n, c, p);
        const auto b = in_blocks<T>(channels, int(e.out_plane()), n, c, q);
        const std::int64_t at = std::int64_t{c} * taps + f;
        wanted_y[std::size_t(b)] += double(x[a]) * double(w[at]);
        wanted_dx[std::size_t(a)] += double(dy[b]) * double(w[at]);
        wanted_dw[std::size_t(at)] += double(x[a]) * double(dy[b]);
      });
    }
  }
  stem_extents filters;
  filters.channels = 1;
  filters.out_blocks = e.out_blocks;
  filters.kernel_height = e.kernel_height;
  filters.kernel_width = e.kernel_width;
  in_parts(e.out_blocks,
           [&](work_range u) { pack_stem_filters<T>(u, filters, w.data(), packed.data()); });
  in_parts(depthwise_units(e), [&](work_range u) {
    depthwise_convolution<T>(u, e, x.data(), packed.data(), store_blocks<T>{y.data()});
  });
  CHECK(worst<T>(wanted_y, [&](std::int64_t i) { return y[i]; }) < tolerance<T>);
  in_parts(depthwise_units(e), [&](work_range u) {
    depthwise_input_gradient<T>(u, e, dy.data(), packed.data(), store_blocks<T>{dx.data()});
  });
  CHECK(worst<T>(wanted_dx, [&](std::int64_t i) { return dx[i]; }) < tolerance<T>);
  in_parts(depthwise_weight_gradient_units(e), [&](work_range u) {
    depthwise_weight_gradient<T>(u, e, x.data(), dy.data(), sums.data());
  });
  in_parts(e.out_blocks, [&](work_range u) {
    finish_stem_filters<T>(u, filters, sums.data(), store_runs<T>{dw.data()});
  });
  CHECK(worst<T>(wanted_dw, [&](std::int64_t i) { return dw[i]; }) < tolerance<T>);
}

}  // namespace

TEST_CASE_TEMPLATE("direct kernels in blocks follow double precision, all three passes", T, float,
                   double) {
  std::mt19937 random(1);
  // samples, blocks of input channels, size, blocks of output channels, kernel, stride, padding
  for (const auto& e :
       {square(1, 1, 1, 1, 1, 1, 0), square(2, 1, 7, 2, 3, 1, 1), square(3, 2, 5, 1, 1, 1, 0),
        square(1, 1, 15, 3, 3, 2, 1), square(2, 3, 13, 1, 1, 2, 0), square(1, 2, 8, 4, 2, 2, 0),
        square(1, 1, 11, 1, 5, 3, 2), square(2, 1, 9, 5, 3, 1, 0), square(1, 2, 17, 2, 3, 2, 0),
        square(1, 1, 6, 1, 3, 1, 2),
        // One block of filters alone, whose gradient takes three taps at a time; in the second
        // image no pixel has all three inside.
        square(2, 2, 9, 1, 3, 1, 1), square(2, 1, 2, 1, 7, 1, 3), square(1, 2, 9, 1, 4, 1, 1),
        square(1, 1, 8, 1, 2, 1, 0), square(1, 1, 9, 4, 3, 1, 1), square(1, 1, 10, 1, 5, 2, 2),
        // Of one tap: tiles of half the pixels and three blocks, the last of which overlaps
        // another.
        square(2, 5, 7, 6, 1, 1, 0), square(1, 1, 15, 4, 1, 1, 0), square(3, 2, 14, 2, 1, 1, 0),
        // Gradients of images that have no pixel in some of the phases.
        square(1, 1, 1, 1, 1, 2, 0),
        // The gradient of small filters is summed in slices of the samples, this one's at once.
        square(7, 1, 5, 1, 3, 1, 1), square(3, 7, 6, 7, 3, 1, 1),
        // In chunks of some samples, and groups of output channels of which some are near; in
        // chunks of some rows.
        square(5, 6, 15, 8, 3, 1, 1), square(2, 1, 41, 2, 3, 1, 1), square(1, 2, 41, 4, 3, 2, 1)}) {
    CAPTURE(e.height);
    CAPTURE(e.kernel_height);
    CAPTURE(e.stride_vertical);
    check_direct<T>(e, random);
  }
  blocked_convolution_extents column = square(2, 1, 23, 1, 3, 1, 1);
  column.width = column.out_width = 1;
  check_direct<T>(column, random);
}

TEST_CASE_TEMPLATE("kernels of pairs in blocks follow double precision, all three passes", S, float,
                   bfloat16) {
  std::mt19937 random(5);
  for (const auto& e :
       {square(1, 1, 1, 1, 1, 1, 0), square(2, 1, 7, 2, 3, 1, 1), square(3, 2, 5, 1, 1, 1, 0),
        square(1, 1, 15, 3, 3, 2, 1), square(2, 3, 13, 1, 1, 2, 0), square(1, 1, 11, 1, 5, 3, 2),
        square(2, 5, 7, 6, 1, 1, 0), square(1, 1, 15, 4, 1, 1, 0), square(1, 1, 1, 1, 1, 2, 0),
        // Gradients of filters in slices, in several chunks of pixels, and of groups of blocks.
        square(7, 1, 5, 1, 3, 1, 1), square(3, 1, 41, 2, 1, 1, 0), square(1, 1, 9, 35, 1, 1, 0)}) {
    CAPTURE(e.height);
    CAPTURE(e.kernel_height);
    CAPTURE(e.stride_vertical);
    check_pairs<S>(e, random);
  }
}

TEST_CASE("a matrix unit's kernels in blocks follow double precision, all three passes") {
  if constexpr (lanes<float> == unit_words) {
    std::mt19937 random(6);
    for (const auto& e :
         {square(1, 2, 1, 2, 1, 1, 0), square(2, 2, 7, 4, 3, 1, 1), square(3, 2, 5, 1, 1, 1, 0),
          square(1, 4, 15, 3, 3, 2, 1), square(2, 4, 13, 2, 1, 2, 0), square(1, 2, 19, 2, 7, 2, 3),
          square(2, 5, 7, 4, 1, 1, 0), square(1, 3, 9, 2, 5, 3, 2), square(1, 2, 1, 2, 1, 2, 0),
          // Gradients of filters in slices, in several chunks of pixels, and of groups of blocks.
          square(7, 1, 5, 2, 3, 1, 1), square(3, 2, 27, 2, 1, 1, 0), square(1, 2, 9, 35, 1, 1, 0),
          // Filters that are not near, whose tiles are gathered several at once.
          square(1, 18, 8, 16, 3, 1, 1)}) {
      CAPTURE(e.height);
      CAPTURE(e.kernel_height);
      CAPTURE(e.stride_vertical);
      check_unit(e, random);
    }
  } else {
    MESSAGE("vectors of this build are no rows of a matrix unit's tiles");
  }
}

TEST_CASE("filters of pairs are rounded to nearest, ties to even") {
  constexpr int L = lanes<float>;
  aligned<float> w(L * L), packed(L * L / 2);
  std::fill_n(w.data(), w.size, 0.f);
  w[0] = 1 + 0x1p-8f;     // output channel 0, input channel 0: a tie
  w[1] = 1 + 0x3p-8f;     // input channel 1: another
  w[L] = -1 - 0x1.8p-8f;  // output channel 1
  pack_filter_pairs<float>({0, 1}, 1, 1, w.data(), packed.data());
  const auto* const numbers = reinterpret_cast<const bfloat16*>(packed.bytes.data());
  CHECK(float(numbers[0]) == 1);
  CHECK(float(numbers[1]) == 1 + 0x1p-6f);
  CHECK(float(numbers[2]) == -1 - 0x1p-7f);
}

TEST_CASE_TEMPLATE("Winograd's kernels follow double precision, all three passes", T, float,
                   double) {
  std::mt19937 random(2);
  for (const auto& e :
       {square(1, 1, 16, 1, 3, 1, 1), square(2, 2, 13, 3, 3, 1, 1), square(3, 1, 11, 4, 3, 1, 0),
        square(1, 3, 14, 1, 3, 1, 2), square(17, 1, 3, 2, 3, 1, 1),
        // Gradients of filters in several chunks of tiles, in slices and in one.
        square(5, 2, 29, 1, 3, 1, 1), square(9, 4, 21, 4, 3, 1, 1), square(2, 9, 13, 8, 3, 1, 1)}) {
    CAPTURE(e.height);
    CAPTURE(e.padding_top);
    check_winograd<T>(e, random);
  }
}

TEST_CASE("Winograd's kernels have work for several threads where one image is small") {
  using T = float;
  std::mt19937 random(6);
  // ResNet-20's layers with vectors of 16: many tiles of few channels, and few of many.
  for (const auto& e : {square(1, 1, 32, 1, 3, 1, 1), square(1, 2, 16, 2, 3, 1, 1),
                        square(1, 4, 8, 4, 3, 1, 1), square(1, 9, 14, 7, 3, 1, 1)}) {
    CAPTURE(e.height);
    const auto tiles = cpu::winograd::forward_tiles(e);
    const int units = cpu::winograd::units<T>(tiles, e.in_blocks, e.out_blocks);
    CHECK(units >= 2);
    const reference<T> r(e, e.in_blocks * lanes<T>, random);
    const auto x = r.blocks(r.x, r.in, e.in_plane());
    aligned<T> filters(cpu::winograd::filter_size(e.in_blocks, e.out_blocks, lanes<T>));
    aligned<T> scratch(cpu::winograd::scratch<T>(tiles, e.in_blocks, e.out_blocks) / 4);
    cpu::winograd::transform_filters<T, false>({0, e.out_blocks}, e.in_blocks, e.out_blocks,
                                               r.w.data(), filters.data());
    const auto result = [&](int parts) {
      aligned<T> y(r.dy.size);
      for (int k = 0; k < parts; ++k)
        winograd_convolution<T>(part_of(units, parts, k), e, x.data(), filters.data(),
                                store_blocks<T>{y.data()},
                                reinterpret_cast<std::byte*>(scratch.data()));
      return y;
    };
    const auto y = result(1);
    for (int parts = 2; parts <= units; ++parts) CHECK(same_bits(y, result(parts)));
  }
}

TEST_CASE_TEMPLATE("convolutions of images of few channels follow double precision", T, float,
                   double) {
  std::mt19937 random(3);
  check_stem<T>(square(2, 0, 16, 1, 3, 1, 1), 3, random);
  check_stem<T>(square(1, 0, 23, 4, 7, 2, 3), 3, random);
  check_stem<T>(square(2, 0, 9, 5, 2, 2, 0), 1, random);
  check_stem<T>(square(1, 0, 31, 2, 5, 1, 2), 2, random);
  // Of one tap, where the image needs no border.
  check_stem<T>(square(2, 0, 17, 3, 1, 1, 0), 9, random);
  check_stem<T>(square(1, 0, 5, 1, 1, 1, 0), 3, random);
}

TEST_CASE_TEMPLATE("depthwise kernels follow double precision, all three passes", T, float,
                   double) {
  std::mt19937 random(4);
  // The last two are what a test of one row and one column of results leaves out.
  for (const auto& e :
       {square(1, 1, 1, 1, 1, 1, 0), square(2, 3, 7, 3, 3, 1, 1), square(1, 2, 14, 2, 3, 2, 1),
        square(3, 1, 17, 1, 3, 1, 1), square(1, 1, 5, 1, 3, 2, 0), square(1, 1, 12, 1, 5, 1, 2),
        square(1, 2, 67, 2, 3, 2, 1), square(1, 1, 11, 1, 7, 3, 3), square(1, 1, 2, 1, 5, 1, 2),
        square(2, 1, 6, 1, 2, 3, 1), square(1, 1, 9, 1, 1, 2, 0), square(1, 1, 130, 1, 3, 1, 2),
        square(1, 1, 4, 1, 3, 1, 1), square(1, 1, 13, 1, 3, 1, 1), square(2, 1, 11, 1, 3, 2, 1),
        square(1, 1, 12, 1, 3, 2, 1)}) {
    CAPTURE(e.height);
    CAPTURE(e.kernel_height);
    CAPTURE(e.stride_vertical);
    check_depthwise<T>(e, random);
  }
  blocked_convolution_extents flat = square(2, 2, 23, 2, 3, 1, 1);
  flat.height = flat.out_height = 1;
  check_depthwise<T>(flat, random);
  blocked_convolution_extents narrow = square(2, 2, 23, 2, 3, 1, 1);
  narrow.width = narrow.out_width = 1;
  check_depthwise<T>(narrow, random);
}
