// Small charts of recent values.

import { html } from "./vendor/preact-htm.js";

const [WIDTH, HEIGHT] = [240, 56];

/**
 * Lines over time. `series` are `{ name, values }`, the newest value last; `most` is the number of values that fit,
 * and `least` the smallest height of the chart.
 */
export function Chart({ series, most, label, format, least = 1e-9 }) {
  const highest = Math.max(...series.flatMap(({ values }) => values), 0);
  const top = Math.max(highest, least);
  const x = (index, length) => ((most - length + index) / (most - 1)) * WIDTH;
  const y = (value) => HEIGHT - 2 - (value / top) * (HEIGHT - 6);
  const line = (values) =>
    values.map((value, index) => `${x(index, values.length).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const last = series.map(({ name, values }) => `${name} ${format(values.at(-1))}`).join(", ");
  return html`
    <svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img"
      aria-label="${label}: ${last}; highest in view ${format(highest)}">
      ${series.map(({ values }, index) => {
        if (values.length < 2) return null;
        const points = line(values);
        const from = x(0, values.length).toFixed(1);
        return html`
          ${index === 0 && html`<polygon class="area" points="${from},${HEIGHT} ${points} ${WIDTH},${HEIGHT}" />`}
          <polyline class="line line-${index}" points=${points} />`;
      })}
    </svg>`;
}

/** The distribution of a total: bars of `{ name, value }`. */
export function Bars({ bars, label }) {
  const highest = Math.max(1, ...bars.map(({ value }) => value));
  const width = WIDTH / bars.length;
  const text = bars.filter(({ value }) => value > 0).map(({ name, value }) => `${name}: ${value}`);
  return html`
    <svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img"
      aria-label="${label}. ${text.join(", ") || "nothing yet"}">
      ${bars.map(({ value }, index) => {
        const height = value === 0 ? 0 : Math.max(2, (value / highest) * (HEIGHT - 4));
        return html`<rect class="bar" x=${index * width + 1} width=${width - 2} y=${HEIGHT - height} height=${height} />`;
      })}
    </svg>`;
}
