// Tokenizes the stored text of a payload without parsing numbers, so that none is rounded.

import { visible } from "./visible.js"

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g
const MOST_TOKENS = 6000
const OPENING = new Set("{[")
const CLOSING = new Set("}]")

// The first fields of an object, each as its name and its text; anything else is one field without a name.
export function fields(text, most) {
  if (!text.startsWith("{")) return [["", text]]
  const [inner, found] = [text.slice(1), []]
  let [depth, name, start] = [1, "", 0]
  for (const { 0: token, index } of inner.matchAll(TOKEN)) {
    depth -= CLOSING.has(token) ? 1 : 0
    if (depth === 1 && token === ":") [name, start] = [JSON.parse(inner.slice(start, index)), index + 1]
    if (depth === 0 || (depth === 1 && token === ",")) {
      if (index > start && inner.slice(start, index).trim()) found.push([name, inner.slice(start, index).trim()])
      start = index + 1
    }
    if (depth === 0 || found.length === most) break
    depth += OPENING.has(token) ? 1 : 0
  }
  return found
}

// Parts of one kind each, with line breaks and indents in between, and how much is left out of a very long one.
export function pretty(text) {
  const parts = []
  const tokens = text.matchAll(TOKEN)
  let depth = 0
  let count = 0
  for (let { value: here } = tokens.next(), next; here; here = next, count += 1) {
    next = tokens.next().value
    if (count === MOST_TOKENS) return { parts, rest: text.length - here.index }
    depth = put(parts, here[0], next?.[0], depth)
  }
  return { parts, rest: 0 }
}

function put(parts, token, next, depth) {
  if (OPENING.has(token)) {
    add(parts, "mark", CLOSING.has(next) ? token : token + line(depth + 1))
    return depth + 1
  }
  if (CLOSING.has(token)) {
    const isEmpty = OPENING.has(parts.at(-1)?.text.at(-1))
    add(parts, "mark", isEmpty ? token : line(depth - 1) + token)
    return depth - 1
  }
  if (token === ",") add(parts, "mark", token + line(depth))
  else if (token === ":") add(parts, "mark", ": ")
  else add(parts, kindOf(token, next), token[0] === '"' ? shown(token, depth) : token)
  return depth
}

const line = depth => `\n${"  ".repeat(depth)}`

function add(parts, kind, text) {
  if (kind === "mark" && parts.at(-1)?.kind === "mark") parts.at(-1).text += text
  else parts.push({ kind, text })
}

function kindOf(token, next) {
  if (token[0] === '"') return next === ":" ? "key" : "string"
  return /^[-\d]/.test(token) ? "number" : "word"
}

// Line breaks are kept; other invisible characters are escaped.
function shown(token, depth) {
  return `"${JSON.parse(token).split("\n").map(visible).join(line(depth))}"`
}
