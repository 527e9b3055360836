// The page: views at the top, runs at the side, the selected view in the middle.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { Compare } from "./compare.js"
import { Directory } from "./directory.js"
import { Icon } from "./icons.js"
import { Journal } from "./journal.js"
import { Lake } from "./lake.js"
import { Nav, VIEWS } from "./nav.js"
import { Outbox } from "./outbox.js"
import { go, usePlace } from "./place.js"
import { Reactions } from "./reactions.js"
import { Run } from "./run.js"
import { Runs } from "./runs.js"
import { System } from "./system.js"
import { Tasks } from "./tasks.js"
import { useKeys, useOpened, useWatched } from "./watching.js"

const THEMES = ["auto", "light", "dark"]
const SHEETS = { reactions: Reactions, tasks: Tasks, outbox: Outbox, lake: Lake, system: System }

export function App() {
  const place = usePlace()
  const directory = useOpened(() => new Directory(), [])
  const [isHelping, setHelping] = useState(false)
  useKeys(event => {
    if (event.key === "?") setHelping(true)
    const view = VIEWS[Number(event.key) - 1]
    if (view) go({ view: view[0] })
  })
  useEffect(() => {
    const [, title] = VIEWS.find(([name]) => name === (place.view || "runs")) ?? []
    document.title = [place.name || title, "Tape"].filter(Boolean).join(" · ")
  }, [place.view, place.name])
  return html`
    <header class="top">
      <a class="brand" href="#/"><img src="/assets/tape.svg" alt="" width="22" height="22" />Tape</a>
      <${Nav} view=${place.view} />
      <${Reach} directory=${directory} />
      <${Theme} />
      <button class="plain" onClick=${() => setHelping(true)} aria-label="keys" title="keys (?)"><${Icon} name="keys" /></button>
    </header>
    <${Middle} place=${place} directory=${directory} />
    ${isHelping && html`<${Keys} onClose=${() => setHelping(false)} />`}`
}

function Middle({ place, directory }) {
  const Whole = Object.hasOwn(SHEETS, place.view) && SHEETS[place.view]
  if (Whole) return html`<main class="whole-width"><${Whole} key=${place.view} place=${place} /></main>`
  const isChosen = place.view === "journal" || place.name
  return html`<main class=${isChosen ? "chosen" : "choosing"}>
    ${!isChosen && html`<h1 class="unseen">Runs</h1>`}
    <${Runs} directory=${directory} chosen=${place.view === "journal" ? null : place.name || undefined} />
    <${View} place=${place} directory=${directory} />
  </main>`
}

function View({ place, directory }) {
  if (place.view === "journal") return html`<${Journal} place=${place} />`
  if (place.view !== "runs" || !place.name) return html`<${Welcome} directory=${directory} />`
  if (place.with) return html`<${Compare} key=${`${place.name} ${place.with}`} place=${place} directory=${directory} />`
  return html`<${Run} place=${place} directory=${directory} />`
}

function Reach({ directory }) {
  useWatched(directory)
  return directory.problem && html`<span class="status bad" role="alert"><i></i>${directory.problem.message}</span>`
}

function Welcome({ directory }) {
  useWatched(directory)
  return html`<section class="events"><div class="empty">
    ${!directory.isRead ? html`<p>Loading…</p>` : directory.runs.length ? html`<b>Choose a run</b><p>Its events appear here live.</p>` : html`<b>No events yet</b><p>Open a run and publish an event:</p><pre>tape publish hello --open '{"text": "hello"}'</pre>`}
  </div></section>`
}

// The theme of the browser, unless the user chose one.
function Theme() {
  const [theme, setTheme] = useState(() => storedTheme() ?? "auto")
  useEffect(() => {
    document.documentElement.dataset.theme = theme
    storedTheme(theme)
  }, [theme])
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]
  return html`<button class="plain" onClick=${() => setTheme(next)} aria-label=${`theme: ${theme}`} title=${`theme: ${theme}; next: ${next}`}><${Icon} name=${theme} /></button>`
}

// Reads or stores the theme; a browser may forbid storage.
function storedTheme(theme) {
  try {
    if (theme) localStorage.setItem("tape-theme", theme)
    return localStorage.getItem("tape-theme")
  } catch {
    return null
  }
}

const KEYS = [
  ["/", "filter"], ["j k Down Up", "next and previous event"], ["Home End", "first and last event"], ["l", "follow the latest"],
  ["1 … 7", "runs, live, reactions, tasks, outbox, lake, system"], ["p", "pause and resume"], ["f", "fork here"], ["d", "first difference, side by side"], ["Esc", "close"], ["?", "these keys"],
]

function Keys({ onClose }) {
  const dialog = useRef()
  useEffect(() => dialog.current.showModal(), [])
  return html`<dialog ref=${dialog} class="keys" onClose=${onClose} aria-labelledby="keys-title">
    <h2 id="keys-title">Keys</h2>
    <dl>${KEYS.map(([keys, about]) => html`<dt>${keys.split(" ").map(key => html`<kbd>${key}</kbd>`)}</dt><dd>${about}</dd>`)}</dl>
    <button onClick=${() => dialog.current.close()}>Close</button>
  </dialog>`
}
