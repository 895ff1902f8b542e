// SPDX-License-Identifier: Apache-2.0
// The run-time compiler cannot parse the driver's header, and device code needs nothing of it.
#pragma once
