// What a person types into the filter box, as a test of entries.
//
// Words must all be found in the type, subject or payload. `type:a,b`, `subject:/a/*/**`, `turn:3`, `kind:run` and
// `seq:10..20` look at one field; a word that begins with a slash is a subject; `-` before a word turns it around.

const WORD = /-?(?:[a-z]+:)?"[^"]*"|\S+/g

export function filter(text) {
  const tests = (text.match(WORD) ?? []).map(test)
  return entry => tests.every(matches => matches(entry))
}

function test(word) {
  if (word.startsWith("-") && word.length > 1) {
    const matches = test(word.slice(1))
    return entry => !matches(entry)
  }
  const [, field, value] = /^([a-z]+):(.+)$/.exec(word) ?? []
  return FIELDS.get(field)?.(unquoted(value)) ?? (word.startsWith("/") ? bySubject(word) : byText(unquoted(word)))
}

const FIELDS = new Map([
  ["type", byType],
  ["subject", bySubject],
  ["kind", kind => entry => entry.kind === kind],
  ["run", run => entry => entry.runId === run],
  ["turn", turn => entry => String(entry.turn) === turn],
  ["seq", bySeq],
])

function byType(value) {
  const types = value.split(",")
  return entry => types.includes(entry.type)
}

function bySeq(value) {
  const [from, to = from] = value.split("..")
  return entry => entry.seq >= Number(from || 1) && entry.seq <= Number(to || Infinity)
}

// A pattern as the server reads it, except that it need not be whole: `/a` finds all below it.
function bySubject(pattern) {
  const parts = pattern.replace(/\/\*\*$/, "").split("/")
  return entry => {
    const segments = entry.subject.split("/")
    return parts.every((part, place) => segments[place] !== undefined && (part === "*" || fits(part, segments[place], place === parts.length - 1)))
  }
}

const fits = (part, segment, isLast) => (isLast ? segment.startsWith(part) : segment === part)

function byText(text) {
  const plain = JSON.stringify(text).slice(1, -1) // payloads are searched as they are stored
  const found = new RegExp(plain.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i")
  return entry => found.test(entry.type) || found.test(entry.subject) || found.test(entry.payload)
}

const unquoted = text => text?.replace(/^"|"$/g, "")

// The types that a filter names, and the same filter with one of them put in or taken out.
export function typesIn(text) {
  const [, types] = /(?:^|\s)type:(\S+)/.exec(text) ?? []
  return types ? types.split(",") : []
}

export function withType(text, type) {
  const types = typesIn(text)
  const wanted = types.includes(type) ? types.filter(other => other !== type) : [...types, type]
  const rest = text.replace(/(?:^|\s)type:\S+/, "").trim()
  return [rest, wanted.length ? `type:${wanted.join(",")}` : ""].filter(Boolean).join(" ")
}
