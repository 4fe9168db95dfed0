"use strict";
// An engine for the translator's page, with the interface of engine.js: the server that the page comes from computes.

const KEY = "mtformer key"; // in the storage of the tab

function startEngine(header) {
  return new ServerEngine(header);
}

class ServerEngine {
  /** `documents` has the ends of the names of files that the server translates as documents. */
  constructor({ needsKey, documents }) {
    Object.assign(this, { needsKey, documents, running: new Set(), ready: Promise.resolve({ loadedIn: 0 }) });
  }

  translate(text, { to, from } = {}) {
    return this.ask("page/translate", { text, source: from, target: to });
  }

  alternatives(text, prefix, { to, from } = {}) {
    return this.ask("page/alternatives", { text, prefix, source: from, target: to });
  }

  begin(text, prefix, { to, from } = {}) {
    return this.ask("page/begin", { text, prefix, source: from, target: to });
  }

  /** How likely each token of a word was, and what else was. The translation begins with `prefix` and `word`. */
  why(text, prefix, word, { to, from } = {}) {
    return this.ask("page/why", { text, prefix, word, source: from, target: to });
  }

  /** The name of a document's translation, and where it can be fetched. */
  translateDocument(file, { to, from } = {}) {
    const form = new FormData();
    for (const [name, value] of Object.entries({ file, source: from, target: to })) form.append(name, value);
    const answer = this.ask("translate_file", form);
    const named = ({ translatedFileUrl: address }) => {
      const place = address.slice(address.lastIndexOf("/") + 1);
      return { href: `download_file/${place}`, name: decodeURIComponent(place.slice(place.indexOf(".") + 1)) };
    };
    return Object.assign(answer.then(named), { cancel: answer.cancel });
  }

  /** There is nothing to test: the server computes as it does for all. */
  selftest() {
    return Promise.resolve({ passed: 0, of: 0, worst: 0 });
  }

  stop() {
    for (const { cancel } of this.running) cancel();
  }

  ask(path, body) {
    const controller = new AbortController();
    const answer = this.post(path, body, controller.signal).finally(() => this.running.delete(answer));
    answer.cancel = () => controller.abort();
    this.running.add(answer);
    return answer;
  }

  async post(path, fields, signal) {
    const key = sessionStorage.getItem(KEY);
    const isForm = fields instanceof FormData;
    const headers = { ...(isForm ? {} : { "Content-Type": "application/json" }), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    const body = isForm ? fields : JSON.stringify(fields);
    const response = await fetch(path, { method: "POST", headers, body, signal }).catch((error) => {
      throw signal.aborted ? error : new Error("the server is not reached");
    });
    const answer = await response.json().catch(() => null); // a proxy may have answered
    if (response.status === 403 && this.needsKey && this.askForKey()) return this.post(path, fields, signal);
    if (!response.ok || answer === null) throw new Error(answer?.error ?? `the server is not reached (status ${response.status})`);
    return answer;
  }

  /** Asks for a key, once for each that is wrong, and returns whether there is one. */
  askForKey() {
    const key = prompt("This server needs a key:");
    if (key) sessionStorage.setItem(KEY, key);
    return Boolean(key);
  }
}
