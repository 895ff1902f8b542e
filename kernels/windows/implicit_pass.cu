// SPDX-License-Identifier: Apache-2.0
// {{pass}}
{{rows}}
conv.reduce<cutegen::{{accumulator}}, {{replaces}}>(
    storage, {{index}}, left, place, {{rows_at}},
    [&](float window, {{type}} const& rows, int c, Place const& at) {
{{finish}}
    });
