// The timeline of a run: events by type, turns, the reader's position, and a track each for decisions, effects and
// gates.

import { html, useLayoutEffect, useRef } from "./vendor/preact-htm.js"
import { colour } from "./colours.js"

const BAR = 4
const GAP = 1
const HEIGHT = 56
const FOOT = 14
const SHORTEST_CAP_MS = 200
const TRACK = 16
const GUTTER = 64
const TRACKS = [["decision", "decisions"], ["effect", "effects"], ["gate", "gates"]]
const BAD = /fail|denied|dead|unknown/

export function Timeline({ entries, matched, selected, hasTurns, onSelect }) {
  const canvas = useRef()
  const axis = useRef(null)
  const size = useRef(0)
  const tracks = hasTurns ? tracksOf(entries) : []

  const paint = () => {
    axis.current = places(entries)
    draw(canvas.current, { entries, matched, axis: axis.current, selected, hasTurns, tracks })
  }
  useLayoutEffect(paint)
  useLayoutEffect(() => {
    const again = () => size.current?.()
    const watcher = new ResizeObserver(again)
    watcher.observe(canvas.current)
    const scheme = matchMedia("(prefers-color-scheme: dark)")
    scheme.addEventListener("change", again)
    return () => (watcher.disconnect(), scheme.removeEventListener("change", again))
  }, [])
  size.current = paint

  const scrub = event => {
    if (!entries.length || !(event.buttons & 1)) return
    const { left, width } = canvas.current.getBoundingClientRect()
    const gutter = tracks.length ? GUTTER : 0
    onSelect(entries[nearest(axis.current, (event.clientX - left - gutter) / (width - gutter))])
  }
  const grab = event => (canvas.current.setPointerCapture(event.pointerId), scrub(event))
  const place = selected ? entries.indexOf(selected) + 1 : 0
  return html`<canvas class="timeline" ref=${canvas} style=${{ height: `${heightOf(tracks)}px` }} role="slider" tabindex="0" aria-label=${about(entries)}
    aria-valuemin="0" aria-valuemax=${entries.length} aria-valuenow=${place} aria-valuetext=${selected ? `${selected.seq} ${selected.type}` : "none"}
    onPointerDown=${grab} onPointerMove=${scrub}></canvas>`
}

const about = entries => `timeline of ${entries.length.toLocaleString()} events`

const heightOf = tracks => HEIGHT + tracks.length * TRACK

// The tracks that have entries.
const tracksOf = entries => {
  const kinds = new Set(entries.map(entry => entry.kind))
  return TRACKS.filter(([kind]) => kinds.has(kind))
}

// The x of each entry from 0 to 1. The scale is linear, but long gaps are shortened.
function places(entries) {
  const found = new Float64Array(entries.length)
  const cap = longestGap(entries)
  for (let n = 1; n < entries.length; n += 1) found[n] = found[n - 1] + Math.min(entries[n].at - entries[n - 1].at, cap) + 0.01
  const whole = found.at(-1) || 1
  return found.map(place => place / whole)
}

function longestGap(entries) {
  const step = Math.max(1, Math.floor(entries.length / 500))
  const gaps = []
  for (let n = 1; n < entries.length; n += step) gaps.push(entries[n].at - entries[n - 1].at)
  gaps.sort((a, b) => a - b)
  return Math.max(SHORTEST_CAP_MS, 20 * (gaps[Math.floor(gaps.length * 0.9)] ?? 0))
}

function nearest(axis, share) {
  let [low, high] = [0, axis.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (axis[middle] < share) low = middle + 1
    else high = middle
  }
  return low > 0 && share - axis[low - 1] < axis[low] - share ? low - 1 : low
}

