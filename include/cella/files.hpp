// Readers and writers of tensor files: NumPy's .npy, and safetensors, which need nlohmann/json.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/interop/npy.hpp>
#if __has_include(<nlohmann/json.hpp>)
#include <cella/interop/safetensors.hpp>
#endif
