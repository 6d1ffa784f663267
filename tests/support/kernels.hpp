// What most tests of kernels include, precompiled for clang.
#pragma once

#include <doctest/doctest.h>

#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <random>
#include <vector>
