// Parts that the views share: a frame with a heading, empty states, tables and lists of facts.

import { html } from "./vendor/preact-htm.js"
import { Icon } from "./icons.js"
import { visible } from "./visible.js"

const LONG = 400

export function Sheet({ title, about, back, tools, children }) {
  return html`<section class="sheet" aria-label=${title} tabindex="0"><div class="inner">
    <header class="about">
      ${back && html`<a class="back always" href=${back} aria-label="back"><${Icon} name="back" /></a>`}
      <h1>${visible(title)}</h1>
      ${about && html`<span class="quiet id">${visible(about)}</span>`}
      <span class="space"></span>
      ${tools}
    </header>
    ${children}
  </div></section>`
}

// An empty state with the server's message and a hint.
export function Nothing({ problem, children }) {
  return html`<div class="empty">${problem ? html`<b>${sentence(problem.message)}</b>` : null}${children}</div>`
}

// The message for a pending, failed or stale response, or null for a fresh one.
export function troubleOf({ value, problem }, hint) {
  if (value && !problem) return null
  if (value) return html`<p class="notice" role="status">${sentence(problem.message)} The data shown is older.</p>`
  return problem ? html`<${Nothing} problem=${problem}>${hint}<//>` : html`<${Nothing}><p>Loading…</p><//>`
}

// `columns` are [title, row => what is shown, class]; on a phone each row is a card.
export function Table({ caption, columns, rows, keyOf, classOf }) {
  return html`<div class="wide" role="region" tabindex="0" aria-label=${caption}><table>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${columns.map(([title, , look]) => html`<th scope="col" class=${look}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, n) => html`<tr key=${keyOf?.(row) ?? n} class=${classOf?.(row)}>
      ${columns.map(([title, show, look]) => html`<td class=${look} data-title=${title}>${show(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`
}

export function Facts({ facts }) {
  return html`<dl class="facts-list">${facts.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}

export function Figures({ figures }) {
  return html`<dl class="figures">${figures.map(([name, value, look]) => html`<div class=${look ?? ""}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

export function Tabs({ label, tabs, chosen, onChoose }) {
  return html`<div class="tabs" role="group" aria-label=${label}>${tabs.map(([value, text]) => html`<button key=${value} aria-pressed=${value === chosen}
    class=${value === chosen ? "on" : ""} onClick=${() => onChoose(value)}>${text}</button>`)}</div>`
}

// A text in code style: short ones inline, long ones in a scrolling box.
export function Code({ text }) {
  if (text.length <= LONG) return html`<span class="code">${visible(text)}</span>`
  return html`<pre class="command" tabindex="0" aria-label=${`${number(text.length)} characters`}>${visible(text)}</pre>`
}

export function Command({ children }) {
  return html`<pre class="command" tabindex="0" aria-label="command">${children}</pre>`
}

export const number = value => (Number.isFinite(value) ? value.toLocaleString() : "–")

export const sentence = text => visible(text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : "."))
