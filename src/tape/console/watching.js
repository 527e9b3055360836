// Hooks: what a component draws again for.

import { useEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js"

export function useWatched(source) {
  const [, redraw] = useState(0)
  useEffect(() => source?.watch(() => redraw(count => count + 1)), [source])
  return source
}

// The time, told again and again while somebody looks.
export function useNow(everyMs = 1000) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

// Something that is opened for some values and closed when they change.
export function useOpened(open, values) {
  const opened = useMemo(open, values)
  useEffect(() => () => opened?.close(), [opened])
  return opened
}

// A function for the whole page's keys; keys that are typed into a field are not for it.
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
