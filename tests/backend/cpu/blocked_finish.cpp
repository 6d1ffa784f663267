// What kernels in blocks finish in registers, beside the same that a sink gets from memory.
#include <cella/backend/cpu/blocked/convolution.hpp>
#include <cella/backend/cpu/blocked/depthwise.hpp>
#include <cella/backend/cpu/blocked/finish.hpp>
#include <cella/backend/cpu/blocked/stem.hpp>
#include <cella/backend/cpu/blocked/winograd.hpp>
#include <cella/backend/cpu/loops/addresses.hpp>
#include <cstring>

#include "blocked_reference.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// A bias, an added image and bounds, of which the first two may be null; counts its calls.
template <class T>
struct finishing_sink {
  blocked_finish<T> f;
  bool in_registers;
  int* calls;

  blocked_finish<T> finish() const { return in_registers ? f : blocked_finish<T>{}; }
  void operator()(vec<T> value, std::int64_t element, int block) const {
    constexpr int L = lanes<T>;
    ++*calls;
    for (int l = 0; l < L; ++l) {
      T y = value.get(std::size_t(l));
      if (f.bias) y += f.bias[block * L + l];
      if (f.added) y += f.added[element * L + l];
      if (y < f.low) y = f.low;
      if (y > f.high) y = f.high;
      f.target[element * L + l] = y;
    }
  }
};

template <class T>
bool same_bits(const aligned<T>& a, const aligned<T>& b) {
  return a.size == b.size && std::memcmp(a.data(), b.data(), std::size_t(a.size) * sizeof(T)) == 0;
}

/// run(sink) convolves to `size` numbers of `blocks` blocks: with all that may follow, with nothing
/// of it, and with results that replace what is added. Returns how many vectors went through calls.
template <class T, class Run>
int check_finish(std::int64_t size, int blocks, std::mt19937& random, Run run) {
  const auto bias = random_aligned<T>(blocks * lanes<T>, random);
  const auto image = random_aligned<T>(size, random);
  finish_form all;
  all.fits = true;
  all.bias = 0;
  all.added = 1;
  all.low = 0;
  all.high = 0.75;
  finish_form none;
  none.fits = true;
  int most = 0;
  for (const bool plain : {false, true}) {
    for (const bool in_place : {false, true}) {
      aligned<T> found[2] = {aligned<T>(size), aligned<T>(size)};
      int calls[2] = {};
      for (const int k : {0, 1}) {
        if (in_place) std::copy_n(image.data(), size, found[k].data());
        cpu::addresses<T, 2, 1> a;
        a.in[0] = bias.data();
        a.in[1] = in_place ? found[k].data() : image.data();
        a.out[0] = found[k].data();
        run(finishing_sink<T>{blocked_finish<T>(plain ? none : all, a), k == 1, &calls[k]});
      }
      CHECK(same_bits(found[0], found[1]));
      CHECK(calls[0] == size / lanes<T>);
      most = std::max(most, calls[1]);
    }
  }
  return most;
}

template <class T>
int check_direct(const blocked_convolution_extents& e, std::mt19937& random) {
  const std::int64_t weights =
      std::int64_t{e.in_blocks} * e.out_blocks * lanes<T> * lanes<T> * e.taps();
  const auto x = random_aligned<T>(e.samples * e.in_blocks * lanes<T> * e.in_plane(), random);
  const auto w = random_aligned<T>(weights, random);
  return check_finish<T>(e.samples * e.out_blocks * lanes<T> * e.out_plane(), e.out_blocks, random,
                         [&](const auto& sink) {
                           in_parts(blocked_convolution_units<T>(e), [&](work_range u) {
                             blocked_convolution<T>(u, e, x.data(), w.data(), sink);
                           });
                         });
}

}  // namespace

