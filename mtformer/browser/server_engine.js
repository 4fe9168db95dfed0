"use strict";
// An engine for the translator's page, with the interface of engine.js: the server that the page comes from computes.

const KEY = "mtformer key"; // in the storage of the tab

function startEngine() {
  return new ServerEngine();
}

class ServerEngine {
  constructor() {
    Object.assign(this, { running: new Set(), ready: Promise.resolve({ loadedIn: 0 }) });
  }

  translate(text, { to, from } = {}) {
    return this.ask("translate", { text, source: from, target: to });
  }

  alternatives(text, prefix, { to, from } = {}) {
    return this.ask("alternatives", { text, prefix, source: from, target: to });
  }

  begin(text, prefix, { to, from } = {}) {
    return this.ask("begin", { text, prefix, source: from, target: to });
  }

  /** There is nothing to test: the server computes as it does for all. */
  selftest() {
    return Promise.resolve({ passed: 0, of: 0, worst: 0 });
  }

  stop() {
    for (const { cancel } of this.running) cancel();
  }

  ask(task, body) {
    const controller = new AbortController();
    const answer = this.post(task, body, controller.signal).finally(() => this.running.delete(answer));
    answer.cancel = () => controller.abort();
    this.running.add(answer);
    return answer;
  }

  async post(task, body, signal) {
    const key = sessionStorage.getItem(KEY);
    const headers = { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    const response = await fetch(`page/${task}`, { method: "POST", headers, body: JSON.stringify(body), signal });
    const answer = await response.json();
    if (response.status === 403 && this.askForKey()) return this.post(task, body, signal);
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  /** Asks for a key, once for each that is wrong, and returns whether there is one. */
  askForKey() {
    const key = prompt("This server needs a key:");
    if (key) sessionStorage.setItem(KEY, key);
    return Boolean(key);
  }
}
