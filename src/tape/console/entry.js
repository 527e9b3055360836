// An entry of a stream; its payload stays the stored text, byte for byte.

import { fields } from "./payload.js"
import { visible } from "./visible.js"

const MOST_FACTS = 8
const LONGEST_FACT = 160

export class Entry {
  #facts = null

  constructor(frame) {
    const parsed = JSON.parse(frame.text)
    this.id = frame.id
    this.seq = parsed.seq
    this.globalSeq = parsed.global_seq
    this.runId = parsed.run_id
    this.type = parsed.type
    this.kind = parsed.kind
    this.subject = parsed.subject
    this.at = parsed.ts_ms
    this.traceId = parsed.trace_id
    this.contentType = parsed.content_type ?? "application/json"
    this.clientId = parsed.originatorClientId ?? ""
    this.turn = turnOf(parsed.data)
    this.payload = payloadText(frame.text, parsed)
  }

  // A summary of the payload for a row: some fields, shortened.
  get facts() {
    this.#facts ??= factsOf(this.payload)
    return this.#facts
  }

  // The parent and the seq of a fork, if this is a fork entry.
  get fork() {
    if (this.kind !== "run" || this.type !== "fork") return null
    const { parent_run_id: parentRunId, at_seq: atSeq, reason } = JSON.parse(this.payload)
    return { parentRunId, atSeq, reason, childRunId: this.subject.split("/").at(-1) }
  }

  equals(other) {
    return this.type === other.type && this.kind === other.kind && this.payload === other.payload
  }
}

// The stored text lies between two known parts of the frame; the second cannot occur unescaped after the payload.
function payloadText(text, parsed) {
  const start = text.indexOf(',"data":')
  const end = text.lastIndexOf(`,"run_id":"${parsed.run_id}","seq":${parsed.seq},"global_seq":${parsed.global_seq},`)
  return start < 0 || end < 0 ? JSON.stringify(parsed.data) : text.slice(start + 8, end)
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
  const value = text.startsWith('"') ? JSON.parse(text) : text
  return visible(value.length > LONGEST_FACT ? `${value.slice(0, LONGEST_FACT)}…` : value)
}
