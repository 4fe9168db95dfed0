"use strict";
// Text files, translated line by line, which stay on the reader's device; and documents, which a server translates.

const MOST_FILE_BYTES = 50e6;
const BYTE_ORDERS = { fffe: "utf-16le", feff: "utf-16be" };

/** The text of a file in UTF-8 or UTF-16. */
async function readText(file) {
  if (file.size > MOST_FILE_BYTES) throw new Error(`larger than ${MOST_FILE_BYTES / 1e6} MB: split it`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = Array.from(bytes.slice(0, 2), (byte) => byte.toString(16)).join("");
  try {
    return new TextDecoder(BYTE_ORDERS[mark] ?? "utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("not a text file in UTF-8");
  }
}

/** The name for a file's translation: news.txt becomes news.de.txt, and test.en becomes test.de. */
function translatedName(name, { src, tgt }) {
  const [, stem, ending] = /^(.+?)(\.[^.]*)?$/s.exec(name);
  return ending === `.${src}` ? `${stem}.${tgt}` : `${stem}.${tgt}${ending ?? ""}`;
}

function minutesLeft(seconds) {
  return seconds < 60 ? "less than a minute left" : `about ${Math.ceil(seconds / 60)} min left`;
}

/** A file, its progress, and a link to its translation. `translate` takes a line and returns a promise of a text. */
class FileCard {
  constructor(file, direction, translate) {
    Object.assign(this, { file, direction, translate, isStopped: false });
    this.bar = el("progress", { "aria-label": `Progress of ${file.name}`, value: 0 });
    this.state = el("span", { class: "muted", role: "status" }, "waiting");
    this.button = el("button", { type: "button", onclick: () => this.stop() }, "Stop");
    const head = el("div", {}, el("bdi", { class: "strong" }, file.name), " ", this.state);
    this.node = el("li", { class: "file" }, head, this.bar, this.button);
  }

  stop() {
    this.isStopped = true;
    if (this.running) this.running.cancel?.();
    else this.end("stopped"); // while it waits
  }

  async run() {
    const translated = [];
    try {
      const parts = (await readText(this.file)).split(/(\r?\n)/); // each second one is the end of a line
      const nLines = (parts.length + (parts.at(-1) ? 1 : -1)) / 2;
      await this.translateAll(parts, nLines, translated);
      this.finish(translated, nLines);
    } catch (error) {
      this.end(error.message);
    }
  }

  async translateAll(parts, nLines, translated) {
    const [started, nCharacters] = [performance.now(), parts.join("").length];
    let nDone = 0;
    for (let i = 0; i / 2 < nLines && !this.isStopped; i += 2) {
      this.running = this.translate(parts[i]);
      const text = await this.running.catch((error) => {
        if (!this.isStopped) throw error;
      });
      if (this.isStopped) return;
      translated.push(text, parts[i + 1] ?? "");
      nDone += parts[i].length + (parts[i + 1] ?? "").length;
      this.bar.value = nDone / nCharacters;
      const seconds = ((performance.now() - started) / 1000) * (nCharacters / nDone - 1);
      this.tell(`${(i / 2 + 1).toLocaleString("en")} of ${nLines.toLocaleString("en")} lines, ${minutesLeft(seconds)}`);
    }
  }

  /** Tells how far it is, once a second at most: screen readers read it out. */
  tell(text) {
    if (performance.now() - (this.told ?? -Infinity) < 1000) return;
    this.told = performance.now();
    this.state.textContent = text;
  }

  finish(translated, nLines) {
    const nDone = translated.length / 2;
    const name = translatedName(this.file.name, this.direction);
    const href = URL.createObjectURL(new Blob(translated, { type: "text/plain;charset=utf-8" }));
    const link = el("a", { href, download: name }, `Save ${name}`);
    const lines = nLines === 1 ? "1 line" : `${nLines.toLocaleString("en")} lines`;
    this.end(nDone < nLines ? `stopped after ${nDone.toLocaleString("en")} of ${lines}` : lines, nDone ? link : null);
  }

  end(state, link) {
    this.state.textContent = state;
    this.bar.remove();
    this.button.replaceWith(link ?? "");
  }
}

/** A document. `translate` takes its file and returns a promise of the name and the address of its translation. */
class DocumentCard extends FileCard {
  async run() {
    this.state.textContent = "being translated";
    this.bar.removeAttribute("value");
    try {
      this.running = this.translate(this.file);
      const { name, href } = await this.running;
      this.end("translated", el("a", { href, download: name }, `Save ${name}`));
    } catch (error) {
      this.end(this.isStopped ? "stopped" : error.message);
    }
  }
}

/** The files of the page, which are translated one after the other; `documents` are the ends of names of documents. */
class FileList {
  constructor({ list, input, button, translate, translateDocument, documents, direction }) {
    Object.assign(this, { list, translate, translateDocument, documents, direction, nRunning: 0, last: Promise.resolve() });
    input.accept = ["text/*", ...documents].join();
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = ""; // so that the same file can be chosen again
    });
    addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
    addEventListener("beforeunload", (event) => this.nRunning && event.preventDefault());
  }

  add(files) {
    for (const file of files) {
      const direction = this.direction();
      const isDocument = this.documents.some((end) => file.name.toLowerCase().endsWith(end));
      const card = isDocument
        ? new DocumentCard(file, direction, (whole) => this.translateDocument(whole, direction))
        : new FileCard(file, direction, (line) => this.translate(line, direction));
      this.list.append(card.node);
      this.nRunning++;
      this.last = this.last.then(() => card.isStopped || card.run()).finally(() => this.nRunning--);
    }
    this.list.hidden = !this.list.children.length;
  }
}
