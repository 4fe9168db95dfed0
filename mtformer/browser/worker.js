"use strict";
// The worker's side: takes tasks from the page, and computes them a little at a time, so that it hears of new ones.

const SLICE = 10; // milliseconds between looks at the messages

// What a translator can be asked for: generators by the name of the task. Scripts of a page may add their own.
const TASKS = {
  translate: (translator, { text, options }) => translator.translate(text, options),
  alternatives: (translator, { text, prefix, options }) => translator.alternatives(text, prefix, options),
  begin: (translator, { text, prefix, options }) => translator.begin(text, prefix, options),
  selftest: (translator) => selfTest(translator),
};

/** Answers messages { id, task, … } by { id, result } or { id, error }, and meanwhile { id, progress }. */
class TaskWorker {
  constructor(post) {
    Object.assign(this, { post, tasks: new Map(), isRunning: false });
    this.channel = new MessageChannel(); // a turn of the event loop, without the delay of a timer
    this.channel.port1.onmessage = () => this.run();
  }

  receive({ id, task, ...given }) {
    if (task === "cancel") return this.tasks.delete(id);
    if (task === "load") return this.load(id, given);
    try {
      this.tasks.set(id, TASKS[task](this.translator, given));
    } catch (error) {
      this.fail(id, error);
    }
    this.awake();
  }

  async load(id, { header, weights }) {
    try {
      if (weights.byteLength !== header.n_bytes) throw new Error("the page's weights are damaged");
      const kernels = await makeKernels(header.tensors, weights);
      this.translator = new TextTranslator(header, kernels);
      this.post({ id, result: { kernel: kernels.name } });
    } catch (error) {
      this.fail(id, error);
    }
  }

  awake() {
    if (this.isRunning || !this.tasks.size) return;
    this.isRunning = true;
    this.channel.port2.postMessage(null);
  }

  /** Computes the newest task for a while: what somebody has just typed goes before a long file. */
  run() {
    this.isRunning = false;
    const [id, task] = [...this.tasks].at(-1) ?? [];
    if (!task) return;
    try {
      const end = performance.now() + SLICE;
      let step;
      do step = task.next();
      while (!step.done && performance.now() < end);
      if (step.done) this.tasks.delete(id);
      this.post(step.done ? { id, result: step.value } : { id, progress: step.value });
    } catch (error) {
      this.fail(id, error);
    }
    this.awake();
  }

  fail(id, error) {
    this.tasks.delete(id);
    this.post({ id, error: error.message });
  }
}

function* selfTest({ model, header }) {
  return testModel(model, header.golden);
}

/** Makes this worker serve the page that has started it. */
function serve(scope) {
  const worker = new TaskWorker((message) => scope.postMessage(message));
  scope.onmessage = ({ data }) => worker.receive(data);
}
