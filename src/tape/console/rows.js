// The rows of a feed: the entries that pass the filter, and a mark where a turn begins.

import { filter } from "./filter.js"

export class Rows {
  rows = []
  dropped = 0 // how many rows have left at the front
  #matches
  #place = 0
  #gone
  #turn = null

  constructor(feed, text) {
    this.feed = feed
    this.text = text
    this.#matches = filter(text)
    this.#gone = feed.dropped
  }

  // Applies what the feed added and dropped since the last update.
  refresh() {
    const lost = this.feed.dropped - this.#gone
    if (lost) this.#lose(lost)
    const { entries } = this.feed
    for (; this.#place < entries.length; this.#place += 1) this.#add(entries[this.#place])
    return this
  }

  #add(entry) {
    if (!this.#matches(entry)) return
    if (entry.turn !== null && entry.turn !== this.#turn) this.rows.push({ turn: entry.turn, id: entry.id })
    this.#turn = entry.turn ?? this.#turn
    this.rows.push(entry)
  }

  #lose(lost) {
    this.#gone = this.feed.dropped
    this.#place = Math.max(0, this.#place - lost)
    const first = this.feed.entries[0]?.id ?? Infinity
    const kept = this.#place ? this.rows.findIndex(row => row.id >= first) : -1
    this.dropped += kept < 0 ? this.rows.length : kept
    this.rows = kept < 0 ? [] : this.rows.slice(kept)
    if (kept < 0) this.#turn = null
  }

  // The row of an entry, or the next one that is shown.
  place(id) {
    const found = this.rows.findIndex(row => row.id >= id && !isMark(row))
    return found < 0 ? this.rows.length - 1 : found
  }
}

export const isMark = row => row?.payload === undefined
