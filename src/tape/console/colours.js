// A stable colour for each type of event, distinct while there are enough colours.

const COLOURS = 12
const given = new Map()

export function colour(type) {
  if (!given.has(type)) given.set(type, free(hash(type) % COLOURS))
  return given.get(type)
}

function free(wanted) {
  const taken = new Set(given.values())
  if (taken.size >= COLOURS) return wanted
  let found = wanted
  while (taken.has(found)) found = (found + 1) % COLOURS
  return found
}

function hash(text) {
  let value = 2166136261
  for (let place = 0; place < text.length; place += 1) value = Math.imul(value ^ text.charCodeAt(place), 16777619)
  return (value ^ (value >>> 15)) >>> 0
}

export const tint = type => `tint-${colour(type)}`
