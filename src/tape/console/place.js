// Where the page is: the part of the address after #, so that a reload and a link come back to the same event.

import { useEffect, useState } from "./vendor/preact-htm.js"

// #/runs/<run> or #/journal, each with parameters: at, q, with, subject, where, from.
export function read(fragment = location.hash) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?")
  const [view = "", name = ""] = path.split("/").map(safely)
  return { view, name, ...Object.fromEntries(new URLSearchParams(query)) }
}

export function address({ view, name, ...parameters }) {
  const said = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "")
  const query = new URLSearchParams(said.map(([key, value]) => [key, String(value)])).toString()
  const path = [view, name].filter(Boolean).map(encodeURIComponent).join("/")
  return `#/${path}${query ? `?${query}` : ""}`
}

export const go = place => {
  location.hash = address(place)
}

// Changes parameters of this place without a step in the history.
export function amend(changes) {
  history.replaceState(null, "", address({ ...read(), ...changes }))
  dispatchEvent(new Event("amended"))
}

export function usePlace() {
  const [place, setPlace] = useState(read)
  useEffect(() => {
    const look = () => setPlace(read())
    const events = ["hashchange", "amended"]
    for (const event of events) addEventListener(event, look)
    return () => events.forEach(event => removeEventListener(event, look))
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
