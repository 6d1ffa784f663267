// All of Cella but what vocabulary.hpp adds. The headers below are its parts; docs/performance.md
// says what each costs to compile. What needs a library that is not on this machine (zlib,
// nlohmann/json) is left out.
#pragma once

#include <cella/data.hpp>
#include <cella/files.hpp>
#include <cella/nn.hpp>
#include <cella/run.hpp>
#include <cella/train.hpp>
