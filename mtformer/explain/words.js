"use strict";
// The words of the page, in its language.

/**
 * Returns a text of the page in the reader's language. `{name}` stands for a value, which is text or a node: where
 * there are nodes, the result is an array of texts and nodes.
 */
function say(english, values = {}) {
  const parts = (pageData.words[english] ?? english).split(/\{(\w+)\}/);
  const filled = parts.map((part, index) => (index % 2 ? values[part] : part));
  return filled.some((part) => typeof part === "object") ? filled : filled.join("");
}
