// SPDX-License-Identifier: Apache-2.0
// This header is empty, because the run-time compiler has the device part of the CUDA runtime's
// header built in.
#pragma once
