// SPDX-License-Identifier: Apache-2.0
// Empty: the run-time compiler has the device part of the CUDA runtime's header built in.
#pragma once
