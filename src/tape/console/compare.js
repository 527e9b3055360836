// A parent and its child side by side: shared entries, and where they differ.

import { html, useMemo } from "./vendor/preact-htm.js"
import { align, firstDifference, keyOf } from "./align.js"
import { tint } from "./colours.js"
import { Feed } from "./feed.js"
import { Icon } from "./icons.js"
import { Json } from "./json.js"
import { List } from "./list.js"
import { address, amend } from "./place.js"
import { ROW_HEIGHT } from "./row.js"
import { useResumed } from "./run.js"
import { Dot } from "./runs.js"
import { Notice, Status } from "./status.js"
import { visible } from "./visible.js"
import { useKeys, useOpened, useWatched } from "./watching.js"

export function Compare({ place, directory }) {
  useWatched(directory)
  const parent = useWatched(useOpened(() => openFeed(place.with), [place.with]))
  const child = useWatched(useOpened(() => openFeed(place.name), [place.name]))
  useResumed(parent, directory.find(place.with) ?? { run_id: place.with }, directory.runs)
  useResumed(child, directory.find(place.name) ?? { run_id: place.name }, directory.runs)
  const fork = child.fork?.childRunId === place.name ? child.fork : null
  const rows = useMemo(() => align(parent.entries, child.entries, fork), [parent.entries.length, child.entries.length, fork])
  const first = firstDifference(rows)
  const chosen = place.at === undefined ? -1 : rows.findIndex(row => keyOf(row) === place.at)
  const select = row => amend({ at: row && keyOf(row) })
  useCompareKeys(rows, chosen < 0 ? first : chosen, first, select)
  return html`<section class="events compare" aria-label="side by side">
    <header class="about">
      <a class="back always" href=${address({ view: "runs", name: place.name })} aria-label="back to the child"><${Icon} name="back" /></a>
      <h1>Side by side</h1>
      <span class="quiet">${summary(rows, fork, first)}</span>
      <span class="space"></span>
      <button disabled=${first < 0} onClick=${() => select(rows[first])} title="first difference (d)">First difference</button>
    </header>
    <${Notice} feed=${child} />
    <div class="pair heads">
      <${Head} feed=${parent} runId=${place.with} run=${directory.find(place.with)} role="parent" />
      <${Head} feed=${child} runId=${place.name} run=${directory.find(place.name)} role="child" />
    </div>
    <${List} aria-label="both runs" count=${rows.length} height=${ROW_HEIGHT} isFollowed=${false} onFollow=${() => {}} shown=${chosen < 0 ? first : chosen}
      aria-activedescendant=${chosen < 0 ? undefined : `pair-${keyOf(rows[chosen])}`}
      draw=${n => html`<${Pair} key=${keyOf(rows[n])} row=${rows[n]} isFirst=${n === first} isChosen=${n === chosen} onSelect=${select} />`} />
    ${chosen >= 0 && html`<${Both} row=${rows[chosen]} onClose=${() => select(null)} />`}
  </section>`
}

function openFeed(runId) {
  const feed = new Feed({ run_id: runId }, 0)
  feed.isFollowed = false
  return feed
}

function useCompareKeys(rows, from, first, select) {
  const step = count => rows.length && select(rows[Math.max(0, Math.min(rows.length - 1, from + count))])
  useKeys(event => {
    const acts = {
      ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
      d: () => first >= 0 && select(rows[first]), Escape: () => select(null),
    }
    if (!acts[event.key]) return
    event.preventDefault()
    acts[event.key]()
  })
}

function Head({ feed, runId, run, role }) {
  return html`<div><span class="quiet">${role}</span> ${run && html`<${Dot} status=${run.status} />`}
    <a href=${address({ view: "runs", name: runId })}>${visible(run?.label || runId)}</a> <${Status} feed=${feed} run=${run} /></div>`
}

function Pair({ row, isFirst, isChosen, onSelect }) {
  const classes = ["pair", row.is, isFirst && "first", isChosen && "selected"].filter(Boolean).join(" ")
  return html`<div id=${`pair-${keyOf(row)}`} class=${classes} role="option" aria-selected=${isChosen} onClick=${() => onSelect(row)}>
    <${Half} entry=${row.left} /><${Half} entry=${row.right} />
  </div>`
}

function Half({ entry }) {
  if (!entry) return html`<div class="half nothing"></div>`
  return html`<div class="half ${tint(entry.type)}"><span class="seq">${entry.seq}</span><span class="type"><i></i><b>${entry.type}</b></span>
    <span class="facts">${entry.facts.map(([name, text]) => html`<span>${name && html`<em>${name}</em>`} ${text}</span>`)}</span></div>`
}

function Both({ row, onClose }) {
  return html`<aside class="inspector both" aria-label="both payloads">
    <header><b>${MEANING[row.is]}</b><span class="space"></span><button class="plain" aria-label="close" onClick=${onClose}><${Icon} name="close" /></button></header>
    <div class="pair">${[row.left, row.right].map(entry => html`<div>${entry ? html`<${Json} text=${entry.payload} />` : html`<p class="quiet">nothing</p>`}</div>`)}</div>
  </aside>`
}

const MEANING = {
  same: "inherited: one and the same event",
  equal: "equal payloads",
  different: "different",
  added: "only in the child",
  missing: "only in the parent",
}

function summary(rows, fork, first) {
  const shared = fork ? `${fork.atSeq.toLocaleString()} inherited` : "reading"
  if (!fork) return shared
  const counts = ["equal", "different"].map(is => `${rows.filter(row => row.is === is).length.toLocaleString()} ${is}`)
  return [shared, ...counts, first < 0 ? "no difference yet" : ""].filter(Boolean).join(" · ")
}
