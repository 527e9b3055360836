// Tasks: pending, claimed, done and dead ones, and their replay.

import { html, useEffect, useState } from "./vendor/preact-htm.js"
import { Confirm } from "./confirm.js"
import { Json } from "./json.js"
import { Life } from "./life.js"
import { address, amend } from "./place.js"
import { usePolled } from "./polled.js"
import { post } from "./post.js"
import { Facts, number, Sheet, Table, Tabs, troubleOf } from "./sheet.js"
import { ago, clock } from "./time.js"
import { visible } from "./visible.js"
import { useNow } from "./watching.js"

const DEAD = 5
const MOST_SHOWN = 200
const AT_ONCE = 200
const STATES = { 1: ["busy", "pending"], 2: ["good", "claimed"], 3: ["still", "done"], 5: ["bad", "dead"] }
const TABS = [["", "All"], ["pending", "Pending"], ["claimed", "Claimed"], ["done", "Done"], ["dlq", "Dead"]]

export function Tasks({ place }) {
  return place.name ? html`<${Task} key=${place.name} id=${place.name} />` : html`<${All} place=${place} />`
}

function All({ place }) {
  const { status = "", reaction = "" } = place
  const result = usePolled(`/tasks?${new URLSearchParams({ limit: MOST_SHOWN, without_payloads: true, ...(status && { status }), ...(reaction && { reaction_id: reaction }) })}`)
  const [chosen, setChosen] = useState(new Set())
  const [replaying, setReplaying] = useState(null)
  const now = useNow(5000)
  useEffect(() => setChosen(new Set()), [status, reaction])
  const tasks = result.value?.tasks ?? []
  const dead = tasks.filter(task => task.status === DEAD)
  const picked = dead.filter(task => chosen.has(task.task_id)).map(task => task.task_id)
  const choose = id => setChosen(before => (before.has(id) ? new Set([...before].filter(other => other !== id)) : new Set([...before, id])))
  return html`<${Sheet} title="Tasks" about=${reaction && `of ${reaction}`}>
    <div class="bar">
      <${Tabs} label="status" tabs=${TABS} chosen=${status} onChoose=${value => amend({ status: value })} />
      ${reaction && html`<button onClick=${() => amend({ reaction: undefined })}>Of all reactions</button>`}
      <span class="space"></span>
      ${dead.length > 0 && html`<button disabled=${!picked.length} onClick=${() => setReplaying({ task_ids: picked })}>Replay chosen</button>
        <button onClick=${() => setReplaying(reaction ? { reaction_id: reaction } : {})}>Replay all dead</button>`}
    </div>
    ${troubleOf(result)}
    ${result.value && (tasks.length ? html`<${Table} caption="list of tasks" keyOf=${task => task.task_id} rows=${tasks} columns=${columns(chosen, choose, dead.length, now)} />` : html`<div class="empty"><b>${EMPTY[status] ?? "No tasks yet"}</b><p>A task is made when an entry fits a <a href="#/reactions">reaction</a>.</p></div>`)}
    ${tasks.length === MOST_SHOWN && html`<p class="quiet line-of">These are the newest ${number(MOST_SHOWN)}; choose a state or a reaction to see others.</p>`}
    ${replaying && html`<${Confirm} title=${question(replaying)} label="Replay" onClose=${() => (setReplaying(null), setChosen(new Set()), result.again())} act=${() => replay(replaying)}>
      <p class="quiet">They become pending, and are handled once more with the same payload.</p><//>`}
  <//>`
}

// Replays in pages until none is left; a task that dies again meanwhile is not replayed twice.
async function replay(which) {
  const seen = new Set()
  for (;;) {
    const { task_ids: replayed } = await post("/tasks/replay", { ...which, ...(which.task_ids ? {} : { limit: AT_ONCE }) })
    if (which.task_ids || replayed.length < AT_ONCE || replayed.some(id => seen.has(id))) return
    for (const id of replayed) seen.add(id)
  }
}

const EMPTY = { pending: "No pending tasks", claimed: "No claimed tasks", done: "No done tasks", dlq: "No dead tasks" }

const columns = (chosen, choose, dead, now) => [
  ...(dead ? [["Choose", task => task.status === DEAD && html`<input type="checkbox" aria-label=${`choose ${task.task_id}`} checked=${chosen.has(task.task_id)} onChange=${() => choose(task.task_id)} />`]] : []),
  ["State", task => html`<${State} task=${task} />`],
  ["About", task => html`<a class="code" href=${address({ view: "tasks", name: task.task_id })}>${visible(task.subject)}</a>`],
  ["Reaction", task => html`<a href=${address({ view: "reactions", name: task.reaction_id })}>${visible(task.reaction_id)}</a>`],
  ["Attempts", task => number(task.attempts), "number"],
  ["Made", task => ago(task.created_at_ms, now)],
  ["Last error", task => task.last_error && html`<span class="short">${visible(task.last_error)}</span>`],
]

function question({ task_ids: ids, reaction_id: reaction }) {
  if (ids) return ids.length === 1 ? "Replay one dead task?" : `Replay ${ids.length.toLocaleString()} dead tasks?`
  return reaction ? `Replay all dead tasks of ${reaction}?` : "Replay all dead tasks?"
}

function State({ task }) {
  const [look, text] = STATES[task.status] ?? ["still", task.status]
  return html`<span class="status ${look}"><i></i>${text}</span>`
}

function Task({ id }) {
  const result = usePolled(`/tasks/${encodeURIComponent(id)}`)
  const [isReplaying, setReplaying] = useState(false)
  const task = result.value?.task
  return html`<${Sheet} title=${task?.subject ?? "Task"} about=${id} back="#/tasks" tools=${task && html`<${State} task=${task} />
      ${task.status === DEAD && html`<button class="main" onClick=${() => setReplaying(true)}>Replay</button>`}`}>
    ${troubleOf(result)}
    ${task && html`<div class="columns">
      <div><h2>Details</h2><${Facts} facts=${facts(task)} />
        ${task.last_error && html`<div class="trouble"><b>The last error.</b> ${visible(task.last_error)}</div>`}
        <h2>History</h2>${result.value.life.length ? html`<${Life} life=${result.value.life} />` : html`<p class="quiet">It has neither died nor been replayed.</p>`}</div>
      <div><h2>Payload</h2><${Json} text=${task.payload_json || "null"} /></div>
    </div>`}
    ${isReplaying && html`<${Confirm} title="Replay this task?" label="Replay" onClose=${() => (setReplaying(false), result.again())} act=${() => post("/tasks/replay", { task_ids: [id] })}>
      <p class="quiet">It becomes pending, and is handled once more with the same payload.</p><//>`}
  <//>`
}

const facts = task => [
  ["reaction", html`<a href=${address({ view: "reactions", name: task.reaction_id, at: task.source_global_seq })}>${visible(task.reaction_id)}</a>`],
  ["entry", html`<a href=${address({ view: "runs", name: task.source_run_id, at: task.source_seq })}>${number(task.source_seq)} of ${visible(task.source_run_id)}</a>, ${number(task.source_global_seq)} in the journal`],
  ["type", visible(task.type)],
  ["attempts", `${number(task.attempts)} since the last replay, ${number(task.attempt)} in all`],
  ["claimed by", visible(task.lease_owner)],
  ["made", clock(task.created_at_ms)],
  ["ended", task.completed_at_ms ? clock(task.completed_at_ms) : ""],
  ["coalesced", task.coalesced ? number(task.coalesced) : ""],
]
