// One stream until it is closed: it reconnects with its cursor.
//
// It uses fetch because EventSource stops for good on 429, delivers no events with unknown names, and hides why a stream
// ended.

import { Problem } from "./ask.js"
import { takeSlot } from "./slots.js"
import { Frames } from "./sse.js"

const MAX_QUEUED = 2048
const POLL_MS = 1000
const SILENCE_MS = 45_000
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 15_000

// `listener` has the callbacks entries(frames), notice(name, facts) and status(status).
export class Stream {
  #query
  #listener
  #cursor
  #epoch
  #answered = null
  #waits = 0
  #stop = new AbortController()
  #ear = null
  #wake = () => {}

  constructor(query, cursor, listener, epoch = null) {
    this.#query = query
    this.#cursor = cursor
    this.#listener = listener
    this.#epoch = epoch
    document.addEventListener("visibilitychange", () => this.#seen(), { signal: this.#stop.signal })
    this.#run()
  }

  close() {
    this.#stop.abort()
    this.#ear?.abort()
    this.#wake()
  }

  // The epoch of the cursor, once it is known.
  get epoch() {
    return this.#epoch
  }

  get #isClosed() {
    return this.#stop.signal.aborted
  }

  async #run() {
    while (!this.#isClosed) {
      if (document.hidden) await this.#sleep("asleep")
      else await this.#once().catch(error => this.#fail(error))
    }
  }

  // One connection: live with a slot, else a single poll.
  async #once() {
    const giveBack = await takeSlot()
    try {
      const end = this.#isClosed ? "closed" : await this.#read(giveBack !== null)
      if (end === "over") this.#end("over")
      else if (end === "polled") await this.#sleep("polling", POLL_MS)
    } finally {
      giveBack?.()
    }
  }

  async #read(isLive) {
    this.#ear = new AbortController()
    const asked = { signal: this.#ear.signal, headers: this.#headers(), cache: "no-store" }
    const response = await fetch(`/events?${this.#parameters()}`, asked).catch(error => {
      throw error.name === "AbortError" ? error : Problem.unreachable()
    })
    if (response.status === 204) return "over" // the cursor is at the end of a closed run
    if (!response.ok) throw Object.assign(await Problem.of(response), { retryAfter: retryAfter(response) })
    this.#listener.status({ is: "reading" })
    this.#answered = response.headers.get("x-tape-epoch") ?? this.#answered
    try {
      return await this.#listen(response.body.pipeThrough(new TextDecoderStream()).getReader(), isLive)
    } finally {
      this.#ear.abort()
    }
  }

  async #listen(reader, isLive) {
    const frames = new Frames()
    const isNew = this.#cursor === null
    let silence = null
    try {
      for (;;) {
        silence = setTimeout(() => this.#ear.abort(Problem.unreachable()), SILENCE_MS)
        const { done, value } = await reader.read()
        clearTimeout(silence)
        if (done) throw new Error("the stream was cut short") // only run_end ends a run, whoever ended the response
        const end = this.#hear(frames.feed(value), isLive, isNew)
        if (end) return end
      }
    } finally {
      clearTimeout(silence)
    }
  }

  // Handles a chunk; returns the reason to stop reading, if any.
  #hear(frames, isLive, isNew) {
    if (this.#isClosed) return "closed"
    const end = this.#take(frames)
    const isCurrent = frames.some(frame => frame.name === "replay_complete") || (isNew && this.#cursor !== null)
    if (isCurrent) {
      this.#waits = 0
      this.#listener.status({ is: isLive ? "live" : "polling" })
    }
    return end || (isCurrent && !isLive ? "polled" : "")
  }

  // In order: after a resync the same ids may come again.
  #take(frames) {
    let end = ""
    let entries = []
    for (const frame of frames) {
      if (frame.id !== null) this.#moveTo(frame.id)
      if (frame.id !== null && frame.text) entries.push(frame)
      if (frame.id !== null) continue
      this.#listener.entries(entries.splice(0))
      const fields = JSON.parse(frame.text)
      end ||= this.#onNotice(frame.name, fields.data ?? fields)
    }
    this.#listener.entries(entries)
    return end
  }

  // The epoch changes only together with the cursor: the server checks the cursor against it on reconnect.
  #moveTo(cursor) {
    this.#cursor = cursor
    this.#epoch = this.#answered ?? this.#epoch
  }

  #onNotice(name, facts) {
    this.#listener.notice(name, facts)
    if (name === "state_resync_required") {
      this.#answered = facts.epoch === undefined ? this.#answered : String(facts.epoch)
      this.#moveTo(facts.earliestAvailableId - 1)
    }
    if (name === "stream_error") throw new Problem(503, { detail: facts.error })
    if (name === "goaway") throw leaving(facts.reconnectAfterMs)
    if (name === "run_end") return "over"
    return name === "client_evicted" ? "evicted" : ""
  }

  async #fail(error) {
    if (this.#isClosed || document.hidden) return
    const isKnown = (this.#answered ?? this.#epoch) !== null // what was there once may come back, so it is asked for again
    if (error instanceof Problem && !error.isPassing && !isKnown) {
      this.#end("refused", error)
      return
    }
    const waits = Math.min(FIRST_WAIT_MS * 2 ** this.#waits, LONGEST_WAIT_MS)
    this.#waits += 1
    const wait = error.retryAfter ?? waits * (0.75 + Math.random() / 2)
    await this.#sleep("away", wait, error instanceof Problem ? error.message : "the connection was lost")
  }

  #end(is, problem) {
    this.#stop.abort()
    this.#listener.status({ is, problem })
  }

  async #sleep(is, ms, reason) {
    if (this.#isClosed) return
    this.#listener.status({ is, reason, until: ms && Date.now() + ms })
    await new Promise(resolve => {
      this.#wake = resolve
      if (ms) setTimeout(resolve, ms)
    })
  }

  // A hidden tab releases its slot, and resumes when it is visible again.
  #seen() {
    if (document.hidden) this.#ear?.abort()
    this.#wake()
  }

  #parameters() {
    return new URLSearchParams({ ...this.#query, maxQueued: MAX_QUEUED })
  }

  #headers() {
    const headers = {}
    if (this.#cursor !== null) headers["Last-Event-ID"] = String(this.#cursor)
    if (this.#epoch !== null) headers["X-Tape-Epoch"] = this.#epoch
    return headers
  }
}

function leaving(ms) {
  return Object.assign(new Problem(503, { detail: "the server is restarting" }), { retryAfter: ms })
}

function retryAfter(response) {
  const seconds = Number(response.headers.get("retry-after") ?? NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}
