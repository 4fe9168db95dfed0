"use strict";
// What the reader looks at: it stays when another sentence comes, and the link of a lesson restores it.

// The lesson of a page with the model inside (lesson.js); null on a page about one sentence.
let lesson = null;

const view = {
  kind: pageData.first.kind, // of attention
  heads: [], // those shown, as [layer, head] with a layer from 1 and a head from 0 or "mean"; empty: the first to show
  overlay: false, // whether several heads are shown at once
  pinned: null, // the token whose lines stay, as { query } or { key }
  step: 0, // of decoding, from 0
  frame: 0, // of the flow
  token: null, // whose vector is followed: its place in the sentence
  section: null, // being read
  open: new Set(), // the parts of the model whose matrices are shown, by title
};
const lookers = new Set(); // functions that hear of changes

/** Changes what the reader looks at. */
function look(changes) {
  Object.assign(view, changes);
  lookers.forEach((hear) => hear());
}

/** Whether the reader of a lesson has switched off a part of the model, such as "causal". */
function isSwitchedOff(name) {
  return lesson ? !lesson.state.switches[name] : false;
}

/** How the translation that is shown was searched for. */
function searchOf() {
  return lesson ? lesson.state.search : pageData.search;
}
