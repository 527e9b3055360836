// One row of a list: an entry, or the mark at which a turn begins.

import { html } from "./vendor/preact-htm.js"
import { tint } from "./colours.js"
import { clock, offset } from "./time.js"

export const ROW_HEIGHT = 34

export function Row({ entry, start, isSelected, isInherited, isAcross, size, place, onSelect, mark = "" }) {
  const classes = ["row", tint(entry.type), isSelected && "selected", isInherited && "inherited", mark].filter(Boolean)
  return html`<div id=${`entry-${entry.id}`} role="option" aria-selected=${isSelected} aria-setsize=${size}
      aria-posinset=${place + 1} class=${classes.join(" ")} onClick=${() => onSelect(entry)}>
    <span class="seq">${isAcross ? entry.globalSeq : entry.seq}</span>
    <time title=${clock(entry.at)}>${offset(entry.at - start)}</time>
    <span class="type"><i></i><b>${entry.type}</b></span>
    ${isAcross && html`<span class="run">${entry.runId}</span>`}
    <${Facts} entry=${entry} />
  </div>`
}

function Facts({ entry }) {
  return html`<span class="facts">${entry.facts.map(([name, text]) => html`<span>${name && html`<em>${name}</em>`} ${text}</span>`)}</span>`
}

export function Turn({ turn }) {
  return html`<div class="turn" role="presentation"><span>turn ${turn}</span></div>`
}

