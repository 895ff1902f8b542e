// SPDX-License-Identifier: Apache-2.0
// This replacement for cuda.h is empty, because the run-time compiler cannot parse the driver's
// header, and device code does not need it.
#pragma once
