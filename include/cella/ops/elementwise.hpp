// Elementwise operations of which all others are made: arithmetic, comparison and choice.
#pragma once

#include <cella/ops/arithmetic.hpp>
#include <cella/ops/comparison.hpp>
