// What most tests include, precompiled for those that compile without optimization.
#pragma once

#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/train/step.hpp>
#include <cella/transform/jacobian.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <vector>
