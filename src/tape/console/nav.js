// The views and the navigation.

import { html, useEffect, useRef } from "./vendor/preact-htm.js"

export const VIEWS = [
  ["runs", "Runs", "#/"],
  ["journal", "Live", "#/journal"],
  ["reactions", "Reactions", "#/reactions"],
  ["tasks", "Tasks", "#/tasks"],
  ["outbox", "Outbox", "#/outbox"],
  ["lake", "Lake", "#/lake"],
  ["system", "System", "#/system"],
]

export function Nav({ view }) {
  const row = useRef()
  useEffect(() => row.current.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" }), [view])
  return html`<nav class="views" aria-label="views" ref=${row}>${VIEWS.map(([name, title, href]) => html`<a key=${name} href=${href}
    aria-current=${name === (view || "runs") ? "page" : undefined}>${title}</a>`)}</nav>`
}
