// SPDX-License-Identifier: Apache-2.0
// A certificate as a table of cells and as text: each baseline in each mode, its accuracy, and the
// floor.
//
// Contract: times and ratios have their 95% intervals; a ratio that is missing is "-". Rows: the
// program itself, the baselines (the fastest one, cold, first), the floor. Untrusted text is
// sanitized.
//
// Example: print_text(certificate_text(certificate));
#pragma once

#include <string>
#include <vector>

#include "core/certificate.h"

namespace cutegen::engine {

struct CertificateTable {
  std::string title;                           // "shape official", "weighted mean of 2 shapes"
  std::vector<std::string> modes;              // "cold", "warm", "graph", "call"; "accuracy"
  std::vector<std::vector<std::string>> rows;  // a name, then one cell per mode
};
CertificateTable certificate_table(const Certificate& certificate);
// One table per weighted shape; empty if the official shape is the only one.
std::vector<CertificateTable> shape_tables(const Certificate& certificate);
// "NVIDIA H200 (driver 580.159.04), torch 2.11.0, cuDNN 9.10.2, 2 fresh processes, 50.6 s; SM clock
// 1980 MHz (1905 at least), memory 3201 MHz"
std::string certificate_head(const Certificate& certificate);
// Explains what the mode `call` compares; empty if the table does not have this mode.
std::string call_note(const CertificateTable& table);
// One line for each baseline that fails the candidates' tolerance or could not be judged, with the
// reason.
std::vector<std::string> accuracy_notes(const Certificate& certificate);
// The table, the tables of the shapes, how much the processes differ, accuracy_notes(), and what is
// missing. Each line ends with a newline.
std::string certificate_text(const Certificate& certificate);
// "1.220x [1.219,1.222]"
std::string interval_text(double ratio, double low, double high);

}  // namespace cutegen::engine
