// A virtual list: only the visible rows are rendered.

import { html, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js"

const BEYOND = 8

// `draw(place)` gives a row; `dropped` counts the rows that have left at the front; `shown` is the row to be in view.
export function List({ count, height, dropped = 0, isFollowed, onFollow, onTop, shown, draw, ...rest }) {
  const box = useRef()
  const last = useRef({ top: 0, dropped })
  const [view, setView] = useState({ top: 0, height: 0 })

  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => setView({ top: box.current.scrollTop, height: box.current.clientHeight }))
    watcher.observe(box.current)
    return () => watcher.disconnect()
  }, [])

  useLayoutEffect(() => {
    const lost = dropped - last.current.dropped
    last.current.dropped = dropped
    if (isFollowed) box.current.scrollTop = count * height
    else if (lost) box.current.scrollTop -= lost * height
    last.current.top = box.current.scrollTop
  })

  useLayoutEffect(() => {
    if (shown >= 0 && !isFollowed && view.height) bring(box.current, shown, height)
  }, [shown, view.height])

  const scrolled = () => {
    if (!box.current) return // a browser reports a scroll in the next frame, when the list may be gone
    const { scrollTop: top, clientHeight } = box.current
    const isAtEnd = top + clientHeight >= count * height - height / 2
    if (top < last.current.top - 1 && !isAtEnd) onFollow(false)
    else if (isAtEnd && top > last.current.top + 1) onFollow(true)
    last.current.top = top
    onTop?.(Math.floor(top / height))
    setView({ top, height: clientHeight })
  }

  const first = Math.max(0, Math.floor(view.top / height) - BEYOND)
  const end = Math.min(count, Math.ceil((view.top + view.height) / height) + BEYOND)
  const drawn = Array.from({ length: Math.max(0, end - first) }, (_, n) => draw(first + n))
  return html`<div class="list" ref=${box} onScroll=${scrolled} tabindex="0" role="listbox" ...${rest}>
    <div class="whole" style=${{ height: `${count * height}px` }}>
      <div class="drawn" style=${{ transform: `translateY(${first * height}px)` }}>${drawn}</div>
    </div>
  </div>`
}

// Scrolls as little as needed; a distant row is centred.
function bring(box, place, height) {
  const [top, bottom] = [place * height, (place + 1) * height]
  const [from, to] = [box.scrollTop, box.scrollTop + box.clientHeight]
  if (top >= from && bottom <= to) return
  const isFar = bottom < from - box.clientHeight || top > to + box.clientHeight
  if (isFar) box.scrollTop = top - box.clientHeight / 2
  else box.scrollTop = top < from ? top - height : bottom - box.clientHeight + height
}