TEST_CASE_TEMPLATE("tiles of convolutions in blocks are finished as a sink finishes them", T, float,
                   double) {
  std::mt19937 random(11);
  // Of one tap, of several, with a stride, and with as many blocks as tiles of three leave.
  for (const auto& e :
       {square(1, 2, 14, 3, 1, 1, 0), square(1, 1, 7, 3, 1, 1, 0), square(1, 2, 7, 4, 1, 1, 0),
        square(1, 1, 7, 7, 1, 1, 0), square(2, 1, 9, 8, 1, 1, 0), square(1, 1, 3, 1, 1, 1, 0),
        square(1, 1, 28, 1, 1, 1, 0), square(1, 2, 14, 2, 3, 1, 1), square(2, 1, 15, 1, 3, 2, 1),
        square(3, 1, 13, 3, 1, 2, 0)}) {
    CAPTURE(e.height);
    CAPTURE(e.out_blocks);
    const int calls = check_direct<T>(e, random);
    const bool small = e.out_plane() < 14;
    CHECK((small || calls < e.samples * e.out_blocks * int(e.out_plane())));
  }
  // Tiles that fill the image: nothing is left to calls.
  CHECK(check_direct<T>(square(1, 1, 7 * 6, 4, 1, 1, 0), random) == 0);
}

TEST_CASE_TEMPLATE("Winograd's tiles, depthwise rows and stems are finished in the same way", T,
                   float, double) {
  std::mt19937 random(12);
  constexpr int L = lanes<T>;
  for (const auto& e : {square(1, 1, 16, 2, 3, 1, 1), square(2, 2, 13, 1, 3, 1, 1)}) {
    const auto tiles = cpu::winograd::forward_tiles(e);
    const auto x = random_aligned<T>(e.samples * e.in_blocks * L * e.in_plane(), random);
    const auto w = random_aligned<T>(std::int64_t{e.in_blocks} * e.out_blocks * L * L * 9, random);
    aligned<T> filters(cpu::winograd::filter_size(e.in_blocks, e.out_blocks, L));
    cpu::winograd::transform_filters<T, false>({0, e.out_blocks}, e.in_blocks, e.out_blocks,
                                               w.data(), filters.data());
    const std::int64_t bytes = cpu::winograd::scratch<T>(tiles, e.in_blocks, e.out_blocks);
    const aligned_buffer scratch{std::size_t(bytes)};
    const int units = cpu::winograd::units<T>(tiles, e.in_blocks, e.out_blocks);
    const std::int64_t size = e.samples * e.out_blocks * L * e.out_plane();
    const int calls = check_finish<T>(size, e.out_blocks, random, [&](const auto& sink) {
      in_parts(units, [&](work_range u) {
        winograd_convolution<T>(u, e, x.data(), filters.data(), sink, scratch.data());
      });
    });
    CHECK((calls == 0) == (e.out_width % 4 == 0));
  }
  for (const auto& e :
       {square(1, 3, 14, 3, 3, 1, 1), square(2, 2, 15, 2, 3, 2, 1), square(1, 1, 17, 1, 5, 1, 2)}) {
    const auto x = random_aligned<T>(e.samples * e.in_blocks * L * e.in_plane(), random);
    const auto w = random_aligned<T>(std::int64_t{e.in_blocks} * L * e.taps(), random);
    const std::int64_t size = e.samples * e.out_blocks * L * e.out_plane();
    const int calls = check_finish<T>(size, e.out_blocks, random, [&](const auto& sink) {
      in_parts(depthwise_units(e),
               [&](work_range u) { depthwise_convolution<T>(u, e, x.data(), w.data(), sink); });
    });
    CHECK((calls == 0) == (e.kernel_height == 3));
  }
  // Rows of which a tile leaves some, and of two tiles.
  for (const int size : {31, 2 * 2 * cpu::detail::blocked_pixels}) {
    const auto f = square(2, 0, size, 3, 3, 2, 1);
    const stem_extents e{2, 3, size, size, 3, 3, 3, 2, 2, 1, 1, f.out_height, f.out_width, false};
    const auto image = random_aligned<T>(stem_image_size<T>(e), random);
    const auto w = random_aligned<T>(stem_filter_size<T>(e), random);
    const int calls = check_finish<T>(
        2 * e.out_blocks * L * f.out_plane(), e.out_blocks, random, [&](const auto& sink) {
          in_parts(stem_units<T>(e),
                   [&](work_range u) { stem_convolution<T>(u, e, image.data(), w.data(), sink); });
        });
    CHECK((calls == 0) == (size != 31));
  }
}
