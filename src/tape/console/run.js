// One run: its details, its status, and its live events.

import { html, useEffect, useState } from "./vendor/preact-htm.js"
import { ask, runPath } from "./ask.js"
import { beginning, Events } from "./events.js"
import { Feed } from "./feed.js"
import { Icon } from "./icons.js"
import { address } from "./place.js"
import { Dot } from "./runs.js"
import { sentence } from "./sheet.js"
import { Status } from "./status.js"
import { visible } from "./visible.js"
import { useOpened, useWatched } from "./watching.js"

const AGAIN_MS = 2000

export function Run({ place, directory }) {
  const { detail, problem } = useDetail(place.name)
  if (problem) return html`<${Missing} name=${place.name} problem=${problem} />`
  return detail ? html`<${OpenRun} key=${place.name} place=${place} detail=${detail} directory=${directory} />` : html`<section class="events"></section>`
}

function OpenRun({ place, detail, directory }) {
  useWatched(directory)
  const at = Number(place.at) || undefined
  const run = directory.find(place.name) ?? detail
  const feed = useOpened(() => openFeed(place.name, detail.last_seq, at), [place.name])
  useWatched(feed)
  useResumed(feed, run, directory.runs)
  const fork = feed.fork?.childRunId === place.name ? feed.fork : null
  return html`<${Events} feed=${feed} place=${place} inherited=${fork?.atSeq ?? 0} empty="No events yet. They appear here as they are published.">
    <header class="about">
      <a class="back" href="#/" aria-label="all runs"><${Icon} name="back" /></a>
      <h1><${Dot} status=${run.status} />${visible(run.label || run.run_id)}</h1>
      ${run.label && html`<span class="quiet id">${run.run_id}</span>`}
      <span class="space"></span>
      <${Status} feed=${feed} run=${run} />
      ${fork && html`<p class="fork">Forked from <a href=${address({ view: "runs", name: fork.parentRunId, at: fork.atSeq })}>${fork.parentRunId}</a> after ${fork.atSeq.toLocaleString()}${fork.reason ? `: ${visible(fork.reason)}` : ""}
        <a class="button" href=${address({ view: "runs", name: place.name, with: fork.parentRunId })}>Side by side</a></p>`}
      ${feed.entries[0]?.seq > detail.floor && html`<p class="fork"><button onClick=${() => earlier(feed)}>Earlier events</button></p>`}
    </header>
  <//>`
}

// Resumes a feed that has ended when its run is open again, in this journal or another one. The list of runs may be
// older than the end, so the run itself is asked, at most once for each answer of the list.
export function useResumed(feed, run, runs) {
  const isEnded = feed.status.is === "over"
  useEffect(() => {
    if (!isEnded || run.status === "complete") return
    let isLeft = false
    const resume = ({ status }) => !isLeft && feed.status.is === "over" && status !== "complete" && feed.resume()
    ask(runPath(run.run_id)).then(resume, () => {}) // without an answer, the list's next one is waited for
    return () => (isLeft = true)
  }, [feed, isEnded, run.status, runs])
}

function openFeed(runId, lastSeq, at) {
  const feed = new Feed({ run_id: runId }, beginning(lastSeq, at))
  feed.isFollowed = !at
  return feed
}

function earlier(feed) {
  feed.isFollowed = false
  feed.open(Math.max(0, feed.entries[0].seq - 10_000))
}

// The details of a run; polls while the run does not exist.
export function useDetail(runId) {
  const [known, setKnown] = useState({})
  useEffect(() => {
    let timer = null
    let isOver = false
    const poll = async () => {
      const found = await ask(runPath(runId)).then(detail => ({ detail }), problem => ({ problem }))
      if (isOver) return
      setKnown({ ...found, runId })
      if (found.problem) timer = setTimeout(poll, AGAIN_MS)
    }
    poll()
    return () => ((isOver = true), clearTimeout(timer))
  }, [runId])
  return known.runId === runId ? known : {}
}

export function Missing({ name, problem }) {
  return html`<section class="events"><div class="empty"><b>${visible(name)}</b><p>${sentence(problem.message)}</p><a href="#/">All runs</a></div></section>`
}
