// Small charts that are drawn as shapes and said as text.

import { html } from "./vendor/preact-htm.js"
import { tint } from "./colours.js"
import { number } from "./sheet.js"
import { visible } from "./visible.js"

const WIDTH = 600
const HEIGHT = 90

// `items` are [label, value]; a negative one grows to the same side, in another colour.
export function Bars({ label, items }) {
  const most = Math.max(...items.map(([, value]) => Math.abs(value)), 0) || 1
  return html`<ol class="bars" aria-label=${label}>${items.map(([name, value]) => html`<li class=${value < 0 ? "below" : ""}>
    <span class="name">${visible(String(name))}</span>
    <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect width=${(Math.abs(value) / most) * 100} height="1" /></svg>
    <span class="value">${number(rounded(value))}</span>
  </li>`)}</ol>`
}

// `points` are values at even steps; the last one is now.
export function Line({ label, points, unit = "" }) {
  const most = Math.max(...points, 0) || 1
  const step = WIDTH / Math.max(1, points.length - 1)
  const path = points.map((value, n) => `${(n * step).toFixed(1)},${(HEIGHT - (value / most) * (HEIGHT - 6) - 2).toFixed(1)}`).join(" ")
  const said = `${label}: now ${number(rounded(points.at(-1) ?? 0))}${unit}, at most ${number(rounded(most))}${unit}`
  return html`<figure class="line ${tint(label)}"><figcaption>${label} <span class="quiet">at most ${number(rounded(most))}${unit}</span></figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${said}>
      ${points.length > 1 && html`<polygon points=${`0,${HEIGHT} ${path} ${WIDTH},${HEIGHT}`} /><polyline points=${path} />`}
    </svg></figure>`
}

export const rounded = value => (Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value) : Number(value.toPrecision(3)))
