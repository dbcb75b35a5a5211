// Matrices of bytes on canvases that zoom and move together, by wheel, fingers, buttons and keys.
"use strict";
const pictures = (() => {
  const { made } = shared;
  const NEAREST = 8;

  const palette = (colours) => {
    const bytes = new Uint32Array(256);
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < 256; at += 1) {
      view.setUint32(4 * at, Number.parseInt(colours.slice(6 * at, 6 * at + 6), 16) * 256 + 255);
    }
    return bytes;
  };

  // One pixel per entry; masked columns are white.
  const image = ({ side, causal }, bytes, colours) => {
    const shades = palette(colours);
    const canvas = made("canvas", { width: side, height: side });
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(side, side);
    const view = new Uint32Array(pixels.data.buffer).fill(0xffffffff);
    for (let row = 0, at = 0; row < side; row += 1) {
      for (let column = 0; column < (causal ? row + 1 : side); column += 1, at += 1) {
        view[row * side + column] = shades[bytes[at]];
      }
    }
    context.putImageData(pixels, 0, 0);
    return canvas;
  };

  /**
   * Canvases over `panels`, each { name, bytes, colours }, of one look. `picked` is told the row and column under the
   * pointer, and `pointAt(row, column)` moves there.
   */
  const beside = (look, panels, picked) => {
    const { side } = look;
    const least = Math.min(side, NEAREST);
    const part = { x: 0, y: 0, size: side };
    const at = { row: side - 1, column: 0 };
    const within = (value, most) => Math.min(most, Math.max(0, value));
    const frames = panels.map(({ name, bytes, colours }) => {
      const canvas = made("canvas", { className: "matrix", tabIndex: 0 });
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label",
        `${name}: queries down, keys across. Arrow keys read it, plus and minus zoom, 0 shows all`);
      return { canvas, drawn: image(look, bytes, colours), element: made("figure", { className: "panel" },
        made("figcaption", { textContent: name }), canvas) };
    });

    const draw = () => frames.forEach(({ canvas, drawn }) => {
      const width = Math.round(canvas.clientWidth * devicePixelRatio);
      if (width === 0) return;
      if (canvas.width !== width) canvas.width = canvas.height = width;
      const context = canvas.getContext("2d");
      context.imageSmoothingEnabled = false;
      context.fillStyle = "#fff";
      context.fillRect(0, 0, width, width);
      context.drawImage(drawn, part.x, part.y, part.size, part.size, 0, 0, width, width);
      const scale = width / part.size;
      context.strokeStyle = "#0057a8";
      context.lineWidth = Math.max(1, devicePixelRatio);
      context.strokeRect((at.column - part.x) * scale, (at.row - part.y) * scale, scale, scale);
      context.globalAlpha = 0.25;
      context.strokeRect(0, (at.row - part.y) * scale, width, scale);
      context.globalAlpha = 1;
    });

    const show = () => {
      part.size = Math.min(side, Math.max(least, part.size));
      part.x = within(part.x, side - part.size);
      part.y = within(part.y, side - part.size);
      // Fingers move what is enlarged, and else the page.
      frames.forEach(({ canvas }) => { canvas.style.touchAction = part.size < side ? "none" : "pan-y"; });
      draw();
    };
    // Around a point of the canvas, from 0 to 1 both ways.
    const zoom = (times, x = 0.5, y = 0.5) => {
      const before = part.size;
      part.size = Math.min(side, Math.max(least, part.size / times));
      part.x += x * (before - part.size);
      part.y += y * (before - part.size);
      show();
    };
    const pointAt = (row, column) => {
      at.row = within(row, side - 1);
      at.column = within(column, look.causal ? at.row : side - 1);
      if (at.row < part.y || at.row >= part.y + part.size) part.y = at.row - part.size / 2;
      if (at.column < part.x || at.column >= part.x + part.size) part.x = at.column - part.size / 2;
      show();
    };
    const pick = (row, column) => {
      pointAt(row, column);
      picked(at.row, at.column);
    };

    frames.forEach(({ canvas }) => {
      const fingers = new Map();
      const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
      };
      const under = ([x, y]) => pick(Math.floor(part.y + y * part.size), Math.floor(part.x + x * part.size));
      canvas.addEventListener("wheel", (event) => {
        const times = Math.exp(-0.002 * event.deltaY);
        if (times < 1 && part.size >= side) return;
        event.preventDefault();
        zoom(times, ...place(event));
      }, { passive: false });
      canvas.addEventListener("pointerdown", (event) => {
        fingers.set(event.pointerId, place(event));
        if (event.pointerType !== "mouse" && fingers.size === 1) under(place(event));
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", (event) => {
        const now = place(event);
        const before = fingers.get(event.pointerId);
        if (!before) return under(now);
        const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, other]) => other);
        fingers.set(event.pointerId, now);
        if (others.length === 0) {
          part.x -= (now[0] - before[0]) * part.size;
          part.y -= (now[1] - before[1]) * part.size;
          return show();
        }
        const apart = (one) => Math.hypot(one[0] - others[0][0], one[1] - others[0][1]);
        zoom(apart(now) / Math.max(0.01, apart(before)), (now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2);
      });
      for (const end of ["pointerup", "pointercancel"]) {
        canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
      }
      canvas.addEventListener("keydown", (event) => {
        const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        const times = { "+": 2, "=": 2, "-": 0.5 }[event.key];
        if (event.key === "0") part.size = side;
        if (move) pick(at.row + move[0], at.column + move[1]);
        else if (times) zoom(times, (at.column + 0.5 - part.x) / part.size, (at.row + 0.5 - part.y) / part.size);
        else if (event.key === "0") show();
        else return;
        event.preventDefault();
      });
      new ResizeObserver(show).observe(canvas);
    });

    const button = (text, label, press) => {
      const element = made("button", { type: "button", textContent: text });
      element.setAttribute("aria-label", label);
      element.addEventListener("click", press);
      return element;
    };
    const buttons = made("p", { className: "zoom" },
      button("+", "Enlarge", () => zoom(2)),
      button("−", "Make smaller", () => zoom(0.5)),
      button("All", "Show all", () => zoom(0)));
    return { elements: frames.map(({ element }) => element), buttons, pointAt };
  };

  return { beside };
})();
