// SPDX-License-Identifier: Apache-2.0
// Converts a certificate to tables and to text, which show the time of each baseline in each timing
// mode, the baseline's accuracy, and the floor (the least possible time).
//
// Contract: times and ratios have 95% confidence intervals; the table shows "-" for a missing
// ratio. The rows are the program, the baselines (first the fastest with a cold L2) and the floor.
// The functions sanitize untrusted text.
//
// Example: print_text(certificate_text(certificate));
#pragma once

#include <string>
#include <vector>

#include "core/certificate.h"

namespace cutegen::engine {

struct CertificateTable {
  std::string title;               // a title such as "shape official"
  std::vector<std::string> modes;  // column names: "cold", "warm", "graph", "call" and "accuracy"
  std::vector<std::vector<std::string>> rows;  // each row: a name, then one cell for each mode
};
CertificateTable certificate_table(const Certificate& certificate);
// Returns one table for each weighted shape of the task, or nothing if the official shape is the
// only weighted shape.
std::vector<CertificateTable> shape_tables(const Certificate& certificate);
// Returns the measurement's conditions: "NVIDIA H200 (driver 580.159.04), torch 2.11.0, cuDNN
// 9.10.2, 2 fresh processes, 50.6 s; SM clock 1980 MHz (1905 at least), memory 3201 MHz".
std::string certificate_head(const Certificate& certificate);
// Returns a note that explains the timing mode `call`, or an empty text if the table does not have
// this mode.
std::string call_note(const CertificateTable& table);
// Returns a line with the reason for each baseline whose errors exceed the tolerance for candidates
// or are unknown.
std::vector<std::string> accuracy_notes(const Certificate& certificate);
// Returns the certificate as text, in lines: certificate_table(), shape_tables(), the difference
// between the processes, accuracy_notes(), and a list of missing figures.
std::string certificate_text(const Certificate& certificate);
// "1.220x [1.219,1.222]"
std::string interval_text(double ratio, double low, double high);

}  // namespace cutegen::engine
