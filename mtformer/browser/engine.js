"use strict";
// The page's side: a worker made of the page's scripts up to this one, and promises of what it computes.

const PIECE = 2 ** 20; // characters of the weights that are decoded at once

/** The scripts of the page up to this one, but for its data. */
const ENGINE_SCRIPTS = Array.from(document.scripts)
  .filter(({ type, textContent }) => !type && !textContent.startsWith("const pageData"))
  .map(({ textContent }) => textContent);

/** The bytes that characters stand for. Uint8Array.from would take ten times as long. */
function bytesOf(characters) {
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** The weights, which the page holds as Base64 of gzip. They are read in pieces: the page answers meanwhile. */
function readWeights(text) {
  const inflating = new DecompressionStream("gzip");
  const write = async () => {
    const writer = inflating.writable.getWriter();
    for (let at = 0; at < text.length; at += PIECE) {
      await writer.write(bytesOf(atob(text.slice(at, at + PIECE))));
    }
    await writer.close();
  };
  const bytes = new Response(inflating.readable).arrayBuffer();
  return Promise.all([bytes, write()]).then(
    ([weights]) => weights,
    () => Promise.reject(new Error("this file is damaged or incomplete")),
  );
}

/**
 * Starts a worker that translates with the model of a header and weights, an ArrayBuffer or the promise of one, which
 * is moved to the worker. Errors of loading are those of `ready` and of each translation.
 */
function startEngine(header, weights) {
  return new Engine(header, weights);
}

class Engine {
  constructor(header, weights) {
    Object.assign(this, { nTasks: 0, waiting: new Map(), running: new Set() });
    const scripts = [...ENGINE_SCRIPTS.slice(0, -1), "\nserve(self);"];
    const url = URL.createObjectURL(new Blob(scripts, { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = ({ message }) => this.failAll(new Error(message ?? "the worker has stopped"));
    const start = performance.now();
    this.ready = Promise.resolve(weights).then(async (buffer) => {
      const loaded = await this.ask({ task: "load", header, weights: buffer }, { transfer: [buffer] });
      URL.revokeObjectURL(url);
      return { ...loaded, loadedIn: performance.now() - start };
    });
    this.ready.catch(() => {}); // tasks report it, too
  }

  /**
   * Translates a text; the promise has a method cancel(), which rejects it with an AbortError.
   *
   * `to` and `from` name languages, `beam` is the size of the beam, and `onProgress` takes { done, of, tokens }: how
   * many of the sentences are done, and how many tokens the next one has.
   */
  translate(text, { to, from, beam, onProgress } = {}) {
    return this.whenReady({ task: "translate", text, options: { to, from, beam } }, onProgress);
  }

  /** Other translations of a sentence that start with `prefix`: [{ word, probability, text, score, segment }]. */
  alternatives(text, prefix, { to, from, count } = {}) {
    return this.whenReady({ task: "alternatives", text, prefix, options: { to, from, count } });
  }

  /** The best translation of a sentence that begins with `start`, as a segment; null if there is none. */
  begin(text, start, { to, from } = {}) {
    return this.whenReady({ task: "begin", text, prefix: start, options: { to, from } });
  }

  /** Compares logits with those that torch has computed: { passed, of, worst }. */
  selftest() {
    return this.whenReady({ task: "selftest" });
  }

  /** Cancels all tasks. */
  stop() {
    for (const { cancel } of this.running) cancel();
  }

  whenReady(message, onProgress) {
    const { promise, resolve, reject } = Promise.withResolvers();
    let id = null;
    promise.cancel = () => {
      if (this.waiting.delete(id)) this.worker.postMessage({ id, task: "cancel" });
      this.running.delete(promise);
      reject(new DOMException("cancelled", "AbortError"));
    };
    this.running.add(promise);
    this.ready
      .then(() => {
        if (!this.running.has(promise)) return null;
        id = this.nTasks;
        return this.ask(message, { onProgress });
      })
      .then(resolve, reject)
      .finally(() => this.running.delete(promise));
    return promise;
  }

  /** Sends a task; returns the promise of its result. */
  ask(message, { onProgress, transfer = [] } = {}) {
    const id = this.nTasks++;
    this.worker.postMessage({ id, ...message }, transfer);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, onProgress }));
  }

  receive({ id, result, error, progress }) {
    const task = this.waiting.get(id);
    if (!task) return; // cancelled
    if (progress) return task.onProgress?.(progress);
    this.waiting.delete(id);
    if (error === undefined) task.resolve(result);
    else task.reject(new Error(error));
  }

  failAll(error) {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}
