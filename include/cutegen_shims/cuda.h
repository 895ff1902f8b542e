// SPDX-License-Identifier: Apache-2.0
// Empty: the run-time compiler cannot parse the driver's header, and device code does not need it.
#pragma once
