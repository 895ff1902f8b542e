// SPDX-License-Identifier: Apache-2.0
// {{pass}}
{{struct}}
conv.reduce<cutegen::{{accumulator}}, {{replaces}}>(
    storage, {{index}}, left, place, [&](Place const& at) { return {{rows}}; },
    [&](float window, {{type}} const& rows, int c, Place const& at) {
{{finish}}
    });
