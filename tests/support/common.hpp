// What most tests include, precompiled for those that compile without optimization.
#pragma once

#include <doctest/doctest.h>

#include <cella/passes/pass.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/transform/jacobian.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <vector>
