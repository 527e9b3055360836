// The entries about a reaction or a task, in order.

import { html } from "./vendor/preact-htm.js"
import { number } from "./sheet.js"
import { clock } from "./time.js"
import { visible } from "./visible.js"

export function Life({ life }) {
  return html`<ol class="life">${life.map(one => html`<li><b>${visible(one.type)}</b> <span class="quiet">${clock(one.ts_ms)}, at ${number(one.global_seq)}</span>
    ${one.attempts > 0 && html` <span class="quiet">after ${number(one.attempts)} ${one.attempts === 1 ? "attempt" : "attempts"}</span>`}
    ${(one.error || one.reason || one.paused) && html`<div>${visible(one.error || one.reason || one.paused)}</div>`}</li>`)}</ol>`
}
