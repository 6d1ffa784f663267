// What tests with models and plans made at run time include, precompiled for those that compile
// without optimization.
#pragma once

#include <doctest/doctest.h>

#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/train/model.hpp>
#include <cella/transform/jacobian.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <vector>
