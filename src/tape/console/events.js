// The events of a stream: timeline, filter, list and inspector.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js"
import { tint } from "./colours.js"
import { MOST } from "./feed.js"
import { filter, typesIn, withType } from "./filter.js"
import { ForkDialog } from "./fork.js"
import { Inspector } from "./inspector.js"
import { List } from "./list.js"
import { amend } from "./place.js"
import { Row, ROW_HEIGHT, Turn } from "./row.js"
import { isMark, Rows } from "./rows.js"
import { Notice } from "./status.js"
import { Timeline } from "./timeline.js"
import { useKeys, useWatched } from "./watching.js"

const PAGE = 12

export function Events({ feed, place, isAcross = false, empty, inherited = 0, children }) {
  useWatched(feed)
  const text = place.q ?? ""
  const rows = useMemo(() => new Rows(feed, text), [feed, text]).refresh()
  const [, redraw] = useState(0)
  const [isForking, setForking] = useState(false)
  const field = useRef()
  const selected = place.at && feed.find(Number(place.at))

  const follow = isFollowed => {
    if (feed.isFollowed === isFollowed) return
    feed.isFollowed = isFollowed
    redraw(count => count + 1)
  }
  const select = entry => {
    feed.isFollowed = false
    amend({ at: entry?.id })
  }
  const step = count => select(next(rows, selected, count))
  const latest = () => {
    amend({ at: undefined })
    if (feed.status.is === "full") feed.resume()
    feed.isFollowed = true
    redraw(count => count + 1)
  }

  const pause = () => (feed.isFollowed ? follow(false) : latest())

  useKeys(event => {
    const acts = { ...moves(step), "/": () => field.current.focus(), l: latest, p: pause, Escape: () => select(null), f: () => selected && setForking(true) }
    if (!acts[event.key]) return
    event.preventDefault()
    acts[event.key]()
  })

  return html`<section class="events" aria-label="events">
    ${children}
    <${Notice} feed=${feed} />
    <${Timeline} entries=${feed.entries} matched=${useMemo(() => filter(text), [text])} selected=${selected} hasTurns=${!isAcross} onSelect=${select} />
    <div class="bar">
      <input type="search" ref=${field} value=${text} placeholder="Filter: words, type:…, /subject/*, turn:3" aria-label="filter events"
        onInput=${event => amend({ q: event.target.value })} />
      <span class="quiet">${count(rows, feed, text)}</span>
      ${feed.status.is !== "over" && html`<button aria-pressed=${!feed.isFollowed} onClick=${pause} title="pause, or go on (p)">${feed.isFollowed ? "Pause" : "Go on"}</button>`}
      <button class=${feed.isFollowed ? "on" : ""} aria-pressed=${feed.isFollowed} onClick=${latest} title="follow the latest (l)">${feed.isFollowed ? (feed.status.is === "over" ? "At the end" : "Following") : "Latest"}</button>
    </div>
    <${Types} feed=${feed} text=${text} />
    ${rows.rows.length
      ? html`<${List} aria-label="events" count=${rows.rows.length} height=${ROW_HEIGHT} dropped=${rows.dropped} isFollowed=${feed.isFollowed}
          onFollow=${follow} shown=${selected ? rows.place(selected.id) : -1} aria-activedescendant=${selected ? `entry-${selected.id}` : undefined}
          draw=${n => drawRow(rows, n, { feed, selected, isAcross, inherited, onSelect: select })} />`
      : html`<div class="empty">${text && feed.entries.length ? "Nothing here passes the filter." : empty}</div>`}
    ${selected && html`<${Inspector} entry=${selected} onClose=${() => select(null)} onStep=${step} onFork=${() => setForking(true)} />`}
    ${isForking && selected && html`<${ForkDialog} runId=${isAcross ? selected.runId : place.name} seq=${selected.seq} onClose=${() => setForking(false)} />`}
  </section>`
}

function drawRow(rows, n, { feed, selected, isAcross, inherited, onSelect }) {
  const row = rows.rows[n]
  if (isMark(row)) return html`<${Turn} key=${`turn-${row.id}`} turn=${row.turn} />`
  return html`<${Row} key=${row.id} entry=${row} start=${feed.entries[0].at} isSelected=${row === selected} isInherited=${row.seq <= inherited}
    isAcross=${isAcross} size=${rows.rows.length} place=${n} onSelect=${onSelect} />`
}

// The number of rows that each key moves by.
const moves = step => ({
  ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
  PageDown: () => step(PAGE), PageUp: () => step(-PAGE), Home: () => step(-Infinity), End: () => step(Infinity),
})

// The entry that many rows away, without counting marks.
function next(rows, selected, count) {
  const last = rows.rows.length - 1
  if (last < 0) return null
  const from = selected ? rows.place(selected.id) : count > 0 ? -1 : last + 1
  let place = Math.max(0, Math.min(last, from + count))
  const way = count < 0 && place > 0 ? -1 : 1
  while (isMark(rows.rows[place]) && rows.rows[place + way]) place += way
  return isMark(rows.rows[place]) ? selected : rows.rows[place]
}

function Types({ feed, text }) {
  const counts = useCounts(feed)
  const chosen = typesIn(text)
  return html`<div class="types" role="group" aria-label="types">${[...counts].map(([type, count]) => html`<button key=${type}
    class="chip ${tint(type)} ${chosen.length && !chosen.includes(type) ? "out" : ""}" aria-pressed=${chosen.includes(type)}
    onClick=${() => amend({ q: withType(text, type) })}><i></i>${type} <span class="quiet">${count.toLocaleString()}</span></button>`)}</div>`
}

// How many of each type there are, counted once each.
function useCounts(feed) {
  const counted = useRef({ feed: null })
  if (counted.current.feed !== feed || counted.current.dropped !== feed.dropped) counted.current = { feed, dropped: feed.dropped, place: 0, counts: new Map() }
  const state = counted.current
  for (; state.place < feed.entries.length; state.place += 1) {
    const { type } = feed.entries[state.place]
    state.counts.set(type, (state.counts.get(type) ?? 0) + 1)
  }
  return state.counts
}

function count(rows, feed, text) {
  const all = feed.entries.length.toLocaleString()
  if (!text) return `${all} ${feed.entries.length === 1 ? "event" : "events"}`
  return `${rows.rows.filter(row => !isMark(row)).length.toLocaleString()} of ${all}`
}

// The cursor from which the wanted entry fits into the page.
export function beginning(lastSeq, at) {
  if (lastSeq <= MOST) return 0
  return Math.max(0, Math.min(lastSeq - (MOST * 3) / 4, at ? at - MOST / 4 : Infinity))
}
