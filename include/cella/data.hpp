// Data sets, views, loaders and augmentation; xtensor arrays; images in a terminal; readers of
// MNIST's format, which need zlib, and of CSV.
#pragma once

#include <cella/data/augment.hpp>
#include <cella/data/csv.hpp>
#include <cella/data/dataset.hpp>
#include <cella/data/digits.hpp>
#include <cella/data/loader.hpp>
#include <cella/data/terminal_image.hpp>
#include <cella/data/xtensor.hpp>
#if __has_include(<zlib.h>)
#include <cella/data/mnist.hpp>
#endif
