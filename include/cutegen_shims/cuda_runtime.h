// SPDX-License-Identifier: Apache-2.0
// The device part of the CUDA runtime's header is built into the run-time compiler.
#pragma once
