// The state in the URL's fragment, so that a reload and a link show the same event.

import { useEffect, useState } from "./vendor/preact-htm.js"

// #/runs/<run> or #/journal, each with parameters: at, q, with, subject, where, from.
export function read(fragment = location.hash) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?")
  const [view = "", name = ""] = path.split("/").map(safely)
  return { view, name, ...Object.fromEntries(new URLSearchParams(query)) }
}

export function address({ view, name, ...parameters }) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "")
  const query = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()
  const path = [view, name].filter(Boolean).map(encodeURIComponent).join("/")
  return `#/${path}${query ? `?${query}` : ""}`
}

export const go = place => {
  location.hash = address(place)
}

// Changes parameters without a new history entry.
export function amend(changes) {
  history.replaceState(null, "", address({ ...read(), ...changes }))
  dispatchEvent(new Event("amended"))
}

export function usePlace() {
  const [place, setPlace] = useState(read)
  useEffect(() => {
    const onChange = () => setPlace(read())
    const events = ["hashchange", "amended"]
    for (const event of events) addEventListener(event, onChange)
    return () => events.forEach(event => removeEventListener(event, onChange))
  }, [])
  return place
}

function safely(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return ""
  }
}
