// What the scripts of several pages share.
"use strict";
const shared = (() => {
  const shown = (value, digits = 4) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (value === 0 || (size >= 1e-3 && size < 1e6)) return String(Number(value.toPrecision(digits)));
    return value.toExponential(digits - 2);
  };
  const made = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  return { made, shown };
})();
