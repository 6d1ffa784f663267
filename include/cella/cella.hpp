// Everything but the optional parts (files, data sets, xtensor, the terminal): include those by name.
#pragma once

#include <cella/backend/cpu/eager.hpp>
#include <cella/models/lenet.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/print.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/train/step.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
