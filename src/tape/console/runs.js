// The list of runs, live ones first, with a search box.

import { html, useState } from "./vendor/preact-htm.js"
import { address } from "./place.js"
import { Command } from "./sheet.js"
import { ago } from "./time.js"
import { visible } from "./visible.js"
import { useNow, useWatched } from "./watching.js"

const MOST_SHOWN = 300

export function Runs({ directory, chosen }) {
  useWatched(directory)
  const [sought, setSought] = useState("")
  const now = useNow(5000)
  const found = directory.runs.filter(run => isSought(run, sought.toLowerCase()))
  const live = found.filter(run => run.status !== "complete")
  const ended = found.filter(run => run.status === "complete")
  return html`<nav class="runs" aria-label="runs">
    <input type="search" placeholder="Search runs" aria-label="search runs" value=${sought} onInput=${event => setSought(event.target.value)} />
    <a class="across ${chosen === null ? "chosen" : ""}" href=${address({ view: "journal" })}>All runs, live</a>
    <div class="scroll">
      <${Group} title="Live" runs=${live} chosen=${chosen} now=${now} />
      <${Group} title="Ended" runs=${ended} chosen=${chosen} now=${now} />
      <${Nothing} directory=${directory} isFound=${found.length > 0} />
    </div>
  </nav>`
}

function Group({ title, runs, chosen, now }) {
  if (!runs.length) return null
  const more = runs.length > MOST_SHOWN && html`<li class="quiet">${(runs.length - MOST_SHOWN).toLocaleString()} more; search for them</li>`
  return html`<section>
    <h2>${title} <span class="quiet">${runs.length}</span></h2>
    <ul>${runs.slice(0, MOST_SHOWN).map(run => html`<${Item} key=${run.run_id} run=${run} isChosen=${run.run_id === chosen} now=${now} />`)}${more}</ul>
  </section>`
}

function Item({ run, isChosen, now }) {
  const started = Date.parse(run.started_at ?? "")
  return html`<li><a href=${address({ view: "runs", name: run.run_id })} class=${isChosen ? "chosen" : ""} aria-current=${isChosen ? "page" : undefined}>
    <${Dot} status=${run.status} />
    <span class="label">${visible(run.label || run.run_id)}</span>
    <span class="count">${run.n_events.toLocaleString()}</span>
    <span class="quiet below"><span class="id">${run.label ? run.run_id : ""}</span><span class="age">${Number.isNaN(started) ? visible(run.started_at ?? "") : ago(started, now)}</span></span>
  </a></li>`
}

export function Dot({ status }) {
  return html`<i class="dot ${status}" role="img" aria-label=${status} title=${MEANING[status] ?? status}></i>`
}

const MEANING = {
  running: "running",
  stale: "stale: its producer has fallen silent",
  complete: "complete",
}

function Nothing({ directory, isFound }) {
  if (isFound) return null
  if (directory.problem && !directory.isRead) return html`<p class="quiet">${directory.problem.message}</p>`
  if (!directory.isRead) return html`<p class="quiet">Loading…</p>`
  if (directory.runs.length) return html`<p class="quiet">No run has this name.</p>`
  return html`<p class="quiet">No runs yet.</p><div class="narrow-only"><p class="quiet">Open one and publish an event:</p><${Command}>tape publish hello --open '{"text": "hello"}'<//></div>`
}

function isSought(run, text) {
  return [run.run_id, run.label, run.status].some(word => word?.toLowerCase().includes(text))
}
