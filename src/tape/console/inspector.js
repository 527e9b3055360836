// All fields of one entry.

import { html, useEffect, useState } from "./vendor/preact-htm.js"
import { tint } from "./colours.js"
import { Icon } from "./icons.js"
import { Json } from "./json.js"
import { address } from "./place.js"
import { ago, clock } from "./time.js"
import { visible } from "./visible.js"
import { useNow } from "./watching.js"

export function Inspector({ entry, onClose, onFork, onStep }) {
  const now = useNow()
  return html`<aside class="inspector" aria-label="event">
    <header>
      <span class="type ${tint(entry.type)}"><i></i><b>${entry.type}</b></span>
      <span class="quiet">${entry.seq.toLocaleString()}</span>
      <span class="space"></span>
      <button class="plain" title="previous (k)" aria-label="previous event" onClick=${() => onStep(-1)}><${Icon} name="up" /></button>
      <button class="plain" title="next (j)" aria-label="next event" onClick=${() => onStep(1)}><${Icon} name="down" /></button>
      <button class="plain" title="close (Esc)" aria-label="close" onClick=${onClose}><${Icon} name="close" /></button>
    </header>
    <dl>
      <dt>when</dt><dd>${ago(entry.at, now)} <span class="quiet">${clock(entry.at)}</span></dd>
      <dt>run</dt><dd><a href=${address({ view: "runs", name: entry.runId, at: entry.seq })}>${entry.runId}</a></dd>
      <dt>subject</dt><dd class="code">${visible(entry.subject)}</dd>
      <dt>place</dt><dd>${entry.seq.toLocaleString()} in the run, ${entry.globalSeq.toLocaleString()} in the journal</dd>
      ${entry.clientId && html`<dt>client</dt><dd>${visible(entry.clientId)}</dd>`}
      ${entry.traceId && html`<dt>trace</dt><dd class="code">${entry.traceId}</dd>`}
    </dl>
    <div class="tools">
      <button onClick=${onFork} title="fork here (f)">Fork here</button>
      <${Copy} text=${entry.payload} />
      <span class="quiet size">${size(entry.payload)}</span>
    </div>
    ${entry.contentType === "application/json"
      ? html`<${Json} text=${entry.payload} />`
      : html`<p class="quiet">${visible(entry.contentType)}, in base64</p><pre class="json"><code>${entry.payload}</code></pre>`}
  </aside>`
}

function Copy({ text }) {
  const [isDone, setDone] = useState(false)
  useEffect(() => setDone(false), [text])
  const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true), () => {})
  return html`<button onClick=${copy}>${isDone ? "Copied" : "Copy payload"}</button>`
}

function size(text) {
  return text.length < 1024 ? `${text.length} characters` : `${(text.length / 1024).toFixed(1)} thousand characters`
}
