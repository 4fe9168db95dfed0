"use strict";
// A matrix as a picture: one cell a number, labels at its rows and columns, a cursor for mouse and keyboard.

/** Fills a canvas, one pixel a cell; the style sheet scales it. Blue is positive, orange negative, grey is masked. */
function paint(canvas, { rows, columns, at }, most) {
  canvas.width = columns;
  canvas.height = rows;
  const pixels = new ImageData(columns, rows);
  const channels = (name) => cssColor(name).split(",").map(Number);
  const [positive, negative, masked] = ["--heat", "--heat-negative", "--heat-masked"].map(channels);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const value = at(row, column);
      const strength = value === -Infinity ? 0.5 : Math.min(1, Math.abs(value) / most) ** 0.5; // small weights stay visible
      const color = value === -Infinity ? masked : value < 0 ? negative : positive;
      pixels.data.set([...color, 255 * strength], 4 * (row * columns + column));
    }
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** The largest absolute number that is finite, at least `least`. */
function largest({ rows, columns, at }, least = 1e-6) {
  let most = least;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const value = Math.abs(at(row, column));
      if (value !== Infinity && value > most) most = value;
    }
  }
  return most;
}

/** A small picture without labels. */
function thumbnail(matrix, most = 1) {
  const canvas = el("canvas", { class: "thumbnail" });
  onScheme(canvas, () => paint(canvas, matrix, most));
  return canvas;
}

/** Draws now, and again whenever the colour scheme changes, as long as the canvas is on the page. */
function onScheme(canvas, draw) {
  const redraw = () => (canvas.isConnected ? draw() : redraws.delete(redraw));
  draw();
  redraws.add(redraw);
}

/**
 * A matrix with labels, whose numbers show under the mouse and at the cursor that arrow keys move.
 *
 * `rowNames` and `columnNames` are texts; without `columnNames`, columns are numbered features. `onCell(row, column)`
 * hears which cell is under the mouse or the cursor; both are null when there is none. `inWords` shows a number.
 * Returns the picture's node, and `mark`, which marks the names of a row and a column.
 */
function matrixPicture({
  matrix,
  name,
  rowNames,
  columnNames = null,
  most = largest(matrix),
  onCell = () => {},
  inWords = number,
}) {
  const { rows, columns, at } = matrix;
  const canvas = el("canvas", {});
  onScheme(canvas, () => paint(canvas, matrix, most));
  const cursor = el("div", { class: "cursor", hidden: true });
  const readout = el("output", { class: "readout" });
  const labels = { rows: rowNames.map(foreign), columns: (columnNames ?? []).map(foreign) };
  labels.columns.forEach((node) => node.classList.toggle("upright", [...node.textContent].length === 1)); // on its side, I is a dash
  let cell = null;

  const mark = (row, column) => {
    labels.rows.forEach((node, i) => node.classList.toggle("here", i === row));
    labels.columns.forEach((node, i) => node.classList.toggle("here", i === column));
  };
  const moveTo = (row, column) => {
    cell = row === null ? null : [row, column];
    cursor.hidden = cell === null;
    mark(row, column);
    if (cell) {
      cursor.style.left = `${(100 * column) / columns}%`;
      cursor.style.top = `${(100 * row) / rows}%`;
      const columnName = columnNames ? columnNames[column] : say("column {column}", { column: column + 1 });
      readout.replaceChildren(`${rowNames[row]} · ${columnName} · `, el("strong", {}, inWords(at(row, column))));
    } else readout.replaceChildren();
    onCell(row, column);
  };
  const follow = (event) => {
    const box = canvas.getBoundingClientRect();
    moveTo(
      clamp(Math.floor(((event.clientY - box.top) / box.height) * rows), 0, rows - 1),
      clamp(Math.floor(((event.clientX - box.left) / box.width) * columns), 0, columns - 1),
    );
  };
  const field = el(
    "div",
    {
      class: "field",
      tabindex: 0,
      role: "group",
      "aria-label": say("{name}: {rows} rows, {columns} columns; arrow keys move between cells", {
        name,
        rows,
        columns,
      }),
      onpointermove: follow,
      onpointerdown: follow,
      onpointerleave: () => {
        if (document.activeElement !== field) moveTo(null, null);
      },
      onfocus: () => {
        if (!cell) moveTo(0, 0);
      },
      onblur: () => moveTo(null, null),
      onkeydown: (event) => {
        const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        if (!move || !cell) return;
        event.preventDefault();
        moveTo(clamp(cell[0] + move[0], 0, rows - 1), clamp(cell[1] + move[1], 0, columns - 1));
      },
    },
    canvas,
    cursor,
  );
  const picture = el(
    "div",
    {
      class: `matrix ${columnNames ? "labelled" : "features"}`,
      "--rows": rows,
      "--columns": columns,
    },
    columnNames && el("div", { class: "column-names", "aria-hidden": "true" }, labels.columns),
    el("div", { class: "row-names", "aria-hidden": "true" }, labels.rows),
    field,
  );
  return { node: el("div", {}, el("div", { class: "scroll" }, picture), readout), mark };
}

/** Text in the language of the sentence, not of the page. */
function foreign(text) {
  return el("span", { lang: "" }, text);
}
