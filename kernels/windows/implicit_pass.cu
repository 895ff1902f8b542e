// SPDX-License-Identifier: Apache-2.0
// {{pass}}
{{rows}}
conv.template reduce<cutegen::{{accumulator}}, {{replaces}}>(
    {{of}}, {{index}}, left, place, {{rows_at}},
    [&](float window, {{type}} const& rows, int c, Place const& at) {
{{finish}}
    });
