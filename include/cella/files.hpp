// Readers and writers of tensor files: NumPy's .npy, and safetensors, which need nlohmann/json, as do
// the options of operations as JSON.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/interop/npy.hpp>
#include <cella/interop/onnx.hpp>
#if __has_include(<nlohmann/json.hpp>)
#include <cella/interop/option_json.hpp>
#include <cella/interop/safetensors.hpp>
#endif
