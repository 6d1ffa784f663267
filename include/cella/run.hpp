// What runs nets and functions: compiled programs, eager mode, threads, and what looks into them.
#pragma once

#include <cella/backend/default_kernels.hpp>
#include <cella/backend/host/threads.hpp>
#include <cella/ops/bounds.hpp>
#include <cella/ops/list.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/runtime/summary.hpp>
