// The status of a stream as a short text.

import { html } from "./vendor/preact-htm.js"
import { sentence } from "./sheet.js"
import { useNow, useWatched } from "./watching.js"

const FAR_BEHIND = 200

export function Status({ feed, run }) {
  useWatched(feed)
  const now = useNow(500)
  const [look, text, hint] = statusText(feed, run, now)
  return html`<span class="status ${look}" role="status" title=${hint ?? ""}><i></i>${text}</span>`
}

function statusText(feed, run, now) {
  const { is, until, reason, problem } = feed.status
  const behind = run && feed.last ? run.n_events - feed.last.seq : 0
  if (is === "live" && behind > FAR_BEHIND) return ["busy", `behind by ${behind.toLocaleString()}`]
  if (is === "live") return ["good", "live"]
  if (is === "reading" || is === "opening") return ["busy", progress(feed, run)]
  if (is === "polling") return ["good", "polling every second", "Other tabs hold the live connections that a browser allows."]
  if (is === "away") return ["bad", `back in ${Math.max(0, Math.ceil((until - now) / 1000))} s: ${reason}`]
  if (is === "asleep") return ["still", "paused"]
  if (is === "over") return ["still", "complete"]
  if (is === "full") return ["busy", `stopped at ${feed.last.seq.toLocaleString()}`, "The page holds no more; continue with Latest."]
  return ["bad", problem.message]
}

function progress(feed, run) {
  if (!feed.last) return "opening"
  return run ? `reading ${feed.last.seq.toLocaleString()} of ${run.n_events.toLocaleString()}` : "reading"
}

export function Notice({ feed }) {
  useWatched(feed)
  const notice = feed.currentNotice
  if (!notice) return null
  return html`<p class="notice" role="status">${NOTICES[notice.name]?.(notice.facts) ?? notice.name}</p>`
}

const NOTICES = {
  slow_client_warning: facts => `This page is ${facts.queueSize.toLocaleString()} events behind.`,
  client_evicted: facts => `This page was too slow and was evicted after ${facts.droppedAfter?.toLocaleString() ?? "the beginning"}; it resumes from there.`,
  state_resync_required: facts =>
    facts.reason === "epoch_reset"
      ? "The journal was replaced by another one; this is the new one."
      : `History before ${facts.earliestAvailableId.toLocaleString()} is gone.`,
  goaway: () => "The server is restarting.",
  stream_error: facts => sentence(facts.error),
}
