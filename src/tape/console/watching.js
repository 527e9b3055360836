// Hooks that re-render a component.

import { useEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js"

export function useWatched(source) {
  const [, redraw] = useState(0)
  useEffect(() => source?.watch(() => redraw(count => count + 1)), [source])
  return source
}

// The current time, updated while the page is visible.
export function useNow(everyMs = 1000) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

// A resource that is opened for some values and closed when they change.
export function useOpened(open, values) {
  const opened = useMemo(open, values)
  useEffect(() => () => opened?.close(), [opened])
  return opened
}

// A key handler for the whole page; keys typed into a field are ignored.
export function useKeys(handle) {
  const latest = useRef(handle)
  latest.current = handle
  useEffect(() => {
    const heard = event => {
      const isTyped = event.target.closest?.("input, textarea, select, dialog")
      if (!isTyped && !event.ctrlKey && !event.metaKey && !event.altKey) latest.current(event)
    }
    addEventListener("keydown", heard)
    return () => removeEventListener("keydown", heard)
  }, [])
}
