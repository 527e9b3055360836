// The list of runs, polled.

import { ask } from "./ask.js"

const POLL_MS = 2000
const MOST = 1000

export class Directory {
  runs = []
  problem = null
  isRead = false
  #watchers = new Set()
  #timer = null
  #isClosed = false

  constructor() {
    this.#poll()
  }

  find(runId) {
    return this.runs.find(run => run.run_id === runId)
  }

  watch(watcher) {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  close() {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #poll() {
    if (!document.hidden) await this.#ask()
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#poll(), POLL_MS)
  }

  async #ask() {
    try {
      this.runs = (await ask(`/runs?limit=${MOST}`)).runs
      this.problem = null
      this.isRead = true
    } catch (problem) {
      this.problem = problem
    }
    for (const watcher of this.#watchers) watcher()
  }
}
