// An entry as the page shows it; its payload stays the text that was stored, byte for byte.

import { fields } from "./payload.js"
import { visible } from "./visible.js"

const MOST_FACTS = 8
const LONGEST_FACT = 160

export class Entry {
  #facts = null

  constructor(frame) {
    const told = JSON.parse(frame.text)
    this.id = frame.id
    this.seq = told.seq
    this.globalSeq = told.global_seq
    this.runId = told.run_id
    this.type = told.type
    this.kind = told.kind
    this.subject = told.subject
    this.at = told.ts_ms
    this.traceId = told.trace_id
    this.contentType = told.content_type ?? "application/json"
    this.clientId = told.originatorClientId ?? ""
    this.turn = turnOf(told.data)
    this.payload = payloadText(frame.text, told)
  }

  // What a row says about the payload: some of its fields, shortened.
  get facts() {
    this.#facts ??= factsOf(this.payload)
    return this.#facts
  }

  // Where a fork comes from, if this entry begins one.
  get fork() {
    if (this.kind !== "run" || this.type !== "fork") return null
    const { parent_run_id: parentRunId, at_seq: atSeq, reason } = JSON.parse(this.payload)
    return { parentRunId, atSeq, reason, childRunId: this.subject.split("/").at(-1) }
  }

  says(other) {
    return this.type === other.type && this.kind === other.kind && this.payload === other.payload
  }
}

// The stored text lies between two words of the frame that are known to the letter; no payload can hold the second,
// unescaped, after its own end.
function payloadText(text, told) {
  const start = text.indexOf(',"data":')
  const end = text.lastIndexOf(`,"run_id":"${told.run_id}","seq":${told.seq},"global_seq":${told.global_seq},`)
  return start < 0 || end < 0 ? JSON.stringify(told.data) : text.slice(start + 8, end)
}

function turnOf(payload) {
  if (payload === null || typeof payload !== "object") return null
  const turn = payload.turn_num ?? payload.turn
  return Number.isInteger(turn) ? turn : null
}

function factsOf(payload) {
  const named = fields(payload, MOST_FACTS).filter(([name]) => name !== "turn_num")
  return named.map(([name, text]) => [visible(name.slice(0, 40)), short(text.trim())])
}

function short(text) {
  const said = text.startsWith('"') ? JSON.parse(text) : text
  return visible(said.length > LONGEST_FACT ? `${said.slice(0, LONGEST_FACT)}…` : said)
}
