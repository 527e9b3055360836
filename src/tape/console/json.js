// A formatted payload, as text only.

import { html } from "./vendor/preact-htm.js"
import { pretty } from "./payload.js"

export function Json({ text }) {
  const { parts, rest } = pretty(text)
  return html`<pre class="json" tabindex="0" aria-label="payload"><code>${parts.map(part => html`<span class=${part.kind}>${part.text}</span>`)}</code></pre>
    ${rest > 0 && html`<p class="quiet">${rest.toLocaleString()} more characters; copy the payload to see all.</p>`}`
}
