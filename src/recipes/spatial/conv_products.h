// SPDX-License-Identifier: Apache-2.0
// Convolutions that are matrix products: every element of the input belongs to exactly one window.
//
// Contract: product_form() returns which product computes a convolution. With `pixels`, the filter
// has one element, so each image's product is filter [o, c] times image [c, pixels]. With
// `blocks`, windows lie side by side and cover the image, so the product is blocks
// [n * blocks, c * filter] times filter [c * filter, o]. An earlier kernel has to copy the blocks.
//
// `names` lists results of convolutions. products_of_convolutions() replaces these convolutions by
// bmm, mm, views and cutegen.blocks (decompose.h). The graph must come from decompose(). `tf32`
// says whether products of floats may round to tf32.
//
// Example: convolution(x, w) with w [8, 4, 1, 1] -> view(bmm(expand(w), view(x)))
#pragma once

#include <set>
#include <string>

#include "recipes/spatial/windows.h"

namespace cutegen::recipes {

enum class ProductForm { none, pixels, blocks };
// `image` is the shape of the convolution's input.
ProductForm product_form(const Window& window, const Shape& image);
int64_t pixels_of(const Shape& image);  // of one channel
// Returns whether TMA can read the pixels of a channel in place, or the kernels read them without
// TMA. Otherwise, an earlier kernel copies the pixels of all images to one matrix.
bool tma_reads_pixels(DType dtype, const Shape& image);

Result<Graph> products_of_convolutions(Graph graph, const std::set<std::string>& names, bool tf32);

}  // namespace cutegen::recipes
