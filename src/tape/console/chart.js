// Small charts in SVG, with a text for screen readers.

import { html } from "./vendor/preact-htm.js"
import { tint } from "./colours.js"
import { number } from "./sheet.js"
import { visible } from "./visible.js"

const WIDTH = 600
const HEIGHT = 90
const DAY_MS = 86_400_000
const MOST_COLUMNS = 120
const FEW = 14

// `items` are [label, value]; a negative one grows to the same side, in another colour.
export function Bars({ label, items }) {
  const most = Math.max(...items.map(([, value]) => Math.abs(value)), 0) || 1
  return html`<ol class="bars" aria-label=${label}>${items.map(([name, value]) => html`<li class=${value < 0 ? "below" : ""}>
    <span class="name" title=${visible(String(name))}>${visible(String(name))}</span>
    <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect width=${(Math.abs(value) / most) * 100} height="1" /></svg>
    <span class="value">${number(rounded(value))}</span>
  </li>`)}</ol>`
}

// `points` are values at even steps; the last one is now, and where there are fewer than `least` the past is empty.
export function Line({ label, points, unit = "", least = 2 }) {
  const top = Math.max(...points, 0)
  const most = top || 1
  const step = WIDTH / (Math.max(least, points.length) - 1)
  const begin = WIDTH - step * (points.length - 1)
  const path = points.map((value, n) => `${(begin + n * step).toFixed(1)},${(HEIGHT - (value / most) * (HEIGHT - 6) - 2).toFixed(1)}`).join(" ")
  const text = `${label}: now ${number(rounded(points.at(-1) ?? 0))}${unit}, at most ${number(rounded(top))}${unit}`
  return html`<figure class="line ${tint(label)}"><figcaption>${label} <span class="quiet">at most ${number(rounded(top))}${unit}</span></figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${text}>
      ${points.length > 1 && html`<polygon points=${`${begin.toFixed(1)},${HEIGHT} ${path} ${WIDTH},${HEIGHT}`} /><polyline points=${path} />`}
    </svg></figure>`
}

// `days` are { day_ms, matches }, those without any left out; where there are too many, a column is several.
export function Days({ label, days }) {
  const columns = counted(days)
  const most = Math.max(...columns.map(({ count }) => count), 1)
  const [first, last] = [day(days[0].day_ms), day(days.at(-1).day_ms)]
  const unit = columns.each > 1 ? `in ${number(columns.each)} days` : "a day"
  const text = `${first === last ? `on ${first}` : `${first} to ${last}`} (UTC), at most ${number(most)} ${unit}`
  return html`<figure class="line days"><figcaption>${label} <span class="quiet">${text}</span></figcaption>
    <svg viewBox="0 0 ${Math.max(columns.length, FEW)} 100" preserveAspectRatio="none" role="img" aria-label=${`${label}: ${text}`}>
      ${columns.map(({ from, count }, n) => count > 0 && html`<rect key=${from} x=${n + 0.08} width="0.84" y=${98 - (count / most) * 92} height=${(count / most) * 92 + 2}><title>${`${number(count)} from ${day(from)} on`}</title></rect>`)}
    </svg></figure>`
}

function counted(days) {
  const [first, last] = [days[0].day_ms, days.at(-1).day_ms]
  const each = Math.ceil(((last - first) / DAY_MS + 1) / MOST_COLUMNS)
  const columns = Array.from({ length: Math.floor((last - first) / DAY_MS / each) + 1 }, (_, n) => ({ from: first + n * each * DAY_MS, count: 0 }))
  for (const { day_ms, matches } of days) columns[Math.floor((day_ms - first) / DAY_MS / each)].count += matches
  return Object.assign(columns, { each })
}

const day = ms => new Date(ms).toISOString().slice(0, 10)

export const rounded = value => (Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value) : Number(value.toPrecision(3)))
