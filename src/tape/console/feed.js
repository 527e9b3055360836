// The entries of one stream, up to a maximum, and the status of the stream.

import { Entry } from "./entry.js"
import { Stream } from "./stream.js"

export const MOST = 20_000
const MOST_TEXT = 64_000_000 // characters of payloads, because some are long
const REDRAW_MS = 50
const NOTICE_MS = 8000

export class Feed {
  entries = []
  status = { is: "opening" }
  notice = null
  isFollowed = true
  dropped = 0 // how many entries have left at the front, so that lists can stay where they are
  fork = null
  #size = 0
  #query
  #stream
  #watchers = new Set()
  #redraw = null
  #ear = {
    entries: frames => this.#came(frames),
    notice: (name, facts) => this.#noticed(name, facts),
    status: status => this.#is(status),
  }

  // `cursor` is the id before the first one wanted, or null for a stream that begins now.
  constructor(query, cursor) {
    this.#query = query
    this.open(cursor)
  }

  // Restarts at another cursor and drops the entries.
  open(cursor) {
    this.#stream?.close()
    this.#clear()
    this.status = { is: "opening" }
    this.#stream = new Stream(this.#query, cursor, this.#ear)
    this.#changed()
  }

  // Continues after the end: the run may have been reopened, or there is room again.
  resume() {
    this.#stream.close()
    this.status = { is: "opening" }
    this.#stream = new Stream(this.#query, this.last?.id ?? 0, this.#ear, this.#stream.epoch)
  }

  close() {
    this.#stream.close()
    clearTimeout(this.#redraw)
    this.#watchers.clear()
  }

  watch(watcher) {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  get last() {
    return this.entries.at(-1)
  }

  find(id) {
    const found = this.entries[this.place(id)]
    return found?.id === id ? found : undefined
  }

  // The index of an id among the entries, or where it would be.
  place(id) {
    let [low, high] = [0, this.entries.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.entries[middle].id < id) low = middle + 1
      else high = middle
    }
    return low
  }

  #came(frames) {
    if (!frames.length) return
    for (const frame of frames) this.#add(new Entry(frame))
    if (this.entries.length > MOST || this.#size > MOST_TEXT) this.#makeRoom()
    this.#changed()
  }

  #add(entry) {
    if (this.entries.length && entry.id <= this.last.id) return
    this.entries.push(entry)
    this.#size += entry.payload.length
    this.fork = entry.fork ?? this.fork
  }

  // A view that follows the end drops the oldest entries; another view keeps them, and the stream stops.
  #makeRoom() {
    if (this.isFollowed) {
      const gone = this.entries.splice(0, Math.ceil(this.entries.length / 4))
      this.dropped += gone.length
      this.#size -= gone.reduce((size, entry) => size + entry.payload.length, 0)
      return
    }
    this.#stream.close()
    this.status = { is: "full" }
  }

  #clear() {
    this.dropped += this.entries.length
    this.entries = []
    this.#size = 0
    this.fork = null
  }

  #noticed(name, facts) {
    if (name === "replay_complete" || name === "run_end") return
    if (name === "state_resync_required" && facts.reason === "epoch_reset") this.#clear()
    this.notice = { name, facts, at: Date.now() }
    setTimeout(() => this.#changed(), NOTICE_MS + 100)
    this.#changed()
  }

  get currentNotice() {
    const isLasting = this.notice?.name === "state_resync_required"
    return this.notice && (isLasting || Date.now() - this.notice.at < NOTICE_MS) ? this.notice : null
  }

  #is(status) {
    const isKnown = status.is === "reading" && ["live", "polling", "full"].includes(this.status.is)
    if (isKnown || this.status.is === "full") return
    this.status = status
    this.#changed()
  }

  #changed() {
    this.#redraw ??= setTimeout(() => {
      this.#redraw = null
      for (const watcher of this.#watchers) watcher()
    }, REDRAW_MS)
  }
}
