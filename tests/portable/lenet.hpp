// What the rest of the program knows of the network: no header of Cella.
#pragma once

#include <cstdint>

/// LeNet-5 in one variant of the program.
class Lenet {
 public:
  static constexpr int pixels = 28 * 28, classes = 10, batch = 32;

  virtual ~Lenet() = default;
  /// The instruction set that the variant is compiled for.
  virtual const char* instructions() const = 0;
  /// Scores of one image.
  virtual void scores(const float* image, float* y) = 0;
  /// One step of training on `batch` images; the mean loss before it.
  virtual float train(const float* images, const std::int32_t* labels) = 0;
};

extern "C" Lenet* make_lenet(std::uint64_t seed);
/// What an inline function says whose name all variants and the rest of the program share.
extern "C" int lenet_vector_bytes();

/// Bytes of a vector register in the code that asks: not inlined, so that every object has a copy.
[[gnu::noinline]] inline int vector_bytes() {
#if defined(__AVX512F__)
  return 64;
#elif defined(__AVX2__)
  return 32;
#else
  return 16;
#endif
}
