// A strip of a run: how much of each type when, where turns begin, and where the reader is.

import { html, useLayoutEffect, useRef } from "./vendor/preact-htm.js"
import { colour } from "./colours.js"

const BAR = 4
const GAP = 1
const HEIGHT = 56
const FOOT = 14
const SHORTEST_CAP_MS = 200

export function Timeline({ entries, matched, selected, hasTurns, onSelect }) {
  const canvas = useRef()
  const axis = useRef(null)
  const size = useRef(0)

  const paint = () => {
    axis.current = places(entries)
    draw(canvas.current, entries, matched, axis.current, selected, hasTurns)
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

  const clicked = event => {
    if (!entries.length) return
    const { left, width } = canvas.current.getBoundingClientRect()
    onSelect(entries[nearest(axis.current, (event.clientX - left) / width)])
  }
  return html`<canvas class="timeline" ref=${canvas} height=${HEIGHT} role="img" aria-label=${about(entries)} onClick=${clicked}></canvas>`
}

const about = entries => `timeline of ${entries.length.toLocaleString()} events`

// Where each entry stands between 0 and 1. Time runs evenly while things happen; long silences are shortened.
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

function draw(canvas, entries, matched, axis, selected, hasTurns) {
  const width = canvas.clientWidth
  const ratio = devicePixelRatio
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(HEIGHT * ratio)
  if (!width || !entries.length) return
  const pen = canvas.getContext("2d")
  pen.scale(ratio, ratio)
  const ink = inks(canvas)
  bars(pen, stacks(entries, matched, axis, Math.floor(width / BAR)), ink)
  if (hasTurns) turns(pen, entries, axis, width, ink)
  if (selected) cursor(pen, axis[entries.indexOf(selected)] * (width - BAR), ink)
}

// How many of each colour fall into each bar; what the filter leaves out is counted under -1.
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

function cursor(pen, x, ink) {
  pen.fillStyle = ink.strong
  pen.fillRect(x, 0, 2, HEIGHT - FOOT + 4)
}

// The colours of the theme as they are now; a canvas knows no style sheets.
function inks(canvas) {
  const probe = document.createElement("span")
  canvas.after(probe)
  const read = name => {
    probe.className = name
    return getComputedStyle(probe).color
  }
  const types = Array.from({ length: 12 }, (_, n) => read(`ink tint-${n}`))
  const ink = { types, faint: read("ink-faint"), quiet: read("ink-quiet"), strong: read("ink-strong") }
  probe.remove()
  return ink
}
