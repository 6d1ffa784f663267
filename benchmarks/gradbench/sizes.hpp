// The sizes that the programs are compiled for: those of the suite's inputs. Another input needs
// its sizes here.
#pragma once

#include "suite.hpp"

namespace gradbench {

using det_sizes = size_list<sizes<8>>;           // rows
using llsq_sizes = size_list<sizes<1024, 128>>;  // points, coefficients
using lse_sizes = size_list<sizes<10000>>;       // numbers
using kmeans_sizes =
    size_list<sizes<10, 1000, 8>, sizes<100, 10000, 16>>;               // centroids, points, axes
using gmm_sizes = size_list<sizes<10, 25, 1000>, sizes<32, 50, 1000>>;  // axes, components, points
using ht_sizes = size_list<sizes<100>>;                                 // points
using lstm_sizes = size_list<sizes<2, 1024, 7>, sizes<4, 4096, 7>>;     // layers, characters, bits
using ode_sizes = size_list<sizes<1000, 10>, sizes<10000, 10>>;         // equations, steps

}  // namespace gradbench
