// The MNIST database of handwritten digits, and the data sets that come in its format (Fashion-
// MNIST, KMNIST). Source: LeCun, Cortes, Burges, http://yann.lecun.com/exdb/mnist/. Needs zlib.
#pragma once

#include <cella/data/augment.hpp>
#include <cella/data/dataset.hpp>
#include <cella/data/idx.hpp>
#include <cella/interop/file.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace cella::data {

/// Which files of the MNIST family: 60,000 samples to train on, or 10,000 to test with.
enum class part { train, test };

/// How `read_mnist` reads.
struct mnist_options {
  /// Applied to pixels in [0, 1].
  normalise scaling = mnist_scaling;
  /// Labels are 0 to classes - 1.
  int classes = 10;
  /// See `idx_options`.
  std::uint64_t max_unpacked_bytes = idx_options{}.max_unpacked_bytes;
};

/// Images f32 [N,1,H,W] and labels i32 [N] from `train-images-idx3-ubyte`,
/// `train-labels-idx1-ubyte` or `t10k-...` in `directory`, with or without `.gz`.
/// Throws `file_error` when a file is missing or bad or when the two do not belong together, and
/// `error` for a scaling that is none.
inline tensor_dataset<float, std::int32_t> read_mnist(const std::filesystem::path& directory,
                                                      part which,
                                                      const mnist_options& options = {}) {
  options.scaling.check();
  const auto find = [&](const std::string& rest) {
    std::error_code no_file;
    const auto path = directory / ((which == part::train ? "train-" : "t10k-") + rest);
    const std::filesystem::path packed = path.string() + ".gz";
    for (const auto& file : {path, packed}) {
      if (std::filesystem::is_regular_file(file, no_file)) return file;
    }
    // What is there, but is no file, is refused by its reader, which says what it is.
    for (const auto& other : {path, packed}) {
      if (std::filesystem::exists(other, no_file)) return other;
    }
    throw file_error("read_mnist: neither " + path.string() + " nor " + path.filename().string() +
                     ".gz is there; download the database, or give the directory that has it.");
  };
  const auto image_file = find("images-idx3-ubyte");
  const auto label_file = find("labels-idx1-ubyte");
  const idx_options limits{.max_unpacked_bytes = options.max_unpacked_bytes};
  const auto images = read_idx(image_file, limits);
  const auto labels = read_idx(label_file, limits);

  const auto* pixels = std::get_if<std::vector<std::uint8_t>>(&images.values);
  if (!pixels || images.extents.rank != 3) {
    throw file_error(image_file.string() + ": the array is " +
                     std::string((text() << images.extents).view()) +
                     ", but images are u8 [N,H,W]; give the file of the images.");
  }
  const auto* numbers = std::get_if<std::vector<std::uint8_t>>(&labels.values);
  if (!numbers || labels.extents != shape{images.extents[0]}) {
    throw file_error(label_file.string() + ": the array is " +
                     std::string((text() << labels.extents).view()) + ", but " +
                     std::to_string(images.extents[0]) +
                     " images need as many labels u8 [N]; give the two files of one part.");
  }
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    if ((*numbers)[i] >= options.classes) {
      throw file_error(label_file.string() + ": label " + std::to_string(i) + " is " +
                       std::to_string((*numbers)[i]) + ", but there are " +
                       std::to_string(options.classes) +
                       " classes; fetch the file again, or set the number of classes.");
    }
  }

  const auto label = interop::in_quotes(image_file.native(), 4096);
  return interop::with_memory(label, pixels->size() * sizeof(float), [&] {
    std::vector<float> scaled(pixels->size());
    for (std::size_t i = 0; i < scaled.size(); ++i) {
      scaled[i] = options.scaling.of(static_cast<float>((*pixels)[i]) / 255);
    }
    shape extents = images.extents;
    extents.insert(1, 1);
    return tensor_dataset(column<float>(extents, std::move(scaled)),
                          column<std::int32_t>(labels.as<std::int32_t>()));
  });
}

}  // namespace cella::data
