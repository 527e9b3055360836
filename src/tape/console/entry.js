// An entry of a stream; its payload stays the stored text, byte for byte.

import { fields } from "./payload.js"
import { visible } from "./visible.js"

const MOST_FACTS = 8
const LONGEST_FACT = 160

export class Entry {
  #facts = null

  constructor(frame) {
    const fields = JSON.parse(frame.text)
    this.id = frame.id
    this.seq = fields.seq
    this.globalSeq = fields.global_seq
    this.runId = fields.run_id
    this.type = fields.type
    this.kind = fields.kind
    this.subject = fields.subject
    this.at = fields.ts_ms
    this.traceId = fields.trace_id
    this.contentType = fields.content_type ?? "application/json"
    this.clientId = fields.originatorClientId ?? ""
    this.turn = turnOf(fields.data)
    this.payload = payloadText(frame.text, fields)
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
function payloadText(text, fields) {
  const start = text.indexOf(',"data":')
  const end = text.lastIndexOf(`,"run_id":"${fields.run_id}","seq":${fields.seq},"global_seq":${fields.global_seq},`)
  return start < 0 || end < 0 ? JSON.stringify(fields.data) : text.slice(start + 8, end)
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