function draw(canvas, { entries, matched, axis, selected, hasTurns, tracks }) {
  const ratio = devicePixelRatio
  canvas.width = Math.round(canvas.clientWidth * ratio)
  canvas.height = Math.round(heightOf(tracks) * ratio)
  const gutter = tracks.length ? GUTTER : 0
  const width = canvas.clientWidth - gutter
  if (width <= 0 || !entries.length) return
  const pen = canvas.getContext("2d")
  pen.scale(ratio, ratio)
  pen.translate(gutter, 0)
  const ink = inks(canvas)
  bars(pen, stacks(entries, matched, axis, Math.floor(width / BAR)), ink)
  if (hasTurns) turns(pen, entries, axis, width, ink)
  tracks.forEach((track, n) => drawLane(pen, track, HEIGHT + n * TRACK, { entries, matched, axis, width, ink }))
  if (selected) cursor(pen, axis[entries.indexOf(selected)] * (width - BAR), heightOf(tracks), ink)
}

function drawLane(pen, [kind, title], top, { entries, matched, axis, width, ink }) {
  pen.fillStyle = ink.quiet
  pen.font = "11px system-ui, sans-serif"
  pen.fillText(title, -GUTTER, top + 11)
  pen.fillStyle = ink.faint
  pen.fillRect(0, top + 7, width, 1)
  for (let n = 0; n < entries.length; n += 1) {
    if (entries[n].kind !== kind) continue
    pen.fillStyle = !matched(entries[n]) ? ink.faint : BAD.test(entries[n].type) ? ink.bad : ink.types[colour(entries[n].type)]
    pen.fillRect(axis[n] * (width - BAR), top + 2, 4, 11)
  }
}

// The counts of each colour per bar; filtered entries count under -1.
function stacks(entries, matched, axis, count) {
  const found = Array.from({ length: count }, () => new Map())
  for (let n = 0; n < entries.length; n += 1) {
    const stack = found[Math.min(count - 1, Math.floor(axis[n] * count))]
    const kind = matched(entries[n]) ? colour(entries[n].type) : -1
    stack.set(kind, (stack.get(kind) ?? 0) + 1)
  }
  return found
}

function bars(pen, found, ink) {
  const sums = found.map(stack => [...stack.values()].reduce((sum, count) => sum + count, 0))
  const room = HEIGHT - FOOT
  const most = Math.max(...sums)
  found.forEach((stack, n) => {
    let foot = room
    const height = sums[n] && Math.max(3, Math.sqrt(sums[n] / most) * (room - 2))
    for (const [kind, count] of [...stack].sort(([a], [b]) => b - a)) {
      const part = (height * count) / sums[n]
      pen.fillStyle = kind < 0 ? ink.faint : ink.types[kind]
      pen.fillRect(n * BAR, foot - part, BAR - GAP, part)
      foot -= part
    }
  })
}

function turns(pen, entries, axis, width, ink) {
  pen.fillStyle = ink.quiet
  pen.font = "10px system-ui, sans-serif"
  let turn = null
  let free = 0
  for (let n = 0; n < entries.length; n += 1) {
    if (entries[n].turn === null || entries[n].turn === turn) continue
    turn = entries[n].turn
    const x = axis[n] * (width - BAR)
    pen.fillRect(x, HEIGHT - FOOT + 2, 1, 4)
    if (x >= free && x < width - 12) {
      pen.fillText(String(turn), x + 3, HEIGHT - 2)
      free = x + 26
    }
  }
}

function cursor(pen, x, height, ink) {
  pen.fillStyle = ink.strong
  pen.fillRect(x, 0, 2, height - (height === HEIGHT ? FOOT - 4 : 0))
}

// The colours of the current theme, because a canvas has no style sheets.
function inks(canvas) {
  const probe = document.createElement("span")
  canvas.after(probe)
  const read = name => {
    probe.className = name
    return getComputedStyle(probe).color
  }
  const types = Array.from({ length: 12 }, (_, n) => read(`ink tint-${n}`))
  const ink = { types, faint: read("ink-faint"), quiet: read("ink-quiet"), strong: read("ink-strong"), bad: read("ink-bad") }
  probe.remove()
  return ink
}
