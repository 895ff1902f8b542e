// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda/std/cstddef>
#include "cutegen_std.h"
